"""TracIn and TRAK: influence as gradient products at checkpoints of training, or in random projections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay import progress
from assay.errors import AssayError, unknown
from assay.influence import targets
from assay.influence.damping import METRICS, chosen_damping
from assay.influence.projection import Signs, summarised
from assay.influence.replay import adam_states, divided
from assay.influence.setting import Influence, PerExample, Repeating, Scores, Setting, refuse
from assay.influence.similarity import Vectors, dots, over_train, products, query_gradients, squares
from assay.influence.stories import CHANGE, ORDER
from assay.influence.training_run import TrainingRun
from assay.models.textmodel import TextModel
from assay.stories import with_story


@dataclass(frozen=True)
class Checkpoint:
    """A network after some steps of training, the steps it stands for, the learning rate, and Adam's denominator."""

    network: TextModel
    stands_for: int  # steps since the last checkpoint
    rate: float  # of learning
    spread: dict[str, Tensor]  # by which Adam divides its steps

    def setting(self, setting: Setting) -> Setting:
        """The setting with this network in place of the trained one."""
        return replace(setting, network=self.network)


def checkpoints(training_run: TrainingRun, count: int) -> list[Checkpoint]:
    """So many checkpoints at equal distances, the last after the last step; they are kept in memory."""
    steps = np.unique(np.linspace(0, training_run.steps, count + 1).round().astype(int))
    lengths = dict(zip(steps[1:].tolist(), np.diff(steps).tolist(), strict=True))
    found: list[Checkpoint] = []

    def watch(number: int, network: TextModel, optimiser: torch.optim.Optimizer) -> None:
        if number in lengths:
            rate = float(optimiser.param_groups[0]["lr"])
            spread = {name: divided(group, state)[1] for name, group, state in adam_states(network, optimiser)}
            found.append(Checkpoint(deepcopy(network).eval(), lengths[number], rate, spread))

    training_run.learn(watch=watch)
    return found


def passed(setting: Setting, count: int, steps: bool) -> Iterator[tuple[float, Setting, Checkpoint]]:
    """The factor of the products at each checkpoint, the setting with its network, and the checkpoint itself."""
    for each in checkpoints(setting.repeatable_training(), count):
        yield each.rate * (each.stands_for if steps else 1), each.setting(setting), each


@with_story("TracIn", "Pruthi et al. (2020), equation 4", like=ORDER)
@dataclass(frozen=True)
class TracIn(Repeating):
    """Gradient products at checkpoints, times the learning rate; Pruthi et al. (2020), equation 4.

    Models here are trained by Adam, whose learning rate stands for the length of a step and not for what a gradient is
    multiplied by. The plain method ignores that, so its scores have the right order of magnitude only by chance; with
    the metric "adam", gradients are divided by the roots of Adam's second moments, as in training.
    """

    checkpoints: int = 6
    metric: str = "plain"
    steps: bool = True  # each checkpoint counts for all steps since the last; differs from the paper: it counts for one

    def __post_init__(self) -> None:
        if self.checkpoints < 1:
            raise AssayError(f"TracIn needs at least 1 checkpoint, got {self.checkpoints}.")
        if self.metric not in METRICS:
            raise unknown("metric", self.metric, METRICS)

    def __call__(self, setting: Setting) -> Influence:
        found = setting.zeros()
        for factor, at, checkpoint in passed(setting, self.checkpoints, self.steps):
            found += factor * dots(at, partial(_multiplied, by=self._scale(checkpoint)))
        read = "the length of an Adam step" if self.metric == "adam" else "what gradients are multiplied by"
        notes = {"checkpoints": self.checkpoints, "metric": self.metric, "the learning rate is read as": read}
        return Influence(found * setting.shares, notes=notes)

    def own(self, setting: Setting) -> PerExample:
        """The rise of each loss without the example's own contributions to training."""
        found = np.zeros(len(setting.train))
        for factor, at, checkpoint in passed(setting, self.checkpoints, self.steps):
            roots = {name: scale.sqrt() for name, scale in self._scale(checkpoint).items()}
            found += factor * over_train(at, partial(squares, scales=roots))
        return np.asarray(found * setting.shares)

    def _scale(self, checkpoint: Checkpoint) -> dict[str, Tensor]:
        """Adam's preconditioner, in its metric."""
        return {} if self.metric == "plain" else {name: 1 / each for name, each in checkpoint.spread.items()}


def _multiplied(vectors: Vectors, by: Mapping[str, Tensor]) -> Vectors:
    """The vectors times one of the same shape, unless there is none."""
    return {name: vector * by[name] if by else vector for name, vector in vectors.items()}


@with_story("TracIn by random projection", "Pruthi et al. (2020), section 3.4", like=ORDER)
@dataclass(frozen=True)
class TracInProjected(Repeating):
    """TracIn over all parameters by random sketches of gradients, with their standard error.

    Pruthi et al. (2020), section 3.4. differs from the paper: they project gradients of the last layer.
    """

    checkpoints: int = 6
    size: int = 1_024  # numbers a summary
    steps: bool = True
    seed: int = 0

    def __call__(self, setting: Setting) -> Influence:
        found, variance = setting.zeros(), setting.zeros()
        for number, (factor, at, _) in enumerate(passed(setting, self.checkpoints, self.steps)):
            signs = Signs.drawn(setting.parameters, self.size, self.seed + number)
            asked = signs.sketched(at.query_gradients(), len(at.queries))
            mean, spread = summarised(asked, signs.sketched(at.train_gradients(), len(at.train)))
            found += factor * mean
            variance += factor**2 * spread
        notes = {"checkpoints": self.checkpoints, "size": self.size, "errors": "of the projection alone"}
        return Influence(found * setting.shares, errors=np.sqrt(variance) * setting.shares, notes=notes)


@with_story("TracIn at every step", "Pruthi et al. (2020), equation 2", like=ORDER)
@dataclass(frozen=True)
class TracInIdeal(Repeating):
    """TracIn at every step, for the examples of its batch; Pruthi et al. (2020), equation 2.

    As long as steps are short, they add up to what the training changed. The learning rate is that of plain descent.
    """

    def __call__(self, setting: Setting) -> Influence:
        training_run = setting.repeatable_training()
        found = setting.zeros()
        with torch.random.fork_rng():
            groups = list(training_run.groups())
        known: dict[str, Setting] = {}

        def watch(number: int, network: TextModel, optimiser: torch.optim.Optimizer) -> None:
            shown.update(task, completed=number)
            if number == len(groups):
                return
            network.eval()  # without dropout
            at = known.setdefault("now", replace(setting, network=network))  # it is the same network at every step
            group, vectors = groups[number], query_gradients(at)
            factors = float(optimiser.param_groups[0]["lr"]) * setting.weights[group] / setting.weights[group].sum()
            for indices, gradients in at.train_gradients([setting.train[index] for index in group]):
                each = products(gradients, vectors).double().cpu().numpy()
                found[:, group[indices]] += factors[indices] * each
            network.train()

        with progress.bar() as shown:
            task = shown.add_task("steps of training", total=len(groups))
            training_run.learn(watch=watch)
        return Influence(found, notes={"steps": len(groups)})


@with_story("TRAK", "Park et al. (2023), section 3", like=CHANGE)
@dataclass(frozen=True)
class Trak:
    """φ(x)ᵀ (ΦᵀΦ)⁻¹ φ_i (1 − p_i) over projected gradients φ of margins, over models; Park et al. (2023), section 3.

    The paper's score rises with what an example adds, so the change without it is its negative. The paper leaves the
    curvature p (1 − p) of each example out; here its mean divides the scores, so that they are in the target's units.
    """

    size: int = 512  # numbers that a gradient is projected to
    models: int = 1  # the others are trained in other orders
    damping: float | None = None  # of the curvature; none given: found from the training; 0: none, as in the paper
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.size, self.models) < 1:
            raise AssayError("TRAK needs at least one number for each gradient and at least one model.")

    def unfit(self, setting: Setting) -> str | None:
        """More models need the training, and without damping more examples than numbers."""
        if self.models > 1 and setting.untrainable:
            return f"{setting.untrainable}, so there is one model; leave the number of models out"
        if self.damping == 0 and self.size >= len(setting.train):
            return f"{len(setting.train)} examples do not determine {self.size} numbers without damping"
        return None

    def __call__(self, setting: Setting) -> Influence:
        refuse(self.unfit(setting))
        damping = self._damping(setting)
        each = [
            self._one(replace(setting, network=network), self.seed + number, damping)
            for number, network in enumerate(self._networks(setting))
        ]
        kernels, rests = (np.stack(part) for part in zip(*each, strict=True))
        scores = -kernels.mean(0) * rests.mean(0) * setting.weights
        errors = None
        if self.models > 1:
            alone = -kernels * rests[:, None] * setting.weights
            errors = alone.std(0, ddof=1) / np.sqrt(self.models)
        return Influence(scores, errors=errors, notes={"models": self.models, "size": self.size, "damping": damping})

    def own(self, setting: Setting) -> PerExample:
        """The predicted rise of each loss without the example, by the model itself."""
        learnt, shares = self._features(setting, Signs.drawn(setting.parameters, self.size, self.seed))
        inverse = self._inverse(setting, learnt, shares, self._damping(setting))
        return np.asarray((learnt @ inverse * learnt).sum(1) * (1 - shares) ** 2 * setting.weights)

    def _damping(self, setting: Setting) -> float:
        return chosen_damping(setting) if self.damping is None else self.damping

    def _networks(self, setting: Setting) -> Iterator[TextModel]:
        """The model, and others trained with other seeds."""
        yield setting.network
        for number in range(1, self.models):
            training_run = setting.repeatable_training()
            training = replace(training_run.training, seed=training_run.training.seed + number)
            yield replace(training_run, training=training).learn()

    def _one(self, setting: Setting, seed: int, damping: float) -> tuple[Scores, PerExample]:
        """Scores by one model: products in the curvature's metric, and 1 − p of each example's label."""
        signs = Signs.drawn(setting.parameters, self.size, seed)
        learnt, shares = self._features(setting, signs)
        asked = signs.sketched(setting.query_gradients(), len(setting.queries)) / np.sqrt(self.size)
        return asked @ self._inverse(setting, learnt, shares, damping) @ learnt.T, 1 - shares

    def _inverse(
        self, setting: Setting, learnt: Float[np.ndarray, "N K"], shares: PerExample, damping: float
    ) -> Float[np.ndarray, "K K"]:
        """The inverse of N times the damped Gauss–Newton curvature of the mean loss."""
        bent = float((setting.weights * shares * (1 - shares)).mean())
        curvature = bent * learnt.T @ learnt + len(learnt) * damping * np.eye(self.size)
        return np.linalg.pinv(curvature, rcond=1e-12, hermitian=True)

    def _features(self, setting: Setting, signs: Signs) -> tuple[Float[np.ndarray, "N K"], PerExample]:
        """Projected gradients of the training rows' margins, and the probabilities of their labels."""
        found, shares = np.zeros((len(setting.train), self.size)), np.zeros(len(setting.train))
        for indices, batch in setting.batches(setting.train):
            reading = setting.reader.read(batch)
            gradients = reading.gradients(targets.logit_gradients("margin", reading.logits, batch.labels))
            found[indices] = signs(gradients).double().cpu().numpy() / np.sqrt(self.size)
            logits: Tensor = reading.logits.detach().double()
            shares[indices] = targets.probability(logits, batch.labels).cpu().numpy()
        return found, shares
