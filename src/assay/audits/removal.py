"""If the examples that a method holds responsible are removed and the model is trained again, what happens?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float

from assay.audits.lds import answered
from assay.errors import AssayError
from assay.influence.retraining import Retrained
from assay.influence.setting import Method, Setting
from assay.metrics.intervals import means
from assay.metrics.performance import Bounded, removal_gain, slope

LOWERED = {"margin": True, "logit": True, "probability": True, "loss": False}  # by removing what supports it


@dataclass(frozen=True)
class Removed:
    """Predicted and real change of the targets by removal of each query's `count` most supporting examples; means."""

    method: str
    count: int
    predicted: Bounded  # change, as the method says
    real: Bounded  # change, after training again
    gain: Bounded  # how much further than by as many random examples
    calibration: float  # the real change for a predicted one of 1
    turned: float | None  # the share of queries whose decision turned; known where the target is the margin


@dataclass(frozen=True)
class Removals:
    """Results of all methods, and of random removals."""

    removed: tuple[Removed, ...]
    chance: Mapping[int, Bounded]  # the change by so many random examples
    left_out: Mapping[str, str]  # why, by the name of a method
    queries: int


@dataclass(frozen=True)
class Removal:
    """Retrains without each decision's most supporting examples; Koh and Liang (2017), section 4.1, for sets."""

    counts: tuple[int, ...] = (5, 20)
    draws: int = 5  # of random examples, the same ones for all queries
    folder: Path | None = None  # where the targets of each training are kept
    seed: int = 0

    def __call__(self, setting: Setting, methods: Mapping[str, Method]) -> Removals:
        if max(self.counts) >= len(setting.train):
            raise AssayError(f"Of {len(setting.train)} examples {max(self.counts)} cannot be removed; ask for fewer.")
        found, left_out = answered(setting, methods)
        retrained = Retrained(setting, self.folder)
        whole = retrained.whole()
        chance = self._by_chance(retrained) - whole
        removed = []
        for name, (influence, _) in found.items():
            sets = np.stack([supporting(influence.scores, count, LOWERED[setting.target]) for count in self.counts])
            expected = (sets * influence.scores).sum(-1)
            real = self._real(retrained, sets) - whole
            gains = removal_gain(real, chance)
            for place, count in enumerate(self.counts):
                turned = (
                    float(((whole > 0) != (whole + real[place] > 0)).mean()) if setting.target == "margin" else None
                )
                removed.append(
                    Removed(
                        name,
                        count,
                        self._bounded(expected[place]),
                        self._bounded(real[place]),
                        self._bounded(gains[place]),
                        slope(expected[place], real[place]),
                        turned,
                    )
                )
        by_chance = {count: self._bounded(chance[:, place].mean(0)) for place, count in enumerate(self.counts)}
        return Removals(tuple(removed), by_chance, left_out, len(whole))

    def _by_chance(self, retrained: Retrained) -> Float[np.ndarray, "D K Q"]:
        """The targets after random removals."""
        rows, random = len(retrained.setting.train), np.random.default_rng(self.seed)
        removed = np.zeros((self.draws, len(self.counts), rows), dtype=bool)
        for own in removed:
            order = random.permutation(rows)
            for place, count in enumerate(self.counts):
                own[place, order[:count]] = True
        return retrained.targets(removed.reshape(-1, rows)).reshape(self.draws, len(self.counts), -1)

    def _real(self, retrained: Retrained, sets: Bool[np.ndarray, "K Q N"]) -> Float[np.ndarray, "K Q"]:
        """The target of each query after the removal of its own examples."""
        counts, queries, rows = sets.shape
        found = retrained.targets(sets.reshape(-1, rows)).reshape(counts, queries, queries)
        return found[:, np.arange(queries), np.arange(queries)]

    def _bounded(self, values: Float[np.ndarray, " Q"]) -> Bounded:
        found = means(values[:, None])
        return Bounded(float(found.mean[0]), float(found.low[0]), float(found.high[0]))


def supporting(scores: Float[np.ndarray, "Q N"], count: int, lowered: bool) -> Bool[np.ndarray, "Q N"]:
    """For each query, the examples without which the target would move furthest against the decision."""
    order = (scores if lowered else -scores).argsort(-1, kind="stable")[:, :count]
    chosen = np.zeros(scores.shape, dtype=bool)
    np.put_along_axis(chosen, order, True, axis=-1)
    return chosen
