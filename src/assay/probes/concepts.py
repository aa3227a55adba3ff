"""Concepts as directions in a layer: steering, concept activation vectors, TCAV."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from assay import progress
from assay.data.batches import Tokenised, tokenise
from assay.data.examples import Example
from assay.errors import AssayError, unknown
from assay.explainers.needs import demand
from assay.metrics.comparisons import apart
from assay.models import logistic
from assay.models.encoders import Transformer
from assay.models.hf_body import Body
from assay.models.hf_models import Attentive
from assay.models.network import Network
from assay.models.networks import Hierarchical
from assay.models.store import Opened
from assay.models.textmodel import TextModel, groups
from assay.probes.observation import spread
from assay.types import Batch, Model, attended, of_tokens, over_tokens

Vectors = Float[np.ndarray, "N M"]
Others = Float[np.ndarray, "O M"]
ByText = Float[Tensor, "B M"]
States = Float[Tensor, "B S M"]
Owners = Int[Tensor, "B S"]

# Activation steering: the hidden states at a level of a network, and the logits after a shift added there

EMBEDDING, LAYER, HIDDEN = "embedding", "layer {}", "hidden"


@dataclass(frozen=True)
class Steered:
    """The hidden states at S positions of a level, a shift added to them, and the resulting logits.

    `token_index` is the item each belongs to, a word or in a hierarchy a sentence, -1 for none. The `shift` is a leaf
    that gradients of the logits can be taken to.
    """

    logits: Float[Tensor, "B C"]
    vectors: States
    shift: States
    token_index: Owners

    @property
    def mean(self) -> ByText:
        """The mean over the items of each text."""
        there = (self.token_index >= 0).to(self.vectors)
        return (there[:, None] @ self.vectors).squeeze(1) / there.sum(-1, keepdim=True).clamp(min=1)


def levels(network: TextModel) -> tuple[str, ...]:
    """The names of all levels, lowest first.

    The "embedding" of each word, each "layer" of self-attention counted from 0, and the "hidden" states that the
    encoder makes of words, or of sentences.
    """
    inner = tuple(LAYER.format(number) for number in range(getattr(network, "layers", 0)))
    return (EMBEDDING, *inner, *((HIDDEN,) if isinstance(network, Network | Attentive) else ()))


def steered(network: TextModel, batch: Batch, level: str, by: ByText | None = None) -> Steered:
    """A forward pass with `by` added to the hidden states at a level."""
    if level not in levels(network):
        raise unknown("level", level, levels(network))
    # cuDNN's recurrent kernels refuse a backward pass outside training mode.
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        if level == EMBEDDING:
            return _embedded(network, batch, by)
        token_index, parts, turn = _place(network, batch, level)
        mover = _Mover(token_index >= 0, by, turn)
        with _hooked(parts, mover):
            logits = network(network.embed(batch), batch).logits
    assert mover.vectors is not None and mover.shift is not None
    return Steered(logits, mover.vectors, mover.shift, token_index)


def _embedded(network: TextModel, batch: Batch, by: ByText | None) -> Steered:
    x = network.embed(batch).detach()
    tokens = torch.arange(x.shape[1], device=x.device).where(batch.mask, -1)
    subwords = 1 if batch.subwords is None else batch.subwords.shape[2]
    there = batch.mask[..., None] if batch.subwords is None else (batch.subwords >= 0) & batch.mask[..., None]
    size = x.shape[-1] // subwords
    token_index = tokens.repeat_interleave(subwords, dim=1).where(there.flatten(1), -1)
    vectors = x.reshape(len(x), -1, size)
    shift = torch.zeros_like(vectors).requires_grad_()
    added = (shift if by is None else shift + by[:, None]) * (token_index >= 0)[..., None]
    logits = network((vectors + added).reshape(x.shape), batch).logits
    return Steered(logits, vectors, shift, token_index)


def _place(network: TextModel, batch: Batch, level: str) -> tuple[Owners, list[nn.Module], int]:
    """The items of a level's positions, the modules whose calls are counted, and the number of the call."""
    if isinstance(network, Body):
        if level == HIDDEN:
            return network.token_index(batch), [network.inner], 1
        unique = list(dict.fromkeys(network.blocks))
        return network.token_index(batch), unique, 1 + int(level.removeprefix("layer "))
    assert isinstance(network, Network)
    if level != HIDDEN:
        assert isinstance(network.encoder, Transformer)
        return network.token_index(batch), list(network.encoder.blocks), 1 + int(level.removeprefix("layer "))
    if isinstance(network, Hierarchical):
        real = attended(network, batch)
        return torch.arange(real.shape[1], device=real.device).where(real, -1), [network.encoder], 1
    return network.token_index(batch), [network.encoder], 1


class _Mover:
    """A forward hook that adds a shift to a module's output at one of its calls, and records that output."""

    def __init__(self, there: Bool[Tensor, "B S"], by: ByText | None, turn: int) -> None:
        self.there, self.by, self.turn = there, by, turn
        self.calls = 0
        self.vectors: Tensor | None = None
        self.shift: Tensor | None = None

    def __call__(self, part: nn.Module, given: Any, answer: Any) -> Any:
        self.calls += 1
        if self.calls != self.turn:
            return None
        states: Tensor = answer if isinstance(answer, Tensor) else answer[0]
        self.vectors = states.detach()
        self.shift = torch.zeros_like(self.vectors).requires_grad_()
        added = self.shift if self.by is None else self.shift + self.by[:, None].to(states)
        moved = states + added * self.there[..., None]
        if isinstance(answer, Tensor):
            return moved
        if isinstance(answer, tuple):
            return (moved, *answer[1:])
        answer["last_hidden_state"] = moved  # the library's own record
        return answer


@contextmanager
def _hooked(parts: Sequence[nn.Module], hook: Callable[..., Any]) -> Iterator[None]:
    handles = [part.register_forward_hook(hook) for part in parts]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


# Concept activation vectors: concepts as directions in a layer, and gradients along them

HELD_OUT = 1 / 3  # of the examples, to see how well a direction tells them apart


@dataclass(frozen=True)
class Direction:
    """A concept as a unit vector in a layer, and its accuracy on held-out examples."""

    level: str
    vector: Float[Tensor, " M"]
    accuracy: float


def direction(inside: Vectors, outside: Others, level: str, strength: float, chance: np.random.Generator) -> Direction:
    """Logistic regression between vectors outside and inside the concept; a third is held out to test it."""
    features = np.concatenate([outside, inside])
    labels = np.repeat([0, 1], [len(outside), len(inside)])
    order = chance.permutation(len(labels))
    held, learnt = np.split(order, [int(HELD_OUT * len(labels))])
    if len(set(labels[learnt])) < 2:  # of very few examples
        learnt = order
    fitted = logistic.fit(features[learnt], labels[learnt], 2, strength, common=True)
    weight = fitted.weight[:, 1] - fitted.weight[:, 0]
    right = float((fitted(features[held]) == labels[held]).mean()) if len(held) else float("nan")
    return Direction(level, weight / weight.norm().clamp(min=1e-30), right)


def vectors(network: TextModel, rows: Sequence[Tokenised], level: str) -> Vectors:
    """The mean hidden state of each text in a layer, in the order given."""
    return _read(network, rows, level, None)


def sensitivities(network: TextModel, rows: Sequence[Tokenised], level: str, target: int) -> Vectors:
    """The gradient of the class's logit by a shift of the layer at all words of each text, in the order given.

    Its inner product with a vector is the directional derivative; Kim et al. (2018), equation 1.
    """
    return _read(network, rows, level, target)


def score(gradients: Vectors, towards: Direction) -> float:
    """TCAV score: the share of texts whose logit rises along the direction; Kim et al. (2018), equation 2."""
    return float((gradients @ towards.vector.numpy() > 0).mean())


def _read(network: TextModel, rows: Sequence[Tokenised], level: str, target: int | None) -> Vectors:
    was_training = network.training
    network.eval()
    found: dict[int, np.ndarray] = {}
    with progress.bar() as shown:
        task = shown.add_task("concepts", total=len(rows))
        for indices, batch in groups(network, rows):
            at = steered(network, batch, level)
            part = at.mean
            if target is not None:
                (gradient,) = torch.autograd.grad(at.logits[:, target].sum(), at.shift)
                part = gradient.sum(1)
            found |= dict(zip(indices.tolist(), part.double().cpu().numpy(), strict=True))
            shown.advance(task, len(indices))
    network.train(was_training)
    return np.stack([found[index] for index in range(len(rows))])


# TCAV: whether a class depends on a concept that is given by examples


@dataclass(frozen=True)
class TcavResult:
    """TCAV scores of a class and a concept in each run, beside those of random directions.

    `p` is that of Welch's two-sided t-test between both; `significant` says whether it stays below the level after
    Bonferroni's correction for all pairs of concepts and classes that were asked about. `accuracy` is how often the
    directions tell held-out examples from random texts, on average: near one half, they stand for nothing.
    """

    concept: str
    target: int
    scores: Float[np.ndarray, " R"]
    random: Float[np.ndarray, " R"]
    p: float
    significant: bool
    accuracy: float

    @property
    def score(self) -> float:
        return float(self.scores.mean())


@dataclass(frozen=True)
class Tcav:
    """TCAV (Kim et al., 2018): the share of texts whose logit rises when a layer moves along the concept's direction.

    The direction of a concept is that of a logistic regression between its examples and as many random texts, which
    are drawn anew for each of the `runs`. A level stands for a text by the mean over its words, and moves by the same
    vector at each word; without a name it is the highest.
    """

    # differs from Kim et al. (2018): a level of a text has no fixed size, so its mean over words takes its index

    level: str | None = None
    runs: int = 20
    strength: float = 1.0  # of the regression's L2 penalty
    significance: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        if self.runs < 2:
            raise AssayError(f"A test between directions needs at least two runs, got {self.runs}.")

    def level_of(self, network: TextModel) -> str:
        """The level that is moved."""
        if self.level is not None and self.level not in levels(network):
            raise unknown("level", self.level, levels(network))
        return self.level or levels(network)[-1]

    def fit(
        self,
        network: TextModel,
        concepts: Mapping[str, Sequence[Tokenised]],
        others: Sequence[Tokenised],
        texts: Mapping[int, Sequence[Tokenised]],
    ) -> tuple[TcavResult, ...]:
        """Tests each class against each concept; `texts` are examples of each class.

        The `others` are random texts: they are what concepts are told from, and what random concepts are made of.
        """
        smallest = min((len(rows) for rows in concepts.values()), default=0)
        if smallest < 2 or len(others) < 4 or not texts or not all(texts.values()):
            raise AssayError(
                "TCAV needs two examples of each concept, four random texts, and one text of each class asked about."
            )
        level = self.level_of(network)
        gradients = {target: sensitivities(network, rows, level, target) for target, rows in texts.items()}
        drawn = vectors(network, others, level)
        tests = len(concepts) * len(gradients)
        found = []
        for index, (concept, rows) in enumerate(concepts.items()):
            known, random = self._directions(vectors(network, rows, level), drawn, level, index)
            accuracy = float(np.mean([each.accuracy for each in known]))
            for target, gradient in gradients.items():
                scores, chance = (np.array([score(gradient, each) for each in some]) for some in (known, random))
                test = apart(scores, chance)
                assert test is not None
                significant = test.p * tests < self.significance
                found.append(TcavResult(concept, target, scores, chance, test.p, significant, accuracy))
        return tuple(found)

    def _directions(self, shown: Vectors, drawn: Others, level: str, index: int) -> tuple[list[Direction], ...]:
        """Of each run, the direction from random texts to the examples, and one between two sets of random texts."""
        known, random = [], []
        size = min(len(shown), len(drawn) // 2)
        for run in range(self.runs):
            one, other = (np.random.default_rng((self.seed, 2 * index + kind, run)) for kind in range(2))
            chosen = one.choice(len(drawn), min(len(shown), len(drawn)), replace=False)
            known.append(direction(shown, drawn[chosen], level, self.strength, one))
            order = other.permutation(len(drawn))
            sets = drawn[order[:size]], drawn[order[size : 2 * size]]
            random.append(direction(*sets, level, self.strength, other))
        return known, random


def tcav(
    model: Opened,
    concepts: Mapping[str, Sequence[Example]],
    others: Sequence[Example],
    texts: Sequence[Example],
    options: Tcav = Tcav(),  # noqa: B008
) -> tuple[TcavResult, ...]:
    """TCAV of concepts given by examples, for the classes of some texts."""
    labels = sorted({each.label for each in texts})
    by_class = {label: _tokenised(model, [each for each in texts if each.label == label]) for label in labels}
    given = {name: _tokenised(model, examples) for name, examples in concepts.items()}
    return options.fit(model.network, given, _tokenised(model, others), by_class)


def concept(
    model: Opened,
    examples: Sequence[Example],
    others: Sequence[Example],
    options: Tcav = Tcav(),  # noqa: B008
) -> Direction:
    """The direction of one concept, between its examples and other texts."""
    level = options.level_of(model.network)
    inside, outside = (vectors(model.network, _tokenised(model, some), level) for some in (examples, others))
    return direction(inside, outside, level, options.strength, np.random.default_rng(options.seed))


def section(
    model: Opened,
    concepts: Mapping[str, Sequence[Example]],
    others: Sequence[Example],
    texts: Sequence[Example],
    options: Tcav = Tcav(),  # noqa: B008
) -> dict[str, Any]:
    """The results as a section of a probe, with the range of 95 % of the runs."""
    if any(example.query is not None for example in (*others, *texts)):
        raise AssayError("Concepts are given by single texts, and this corpus holds pairs; name another one.")
    labels = [example.label for example in texts]
    rows = []
    for found in tcav(model, concepts, others, texts, options):
        own, random = spread(found.scores), spread(found.random)
        rows.append(
            {
                "concept": found.concept,
                "class": model.classes[found.target],
                "examples": len(concepts[found.concept]),
                "n": labels.count(found.target),
                "score": own.share,
                "low": own.low,
                "high": own.high,
                "random": random.share,
                "random_low": random.low,
                "random_high": random.high,
                "p": found.p,
                "significant": found.significant,
                "accuracy": found.accuracy,
            }
        )
    return {"level": options.level_of(model.network), "runs": options.runs, "others": len(others), "rows": rows}


def _tokenised(model: Opened, examples: Sequence[Example]) -> list[Tokenised]:
    return tokenise(examples, model.tokeniser, model.tokeniser.options.longest)[0]


@dataclass(frozen=True)
class ConceptSensitivity:
    """Directional derivative of the class's logit by each word's hidden state: ∂logit / ∂h_t · v.

    Summed over words, or over sentences where those are what moves, it is the directional derivative of TCAV.
    """

    direction: Direction

    def unfit(self, model: Model) -> str | None:
        there = isinstance(model, TextModel) and self.direction.level in levels(model)
        return None if there else f"the model has no level {self.direction.level!r}"

    def __call__(self, model: Model, batch: Batch, target: Int[Tensor, " B"]) -> Float[Tensor, "B T"]:
        demand(self.unfit(model))
        assert isinstance(model, TextModel)
        at = steered(model, batch, self.direction.level)
        (gradients,) = torch.autograd.grad(at.logits.gather(1, target[:, None]).sum(), at.shift)
        moved = gradients @ self.direction.vector.to(gradients)
        if self.direction.level == HIDDEN and isinstance(model, Hierarchical):
            return over_tokens(model, moved, batch)
        return of_tokens(moved, at.token_index, batch.ids.shape[1])
