"""Estimates the remaining time of a study from finished trials, or else describes the remaining work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from statistics import fmean

from assay.study.status import TrialStatus
from assay.study.trial_record import is_trained
from assay.study.trials import AuditSet, Trial, model_folder

LIKENESSES: tuple[Callable[[Trial], Hashable], ...] = (  # the nearest first
    lambda trial: (trial.corpus, trial.kind, trial.audit_set),
    lambda trial: (trial.kind, trial.audit_set),
    lambda trial: trial.audit_set,
    lambda trial: None,
)


def seconds_left(found: Sequence[TrialStatus], jobs: int = 1) -> float | None:
    """Estimated seconds for the unfinished trials, so many at once; None where none is finished yet.

    Each is taken to last as long as, on average, those finished ones that are most like it.
    """
    left = [each.trial for each in found if each.state in ("missing", "under way")]
    if not left:
        return 0.0
    known = [each for each in found if each.seconds is not None]
    if not known:
        return None
    lasting = [_likely(trial, known) for trial in left]
    return max(sum(lasting) / jobs, max(lasting))


def untrained(trials: Sequence[Trial], place: Path) -> int:
    """The number of models still to be trained."""
    wanted = {model_folder(place, trial) for trial in trials if trial.kind.path is None}
    return sum(not is_trained(folder) for folder in wanted)


def work(trials: Sequence[Trial]) -> list[str]:
    """The work of each set of audits in words: texts and explainers."""
    return [
        f"{number} × ({_explained(audit_set)})"
        for audit_set, number in Counter(trial.audit_set for trial in trials).items()
    ]


def span(seconds: float) -> str:
    """A duration in words."""
    for size, name in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 1.5 * size:
            digits = 0 if seconds >= 10 * size else 1
            return f"about {seconds / size:.{digits}f} {name}"
    return f"about {max(1, round(seconds))} second{'s' if seconds >= 1.5 else ''}"


def _explained(audit_set: AuditSet) -> str:
    texts = "all test texts" if audit_set.limit is None else f"{audit_set.limit} test texts"
    return f"{texts} × {len(audit_set.explainers)} explainer{'s' if len(audit_set.explainers) > 1 else ''}"


def _likely(trial: Trial, known: Sequence[TrialStatus]) -> float:
    for likeness in LIKENESSES:
        alike = [each.seconds for each in known if likeness(each.trial) == likeness(trial) and each.seconds is not None]
        if alike:
            return fmean(alike)
    raise AssertionError("all trials are alike in the last way")
