"""Rules of a game and its players: readers, a selector's head, and whatever else is trained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from assay.errors import AssayError, unknown
from assay.explainers import EXPLAINERS
from assay.models.hf_models import Attentive
from assay.models.network import WordNetwork
from assay.models.recipes import drawn
from assay.models.textmodel import TextModel
from assay.rationales.relaxations import RELAXATIONS, Bernoulli, GumbelStraightThrough, Relaxation
from assay.rationales.units import Decoding, Grouping, Units
from assay.types import BLANKS, Batch

# Rules shared by all players

READINGS = ("delete", *BLANKS)
CONDITIONS = ("none", "guess", "label")
ANSWERS = ("reader", "presence", "votes")


@dataclass(frozen=True)
class Rules:
    """Options of selection: units, relaxation, decoding, conditioning, and what replaces unselected words.

    Masks may depend on a class: on the `guess` of the reader of that name, or on the `label`, which is the class that
    is predicted where no label may be known. With `all` words read, the selection only explains the predictor. By the
    name of an explainer, scores are its `saliency` for a teacher instead of a selector's. Where masks are `classwise`,
    there is one for each class, and that of the class they depend on is read. What answers is the `reader` of a mask,
    or the concepts that masks stand for: linearly by their `presence`, or by the `votes` of those that are there.
    """

    units: Units = field(default_factory=Units)
    relaxation: Relaxation = field(default_factory=Bernoulli)
    decoding: Decoding = field(default_factory=Decoding)
    masks: int = 1
    reading: str = "zero"
    condition: str = "none"
    reads: str = "selected"  # or "all"
    saliency: str = ""
    classwise: bool = False
    answers: str = "reader"

    def __post_init__(self) -> None:
        if self.reading not in READINGS:
            raise unknown("way to read what is not selected", self.reading, READINGS)
        if self.condition not in CONDITIONS:
            raise unknown("condition of a mask", self.condition, CONDITIONS)
        if self.answers not in ANSWERS:
            raise unknown("answer", self.answers, ANSWERS)
        if self.saliency and self.saliency not in EXPLAINERS:
            raise unknown("explainer", self.saliency, EXPLAINERS)
        if self.classwise and self.condition == "none":
            raise AssayError('Masks that are classwise need a condition that chooses one of them: "label" or "guess".')

    def json(self) -> dict[str, Any]:
        names = {kind: name for name, kind in RELAXATIONS.items()}
        return asdict(self) | {"relaxation": {"name": names[type(self.relaxation)]} | asdict(self.relaxation)}

    @classmethod
    def of(cls, stored: dict[str, Any]) -> Rules:
        """Rules from their stored JSON."""
        options = dict(stored["relaxation"])
        relaxation = RELAXATIONS[options.pop("name")](**options)
        given = {"units": Units(**stored["units"]), "decoding": Decoding(**stored["decoding"])}
        return cls(**{**stored, **given, "relaxation": relaxation})


# Concept inference

DRAWING = GumbelStraightThrough()


@dataclass(frozen=True)
class Inferred:
    """K concepts for each text: presence, its probability, and votes for the classes.

    `features` are what was read of its words, and `named` scores which concept they belong to.
    """

    presence: Float[Tensor, "B K"]
    chance: Float[Tensor, "B K"]
    votes: Float[Tensor, "B K C"]
    features: Float[Tensor, "B K M"]
    named: Float[Tensor, "B K K"]

    @property
    def contributions(self) -> Float[Tensor, "B K C"]:
        return self.presence[..., None] * self.votes

    @property
    def logits(self) -> Float[Tensor, "B C"]:
        """The sum of the contributions alone: a text without any concept has no class."""
        return self.contributions.sum(1)


class Concepts(nn.Module):
    """Linear layer from features to the presence of each concept, and its votes.

    The votes of a `weighted` concept are the same in all texts (Bouchacourt and Denoyer, 2019); those of another are
    what is read of its words (Antognini and Faltings, 2021).
    """

    def __init__(self, size: int, concepts: int, classes: int, weighted: bool) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.presence = nn.Linear(size, concepts)
        nn.init.constant_(self.presence.bias, 1.0)  # a concept that is never there learns nothing
        self.naming = nn.Linear(size, concepts)
        turns = torch.arange(concepts) % classes  # each concept begins as one for a class, so that no class has none
        self.weights = nn.Parameter(torch.eye(classes)[turns]) if weighted else None

    def forward(self, features: Float[Tensor, "B K M"], read: Float[Tensor, "B K C"], decoded: bool) -> Inferred:
        """Infers concepts from features and logits of the words of each; sampled, or thresholded if `decoded`."""
        normed = self.norm(features)
        scores = (normed * self.presence.weight).sum(-1) + self.presence.bias
        chance = scores.sigmoid()
        presence = (chance > 0.5).to(chance) if decoded else self._drawn(scores)
        votes = read if self.weights is None else self.weights.expand(len(features), -1, -1)
        return Inferred(presence, chance, votes, features, self.naming(normed))

    def _drawn(self, scores: Float[Tensor, "B K"]) -> Float[Tensor, "B K"]:
        # differs from Bouchacourt and Denoyer (2019): a gradient passes through presence, which the score function
        # would only guess at
        drawn = DRAWING.draw(scores[..., None, None], torch.ones_like(scores[:, :1], dtype=torch.bool))
        return drawn.z[..., 0]


Reader = WordNetwork | Attentive
"""A network with a state for each word, one attention that pools them, and a linear decoder."""


def redrawn(reader: Reader, seed: int) -> Reader:
    """The same reader with random weights."""
    if isinstance(reader, WordNetwork):
        fresh: TextModel = drawn(reader.architecture, len(reader.vectors), reader.classes, seed)
    else:
        fresh = reader.redrawn(seed)
    assert isinstance(fresh, WordNetwork | Attentive)
    return fresh


@contextmanager
def evaluating(network: nn.Module) -> Iterator[None]:
    """Evaluation mode without gradients, for a while."""
    was_training = network.training
    network.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        network.train(was_training)


class Head(nn.Module):
    """Linear head of the selector: `masks` times `parameters` numbers a unit, optionally conditioned on a class."""

    def __init__(self, size: int, masks: int, parameters: int, conditions: int = 0) -> None:
        super().__init__()
        self.shape = masks, parameters
        self.norm = nn.LayerNorm(size)  # without it, a head soon says yes or no to all
        self.score = nn.Linear(size, masks * parameters)
        self.condition = nn.Embedding(conditions, size) if conditions else None

    def forward(
        self, states: Float[Tensor, "B T M"], grouping: Grouping, condition: Int[Tensor, " B"] | None = None
    ) -> Float[Tensor, "B K U P"]:
        normed = self.norm(states)
        if self.condition is not None and condition is not None:
            normed = normed * (1 + self.condition(condition)[:, None])
        scores: Tensor = self.score(grouping.pooled(normed))
        return scores.reshape(*scores.shape[:2], *self.shape).transpose(1, 2)


class Players(nn.Module):
    """Readers by name, all over the embeddings of the "predictor", and the selector's head.

    The selector reads with the reader of that name, or with the predictor's where there is none (Liu et al., 2022).
    `extras` are other things that learn.
    """

    baseline: Tensor

    def __init__(self, readers: Mapping[str, Reader], head: Head, extras: Mapping[str, nn.Module] | None = None):
        super().__init__()
        self.readers = nn.ModuleDict(dict(readers))
        self.head = head
        self.extras = nn.ModuleDict(dict(extras or {}))
        self.register_buffer("baseline", torch.zeros(2))  # sum and weight of the costs so far, for the score function

    @property
    def predictor(self) -> Reader:
        return self.reader("predictor")

    def reader(self, name: str) -> Reader:
        found = self.readers[name]
        assert isinstance(found, WordNetwork | Attentive)
        return found

    def theta(
        self, x: Float[Tensor, "B T D"], batch: Batch, grouping: Grouping, condition: Int[Tensor, " B"] | None = None
    ) -> Float[Tensor, "B K U P"]:
        """Scores of the units, from the embeddings."""
        reader = self.reader("selector" if "selector" in self.readers else "predictor")
        scores: Tensor = self.head(reader.states(x, batch), grouping, condition)
        return scores

    def of(self, player: str) -> Iterator[nn.Parameter]:
        """The parameters that are updated when that player moves; embeddings belong to the predictor.

        Where they do not, the "embedding" is a player by itself, and the "body" is the predictor without it.
        """
        table = {id(each) for each in self.predictor.embedding.parameters()}
        if player in ("embedding", "body"):
            everything = (each for each in self.predictor.parameters() if each.requires_grad)
            yield from (each for each in everything if (id(each) in table) == (player == "embedding"))
        parts: list[nn.Module] = [self.head] if player == "selector" else []
        parts += [rooms[player] for rooms in (self.readers, self.extras) if player in rooms]
        for part in parts:
            yield from (each for each in part.parameters() if each.requires_grad)


class LearntBlank(nn.Module):
    """A learnt embedding in place of unselected words, the same at all positions."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.vector = nn.Parameter(torch.zeros(size))


class LagrangeMultiplier(nn.Module):
    """Lagrange multiplier α of a constraint, from 0 to `most`."""

    def __init__(self, size: int, most: float = 200.0) -> None:
        super().__init__()
        self.most = most
        self.value = nn.Parameter(torch.ones(()))


class MaskEmbedding(nn.Embedding):
    """An embedding added to each word that says which mask it was read through."""

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=0.1)


EXTRAS = {"blank": LearntBlank, "multiplier": LagrangeMultiplier}


def assemble_players(
    rules: Rules, readers: Mapping[str, Reader], extras: tuple[str, ...], classes: int, seed: int = 0
) -> Players:
    """The readers, a selector head, and the extra modules."""
    predictor = readers["predictor"]
    with torch.random.fork_rng():
        torch.manual_seed(seed + 1)
        conditions = classes if rules.condition != "none" else 0
        head = Head(predictor.decoder.in_features, rules.masks, rules.relaxation.parameters, conditions)
        width = predictor.blank("zero").shape[0]
        more: dict[str, nn.Module] = {name: EXTRAS[name](width) for name in extras if name in EXTRAS}
        if "concepts" in extras:
            more["concepts"] = Concepts(
                predictor.decoder.in_features, rules.masks, classes, weighted=rules.answers == "presence"
            )
        if "paths" in extras:
            more["paths"] = MaskEmbedding(rules.masks, width)
    return Players(readers, head, more).to(predictor.device)
