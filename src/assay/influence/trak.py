"""TRAK: a linearised model in projected gradients, where leaving an example out is one Newton step."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float
from torch import Tensor

from assay.errors import AssayError
from assay.influence import targets
from assay.influence.checkpoints import UNKNOWN_TRAINING, training_run_of
from assay.influence.damping import chosen_damping
from assay.influence.setting import Influence, Setting
from assay.influence.signs import Signs
from assay.influence.stories import CHANGE
from assay.models.textmodel import TextModel
from assay.stories import with_story


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
