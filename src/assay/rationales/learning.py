"""Schemes (recipes as data), criteria that select the best epoch, and the training loop of a game."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from math import log
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from assay import progress
from assay.data.batches import Tokenised, collate
from assay.errors import AssayError
from assay.models.config import Training
from assay.models.fit import State, begun, class_weights
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
    ends = _ends(scheme.stages, options.epochs)
    optimiser = _optimiser(players, scheme, options)
    course, best = GameState(), _weights(players)
    if checkpoint is not None and checkpoint.path.exists():
        saved, best = checkpoint.restore(players, optimiser)
        course = GameState(**saved)
    weights = class_weights(train, players.predictor, options)
    lengths = np.array([len(row.ids) for row in train])
    with progress.bar("status") as shown, torch.random.fork_rng():
        while not _finished(course, ends, options):
            stage = scheme.stages[next(index for index, end in enumerate(ends) if course.epoch < end)]
            chosen = begun(course.epoch, lengths, options)
            task = shown.add_task(f"epoch {course.epoch + 1}/{ends[-1]}", total=len(chosen), status="")
            _prepare(model, stage)
            loss = share = 0.0
            for done, group in enumerate(chosen, start=1):
                found = _step(players, scheme, stage, [train[index] for index in group], optimiser, weights, options)
                loss, share = loss + found[0], share + found[1]
                shown.update(task, advance=1, status=f"loss {loss / done:.3f}  selected {share / done:.0%}")
            score, dev_loss = scheme.epoch_score(model, dev)
            course = _advanced(course, loss / len(chosen), share / len(chosen), score, dev_loss, stage, scheme)
            if course.best_epoch == course.epoch:
                best = _weights(players)
            if checkpoint is not None:
                checkpoint.save(players, optimiser, best, asdict(course))
            status = f"loss {course.losses[-1]:.3f}  selected {course.shares[-1]:.0%}  dev {score:.3f}"
            shown.update(task, status=status)
    players.load_state_dict(best)
    return model.eval(), course


def _prepare(model: Rationaliser, stage: Stage) -> None:
    """Training mode for the players that are trained; others are deterministic."""
    model.train()
    moving = {"predictor" if name == "body" else name for name in stage.players}
    for name, reader in model.players.readers.items():
        if name not in moving:
            for part in reader.modules():
                part.training = isinstance(part, nn.RNNBase)  # cuDNN has no backward pass through it in any other mode


def _ends(stages: Sequence[Stage], epochs: int) -> list[int]:
    """The epoch before which each stage ends."""
    total = sum(stage.share for stage in stages)
    ends = np.cumsum([stage.share / total * epochs for stage in stages]).round().astype(int).tolist()
    return [max(index + 1, end) for index, end in enumerate(ends)]


def _finished(course: GameState, ends: Sequence[int], options: Training) -> bool:
    """At the last epoch, or when the last stage stops improving (early stopping)."""
    before = ends[-2] if len(ends) > 1 else 0
    tired = course.best_epoch > before and course.epoch - course.best_epoch >= options.patience
    return tired or course.epoch >= ends[-1]


def _advanced(
    course: GameState, loss: float, share: float, score: float, dev_loss: float, stage: Stage, scheme: Scheme
) -> GameState:
    epoch = course.epoch + 1
    best = course.best_epoch, course.best_score, course.best_loss
    last = stage is scheme.stages[-1]
    if last and (score, -dev_loss) >= (course.best_score, -course.best_loss):
        best = epoch, score, dev_loss
    return GameState(epoch, *best, [*course.losses, loss], [*course.scores, score], [*course.shares, share])


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


def _step(
    players: Players,
    scheme: Scheme,
    stage: Stage,
    rows: Sequence[Tokenised],
    optimiser: torch.optim.Adam,
    weights: Tensor | None,
    options: Training,
) -> tuple[float, float]:
    """One batch: every move in turn; returns the last loss and the share of selected words."""
    batch = collate(rows, players.predictor.classes).to(players.predictor.device)
    counted = torch.ones_like(batch.labels, dtype=torch.float32) if weights is None else weights[batch.labels]
    value = share = 0.0
    for move in stage.moves:
        play = Play(players, batch, scheme.rules, decoded=stage.decoded)
        loss = move.loss(play, counted)
        learning = [each for name in move.players for each in players.of(name)]
        optimiser.zero_grad()
        loss.backward(inputs=learning)  # type: ignore[no-untyped-call]
        if options.clip is not None:
            nn.utils.clip_grad_norm_(learning, options.clip)
        value = float(loss.detach())
        share = play.share
        _paced(optimiser, stage, options.learning_rate, share)
        optimiser.step()
    return value, share


def _paced(optimiser: torch.optim.Adam, stage: Stage, rate: float, share: float) -> None:
    for group in optimiser.param_groups:
        slowed = max(SLOWEST, share) if stage.measured and group["player"] == "predictor" else 1.0
        group["lr"] = rate * stage.pace.get(group["player"], 1.0) * slowed


def _weights(players: Players) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in players.state_dict().items()}
