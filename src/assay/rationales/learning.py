"""Schemes (recipes as data), criteria that select the best epoch, and the training loop of a game."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import log
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from assay.data.batches import Tokenised, collate
from assay.errors import AssayError
from assay.models.config import Training
from assay.models.fit import Rows, State, Trainer, class_weights
from assay.models.store import Checkpoint
from assay.models.textmodel import graded, groups
from assay.rationales.game import Play, Stage
from assay.rationales.losses import AnswerCrossEntropy, FullTextDivergence
from assay.rationales.players import Players, Rules, evaluating
from assay.rationales.rationaliser import Rationaliser, answering
from assay.rationales.relaxations import Relaxation
from assay.rationales.units import Decoding, Units

EpochScore = Callable[[Rationaliser, Sequence[Tokenised]], tuple[float, float]]
"""Score (above −1) of the deterministic selections on dev texts, and a loss that breaks ties.

Of epochs that are equal in both, the latest is the best.
"""


@dataclass(frozen=True)
class CriticGap:
    """Accuracy; ties go to the epoch in which a critic, who reads the rest, does worst.

    A text on which it is surer than a blind guess, but wrong, counts like that guess.
    """

    def __call__(self, model: Rationaliser, rows: Sequence[Tokenised]) -> tuple[float, float]:
        score, loss = graded(model, rows)
        with evaluating(model):
            costs = [AnswerCrossEntropy("critic", "rest")(model.play(batch)) for _, batch in groups(model, rows)]
        return score, loss - float(torch.cat(costs).clamp(max=log(model.classes)).mean())


@dataclass(frozen=True)
class LatestAccurate:
    """Accuracy rounded to hundredths; ties go to the latest epoch.

    In a game in which one player gains what another loses, no cost of either says who has come further.
    """

    def __call__(self, model: Rationaliser, rows: Sequence[Tokenised]) -> tuple[float, float]:
        return round(graded(model, rows)[0], 2), 0.0


@dataclass(frozen=True)
class Sparsest:
    """The share of unselected words, if the prediction stays within `limit` of that on all words; else below 0.

    How far it is, is KL(P(all) ‖ P(selected)), on average; De Cao et al. (2020) choose their epoch in that way.
    """

    limit: float

    def __call__(self, model: Rationaliser, rows: Sequence[Tokenised]) -> tuple[float, float]:
        selected = words = divergence = 0.0
        with evaluating(model):
            for _, batch in groups(model, rows):
                play = model.play(batch)
                selected += float(play.z[:, 0].sum())
                words += float(batch.mask.sum())
                divergence += float(FullTextDivergence()(play).sum())
        mean = divergence / len(rows)
        return (1 - selected / words if mean <= self.limit else float(np.exp(-mean)) - 1), mean


@dataclass(frozen=True)
class Options:
    """Options of a recipe: the share of words and the weights of penalties; None is the recipe's default."""

    classes: int = 2
    rate: float = 0.2
    units: Units = field(default_factory=Units)
    reading: str = "zero"
    size: float | None = None
    continuity: float | None = None
    concepts: int | None = None  # how many, in recipes that have any

    def __post_init__(self) -> None:
        if not 0 < self.rate < 1:
            raise AssayError(f"The share of words to select must be between 0 and 1, got {self.rate:g}.")
        if self.concepts is not None and self.concepts < 1:
            raise AssayError(f"A recipe with concepts needs at least one, got {self.concepts}.")
        for name in ("size", "continuity"):
            if not 0 <= self.weight(name, 0.0) < float("inf"):
                raise AssayError(f"The strength of {name!r} must be at least 0, got {self.weight(name, 0.0):g}.")

    def weight(self, name: str, default: float) -> float:
        """The weight of a penalty, "size" or "continuity"."""
        weight: float | None = getattr(self, name)
        return default if weight is None else weight

    def rules(self, relaxation: Relaxation, decoding: str = "top", **others: Any) -> Rules:
        """Rules with these units, this rate and this reading."""
        shared: dict[str, Any] = {"units": self.units, "reading": self.reading} | others
        return Rules(relaxation=relaxation, decoding=Decoding(decoding, self.rate), **shared)


@dataclass(frozen=True)
class Scheme:
    """A recipe without its networks; `extras` are further trained modules, by name.

    The `epoch_score` says which epoch of the last stage was the best one, as a rule by the accuracy of the predictor
    on its selections.
    """

    rules: Rules
    stages: tuple[Stage, ...]
    readers: tuple[str, ...] = ("predictor", "selector")
    extras: tuple[str, ...] = ()
    epoch_score: EpochScore = graded


SLOWEST = 0.05  # pace of a predictor that reads next to nothing


@dataclass
class GameState(State):
    """Progress of a training: epoch, history and the shares of selected words."""

    shares: list[float] = field(default_factory=list)  # of words that are drawn, on average


@dataclass(kw_only=True, eq=False)
class GameTrainer(Trainer):
    """The training of the players of a scheme, stage by stage; the best epoch is one of the last stage."""

    players: Players
    scheme: Scheme
    train: Sequence[Tokenised]
    dev: Sequence[Tokenised]
    model: Rationaliser
    weights: Float[Tensor, " C"] | None  # of the classes
    state: GameState = field(default_factory=GameState)
    shares: list[float] = field(default_factory=list)  # of selected words, in each step of this epoch

    @cached_property
    def ends(self) -> list[int]:
        """The epoch before which each stage ends."""
        total = sum(stage.share for stage in self.scheme.stages)
        parts = [stage.share / total * self.options.epochs for stage in self.scheme.stages]
        ends = np.cumsum(parts).round().astype(int).tolist()
        return [max(index + 1, end) for index, end in enumerate(ends)]

    @property
    def epochs(self) -> int:
        return self.ends[-1]

    @property
    def stage(self) -> Stage:
        """The stage of the next epoch."""
        return self.scheme.stages[next(index for index, end in enumerate(self.ends) if self.state.epoch < end)]

    @property
    def started(self) -> bool:
        return self.state.best_epoch > (self.ends[-2] if len(self.ends) > 1 else 0)

    def prepare(self) -> None:
        """Training mode for the players that are trained; others are deterministic."""
        self.shares.clear()
        self.model.train()
        moving = {"predictor" if name == "body" else name for name in self.stage.players}
        for name, reader in self.players.readers.items():
            if name not in moving:
                for part in reader.modules():  # cuDNN has no backward pass through a recurrence in any other mode
                    part.training = isinstance(part, nn.RNNBase)

    def step(self, rows: Rows) -> float:
        """Every move of a batch in turn; returns the last loss."""
        predictor, stage = self.players.predictor, self.stage
        batch = collate([self.train[index] for index in rows], predictor.classes).to(predictor.device)
        whole = torch.ones_like(batch.labels, dtype=torch.float32)
        counted = whole if self.weights is None else self.weights[batch.labels]
        value = share = 0.0
        for move in stage.moves:
            play = Play(self.players, batch, self.scheme.rules, decoded=stage.decoded)
            loss = move.loss(play, counted)
            learning = [each for name in move.players for each in self.players.of(name)]
            self.optimiser.zero_grad()
            loss.backward(inputs=learning)  # type: ignore[no-untyped-call]
            if self.options.clip is not None:
                nn.utils.clip_grad_norm_(learning, self.options.clip)
            value, share = float(loss.detach()), play.share
            self._pace(stage, share)
            self.optimiser.step()
        self.shares.append(share)
        return value

    def _pace(self, stage: Stage, share: float) -> None:
        """The learning rate of each player at its pace; a predictor that reads less learns slower."""
        for group in self.optimiser.param_groups:
            slowed = max(SLOWEST, share) if stage.measured and group["player"] == "predictor" else 1.0
            group["lr"] = self.options.learning_rate * stage.pace.get(group["player"], 1.0) * slowed

    def judge(self) -> tuple[float, float]:
        return self.scheme.epoch_score(self.model, self.dev)

    def better(self, score: float, loss: float) -> bool:
        """As declared, in the last stage alone; of equal epochs the latest is the best."""
        best = (self.state.best_score, -self.state.best_loss)
        return self.stage is self.scheme.stages[-1] and (score, -loss) >= best

    def advanced(self, loss: float, score: float, dev_loss: float) -> GameState:
        state = super().advanced(loss, score, dev_loss)
        assert isinstance(state, GameState)
        return replace(state, shares=[*state.shares, sum(self.shares) / len(self.shares)])

    def status(self, loss: float | Tensor) -> str:
        return f"{super().status(loss)}  selected {sum(self.shares) / len(self.shares):.0%}"


def learn(
    players: Players,
    scheme: Scheme,
    train: Sequence[Tokenised],
    dev: Sequence[Tokenised],
    options: Training,
    checkpoint: Checkpoint | None = None,
) -> tuple[Rationaliser, GameState]:
    """Trains; returns the model with the weights of the last stage's best epoch, and the history.

    The best epoch is, as a rule, the one in which what is selected without chance predicts the dev labels best.
    """
    model = answering(players, scheme.rules)
    trainer = GameTrainer(
        learner=players,
        optimiser=_optimiser(players, scheme, options),
        options=options,
        lengths=np.array([len(row.ids) for row in train]),
        players=players,
        scheme=scheme,
        train=train,
        dev=dev,
        model=model,
        weights=class_weights(train, players.predictor, options),
    )
    trainer.run(checkpoint)
    return model.eval(), trainer.state


def _optimiser(players: Players, scheme: Scheme, options: Training) -> torch.optim.Adam:
    """Adam with a group for each player, and one for the embeddings, which decay only where the options say so."""
    names = dict.fromkeys(player for stage in scheme.stages for player in stage.players)
    table = {id(each) for each in players.predictor.embedding.parameters()}
    groups = [
        {
            "params": [each for each in players.of(name) if (id(each) in table) == embedded],
            "player": name,
            "weight_decay": options.decay if options.decay_embeddings or not embedded else 0.0,
        }
        for name in names
        for embedded in (False, True)
    ]
    return torch.optim.Adam([group for group in groups if group["params"]], lr=options.learning_rate)
