"""TracIn: influence as gradient products summed over the steps or checkpoints of training."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from assay.errors import AssayError, unknown
from assay.influence import targets
from assay.influence.damping import chosen_damping
from assay.influence.projection import Signs, summarised
from assay.influence.setting import Influence, Setting
from assay.influence.similarity import Vectors, dots, over_train, products, query_gradients, shares, squares
from assay.influence.stories import CHANGE
from assay.influence.training_run import TrainingRun
from assay.models.textmodel import TextModel
from assay.stories import with_story

# Checkpoints: a training at some of its steps.


UNKNOWN_TRAINING = "how the model was trained is not known"


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
            found.append(Checkpoint(deepcopy(network).eval(), lengths[number], rate, adam_spread(network, optimiser)))

    training_run.learn(watch=watch)
    return found


def adam_spread(network: nn.Module, optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The square roots of Adam's second moments; nothing for another optimiser."""
    found: dict[str, Tensor] = {}
    groups: dict[int, dict[str, Any]] = {
        id(each): group for group in optimiser.param_groups for each in group["params"]
    }
    for name, parameter in network.named_parameters():
        state = optimiser.state.get(parameter, {})
        moment = state.get("max_exp_avg_sq", state.get("exp_avg_sq"))
        if moment is not None:
            options = groups[id(parameter)]
            root = (1 - options["betas"][1] ** float(state["step"])) ** 0.5
            found[name] = moment.detach().sqrt() / root + options["eps"]
    return found


def training_run_of(setting: Setting) -> TrainingRun:
    """The training of the rows of the setting, or an error where it is unknown."""
    if setting.training_run is None:
        raise AssayError(f"This method cannot be used: {UNKNOWN_TRAINING}.")
    if len(setting.training_run.rows) != len(setting.train):
        raise AssayError("The training rows are not those that the model was trained on; give these.")
    return setting.training_run


METRICS = ("plain", "adam")


@with_story("TracIn", "Pruthi et al. (2020), equation 4", like=CHANGE)
@dataclass(frozen=True)
class TracIn:
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

    def unfit(self, setting: Setting) -> str | None:
        """Where the training is unknown: it is repeated."""
        return UNKNOWN_TRAINING if setting.training_run is None else None

    def __call__(self, setting: Setting) -> Influence:
        found = np.zeros((len(setting.queries), len(setting.train)))
        for each in self.passed(setting):
            scale = self._scale(each)

            def divided(vectors: Vectors, scale: Mapping[str, Tensor] = scale) -> Vectors:
                return {name: vector * scale[name] if scale else vector for name, vector in vectors.items()}

            found += self.length(each) * dots(each.setting(setting), divided)
        return Influence(found * shares(setting), notes=self._notes())

    def own(self, setting: Setting) -> Float[np.ndarray, " N"]:
        """The rise of each loss without the example's own contributions to training."""
        found = np.zeros(len(setting.train))
        for each in self.passed(setting):
            roots = {name: scale.sqrt() for name, scale in self._scale(each).items()}
            found += self.length(each) * over_train(each.setting(setting), partial(squares, scales=roots))
        return np.asarray(found * shares(setting))

    def passed(self, setting: Setting) -> list[Checkpoint]:
        """The checkpoints."""
        return checkpoints(training_run_of(setting), self.checkpoints)

    def length(self, checkpoint: Checkpoint) -> float:
        """The factor of the products at a checkpoint."""
        return checkpoint.rate * (checkpoint.stands_for if self.steps else 1)

    def _scale(self, checkpoint: Checkpoint) -> dict[str, Tensor]:
        """Adam's preconditioner, in its metric."""
        return {} if self.metric == "plain" else {name: 1 / each for name, each in checkpoint.spread.items()}

    def _notes(self) -> dict[str, Any]:
        read = "the length of an Adam step" if self.metric == "adam" else "what gradients are multiplied by"
        return {"checkpoints": self.checkpoints, "metric": self.metric, "the learning rate is read as": read}


@with_story("TracIn by random projection", "Pruthi et al. (2020), section 3.4", like=CHANGE)
@dataclass(frozen=True)
class TracInProjected:
    """TracIn over all parameters by random sketches of gradients, with their standard error.

    Pruthi et al. (2020), section 3.4. differs from the paper: they project gradients of the last layer.
    """

    checkpoints: int = 6
    size: int = 1_024  # numbers a summary
    steps: bool = True
    seed: int = 0

    def unfit(self, setting: Setting) -> str | None:
        """Where the training is unknown: it is repeated."""
        return UNKNOWN_TRAINING if setting.training_run is None else None

    def __call__(self, setting: Setting) -> Influence:
        found, variance = np.zeros((2, len(setting.queries), len(setting.train)))
        method = TracIn(self.checkpoints, steps=self.steps)
        for number, each in enumerate(method.passed(setting)):
            signs = Signs.drawn(setting.parameters, self.size, self.seed + number)
            asked, learnt = summaries(each.setting(setting), signs)
            mean, spread = summarised(asked, learnt)
            found += method.length(each) * mean
            variance += method.length(each) ** 2 * spread
        errors = np.sqrt(variance) * shares(setting)
        notes = {"checkpoints": self.checkpoints, "size": self.size, "errors": "of the projection alone"}
        return Influence(found * shares(setting), errors=errors, notes=notes)


def summaries(setting: Setting, signs: Signs) -> tuple[Float[np.ndarray, "Q K"], Float[np.ndarray, "N K"]]:
    """Sketches of the gradients of the queries' targets and of the training rows' losses."""
    size = next(iter(signs.rows.values())).shape[1]
    asked, learnt = np.zeros((len(setting.queries), size)), np.zeros((len(setting.train), size))
    for found, rows in ((asked, setting.queries), (learnt, setting.train)):
        for indices, batch in setting.batches(rows):
            reading = setting.reader.read(batch)
            wanted = (
                setting.query_logit_gradients(indices, reading)
                if found is asked
                else setting.train_logit_gradients(batch, reading)
            )
            found[indices] = signs(reading.gradients(wanted)).double().cpu().numpy()
    return asked, learnt


@dataclass(frozen=True)
class TracInIdeal:
    """TracIn at every step, for the examples of its batch; Pruthi et al. (2020), equation 2.

    As long as steps are short, they add up to what the training changed. The learning rate is that of plain descent.
    """

    def unfit(self, setting: Setting) -> str | None:
        """Where the training is unknown: it is repeated."""
        return UNKNOWN_TRAINING if setting.training_run is None else None

    def __call__(self, setting: Setting) -> Influence:
        training_run = training_run_of(setting)
        found = np.zeros((len(setting.queries), len(setting.train)))
        with torch.random.fork_rng():
            groups = list(training_run.groups())
        known: dict[str, Setting] = {}

        def watch(number: int, network: TextModel, optimiser: torch.optim.Optimizer) -> None:
            if number < len(groups):
                rate, group = float(optimiser.param_groups[0]["lr"]), groups[number]
                network.eval()  # without dropout
                part = setting.weights[group] / setting.weights[group].sum()
                if "now" not in known:  # it is the same network at every step
                    known["now"] = replace(setting, network=network)
                found[:, group] += rate * part * _step(known["now"], group)
                network.train()

        training_run.learn(watch=watch)
        return Influence(found, notes={"steps": len(groups)})


def _step(setting: Setting, group: Int[np.ndarray, " n"]) -> Float[np.ndarray, "Q n"]:
    """Products of the query gradients with those of the rows of one step."""
    vectors, rows = query_gradients(setting), [setting.train[index] for index in group]
    found = np.zeros((len(setting.queries), len(rows)))
    for indices, batch in setting.batches(rows):
        reading = setting.reader.read(batch)
        gradients = reading.gradients(setting.train_logit_gradients(batch, reading))
        found[:, indices] = products(gradients, vectors).double().cpu().numpy()
    return found


# TRAK: a linearised model in projected gradients, where leaving an example out is one Newton step.


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
        if self.models > 1 and setting.training_run is None:
            return f"{UNKNOWN_TRAINING}, so there is one model; leave the number of models out"
        if self.damping == 0 and self.size >= len(setting.train):
            return f"{len(setting.train)} examples do not determine {self.size} numbers without damping"
        return None

    def __call__(self, setting: Setting) -> Influence:
        damping = chosen_damping(setting) if self.damping is None else self.damping
        kernels, rests = [], []
        for number, network in enumerate(self._networks(setting)):
            kernel, rest = self._one(replace(setting, network=network), self.seed + number, damping)
            kernels.append(kernel)
            rests.append(rest)
        scores = -np.mean(kernels, 0) * np.mean(rests, 0) * setting.weights
        notes = {"models": self.models, "size": self.size, "damping": damping}
        errors = None
        if self.models > 1:
            each = -np.stack(kernels) * np.stack(rests)[:, None] * setting.weights
            errors = each.std(0, ddof=1) / np.sqrt(self.models)
        return Influence(scores, errors=errors, notes=notes)

    def own(self, setting: Setting) -> Float[np.ndarray, " N"]:
        """The predicted rise of each training example's own loss if it were removed, by the first model."""
        damping = chosen_damping(setting) if self.damping is None else self.damping
        learnt, shares = _features(setting, self._signs(setting, self.seed))
        inverse = self._inverse(setting, learnt, shares, damping)
        return np.asarray((learnt @ inverse * learnt).sum(1) * (1 - shares) ** 2 * setting.weights)

    def _signs(self, setting: Setting, seed: int) -> Signs:
        return Signs.drawn(setting.parameters, self.size, seed)

    def _networks(self, setting: Setting) -> list[TextModel]:
        """The model, and others trained with other seeds."""
        others = []
        for number in range(1, self.models):
            training_run = training_run_of(setting)
            seed = training_run.training.seed + number
            others.append(replace(training_run, training=replace(training_run.training, seed=seed)).learn())
        return [setting.network, *others]

    def _one(
        self, setting: Setting, seed: int, damping: float
    ) -> tuple[Float[np.ndarray, "Q N"], Float[np.ndarray, " N"]]:
        """Scores by one model: products in the curvature's metric, and 1 − p of each example's label."""
        signs = self._signs(setting, seed)
        learnt, shares = _features(setting, signs)
        asked = np.zeros((len(setting.queries), self.size))
        for indices, batch in setting.batches(setting.queries):
            reading = setting.reader.read(batch)
            found = signs(reading.gradients(setting.query_logit_gradients(indices, reading)))
            asked[indices] = found.double().cpu().numpy() / np.sqrt(self.size)
        return asked @ self._inverse(setting, learnt, shares, damping) @ learnt.T, 1 - shares

    def _inverse(
        self, setting: Setting, learnt: Float[np.ndarray, "N K"], shares: Float[np.ndarray, " N"], damping: float
    ) -> Float[np.ndarray, "K K"]:
        """The inverse of N times the damped Gauss–Newton curvature of the mean loss."""
        bent = float((setting.weights * shares * (1 - shares)).mean())
        curvature = bent * learnt.T @ learnt + len(learnt) * damping * np.eye(self.size)
        return np.linalg.pinv(curvature, rcond=1e-12, hermitian=True)


def _features(setting: Setting, signs: Signs) -> tuple[Float[np.ndarray, "N K"], Float[np.ndarray, " N"]]:
    """Projected gradients of the training rows' margins, and the probabilities of their labels."""
    size = next(iter(signs.rows.values())).shape[1]
    found, shares = np.zeros((len(setting.train), size)), np.zeros(len(setting.train))
    for indices, batch in setting.batches(setting.train):
        reading = setting.reader.read(batch)
        gradients = reading.gradients(targets.logit_gradients("margin", reading.logits, batch.labels))
        found[indices] = signs(gradients).double().cpu().numpy() / np.sqrt(size)
        logits: Tensor = reading.logits.detach().double()
        shares[indices] = targets.probability(logits, batch.labels).cpu().numpy()
    return found, shares
