"""Do the scores of training examples predict what a model becomes when many of them are removed?"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from assay import progress
from assay.errors import AssayError
from assay.influence.retraining import Retrained, seeded, subsets
from assay.influence.setting import Influence, Method, Setting
from assay.metrics.performance import Bounded, ceiling, lds_interval


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
    left_out: Mapping[str, str]  # why, by the name of a method
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


def answered(
    setting: Setting, methods: Mapping[str, Method]
) -> tuple[dict[str, tuple[Influence, float]], dict[str, str]]:
    """The scores and seconds of each method, and why some were left out."""
    found: dict[str, tuple[Influence, float]] = {}
    left_out: dict[str, str] = {}
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
