"""Methods of influence against training again: linear datamodelling score, and removal of supporting examples."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float

from assay import progress
from assay.errors import AssayError
from assay.influence.retraining import Retrained, seeded, subsets
from assay.influence.setting import Influence, Method, Setting
from assay.metrics.intervals import means
from assay.metrics.performance import Bounded, ceiling, lds_interval, removal_gain, slope


@dataclass(frozen=True)
class Score:
    """The linear datamodelling score of one method, for models retrained without a share of the examples."""

    method: str
    share: float  # removed
    lds: Bounded  # the mean of the rank correlations, 1 is perfect
    seconds: float  # that the method took
    covered: float  # the share of parameters that it looks at


@dataclass(frozen=True)
class Scored:
    """Scores of all methods, and the ceiling: how well models of other seeds predict each other."""

    scores: tuple[Score, ...]
    ceilings: Mapping[float, Bounded]  # by share removed; none where only one seed was trained
    left_out: LeftOut
    subsets: int
    queries: int


@dataclass(frozen=True)
class Lds:
    """Linear datamodelling score (Park et al., 2023, TRAK): prediction of models retrained without random subsets."""

    shares: tuple[float, ...] = (0.5, 0.05)  # removed
    subsets: int = 40  # trainings for each share
    seeds: tuple[int, ...] = ()  # of other trainings, to see how far luck goes; each costs as many trainings
    folder: Path | None = None  # where the targets of each training are kept
    seed: int = 0

    def __call__(self, setting: Setting, methods: Mapping[str, Method]) -> Scored:
        found, left_out = answered(setting, methods)
        scores, ceilings = [], {}
        for share in self.shares:
            removed = subsets(self.subsets, len(setting.train), share, self.seed)
            targets = Retrained(setting, self.folder).targets(removed)
            for name, (influence, seconds) in found.items():
                agreed = lds_interval(influence.scores, removed, targets, self.seed)
                scores.append(Score(name, share, agreed, seconds, influence.covered))
            others = [self._other(setting, seed).targets(removed) for seed in self.seeds]
            if others:
                ceilings[share] = ceiling(np.stack([targets, *others]), self.seed)
        return Scored(tuple(scores), ceilings, left_out, self.subsets, len(setting.queries))

    def _other(self, setting: Setting, seed: int) -> Retrained:
        assert setting.training_run is not None
        return Retrained(replace(setting, training_run=seeded(setting.training_run, seed)), self.folder)


Answered = dict[str, tuple[Influence, float]]
"""The scores of each method, and the seconds that it took."""

LeftOut = dict[str, str]
"""Why a method was left out, by its name."""


def answered(setting: Setting, methods: Mapping[str, Method]) -> tuple[Answered, LeftOut]:
    """The scores and seconds of each method, and why some were left out."""
    found: Answered = {}
    left_out: LeftOut = {}
    with progress.bar() as shown:
        task = shown.add_task("methods", total=len(methods))
        for name, method in methods.items():
            shown.update(task, description=name)
            begun = time.perf_counter()
            try:
                reason = method.unfit(setting)
                if reason is None:
                    found[name] = method(setting), time.perf_counter() - begun
            except AssayError as fault:
                reason = str(fault)
            if reason is not None:
                left_out[name] = reason
            shown.advance(task)
    return found, left_out


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
    left_out: LeftOut
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
            predicted = (sets * influence.scores).sum(-1)
            real = self._real(retrained, sets) - whole
            gains = removal_gain(real, chance)
            for count, expected, moved, gain in zip(self.counts, predicted, real, gains, strict=True):
                bounds = _bounded(expected), _bounded(moved), _bounded(gain)
                turned = float(((whole > 0) != (whole + moved > 0)).mean()) if setting.target == "margin" else None
                removed.append(Removed(name, count, *bounds, slope(expected, moved), turned))
        by_chance = dict(zip(self.counts, map(_bounded, chance.mean(0)), strict=True))
        return Removals(tuple(removed), by_chance, left_out, len(whole))

    def _by_chance(self, retrained: Retrained) -> Float[np.ndarray, "D K Q"]:
        """The targets after random removals."""
        rows, random = len(retrained.setting.train), np.random.default_rng(self.seed)
        ranks = np.stack([random.permutation(rows).argsort() for _ in range(self.draws)])
        removed = ranks[:, None] < np.array(self.counts)[:, None]
        return retrained.targets(removed.reshape(-1, rows)).reshape(self.draws, len(self.counts), -1)

    def _real(self, retrained: Retrained, sets: Bool[np.ndarray, "K Q N"]) -> Float[np.ndarray, "K Q"]:
        """The target of each query after the removal of its own examples."""
        counts, queries, rows = sets.shape
        found = retrained.targets(sets.reshape(-1, rows)).reshape(counts, queries, queries)
        return found[:, np.arange(queries), np.arange(queries)]


def _bounded(values: Float[np.ndarray, " Q"]) -> Bounded:
    found = means(values[:, None])
    return Bounded(float(found.mean[0]), float(found.low[0]), float(found.high[0]))


def supporting(scores: Float[np.ndarray, "Q N"], count: int, lowered: bool) -> Bool[np.ndarray, "Q N"]:
    """For each query, the examples without which the target would move furthest against the decision."""
    order = (scores if lowered else -scores).argsort(-1, kind="stable")
    return np.less(order.argsort(-1), count)
