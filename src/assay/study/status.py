"""Status of a study: which trials are done, failed and why, in progress, or missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from assay.study.folder import Folder
from assay.study.trials import Trial

STATES = ("done", "failed", "under way", "missing")


@dataclass(frozen=True)
class TrialStatus:
    """The status of one trial."""

    trial: Trial
    state: str  # one of STATES
    reason: str | None = None  # why it failed
    seconds: float | None = None  # that it took


def trial_statuses(trials: Sequence[Trial], folder: Folder) -> list[TrialStatus]:
    """The status of each trial, without duplicates."""
    return [_status_of(trial, folder) for trial in unique(trials)]


def unique(trials: Sequence[Trial]) -> list[Trial]:
    """Trials without duplicates, by identity."""
    return list({trial.identity: trial for trial in trials}.values())


def counted(found: Iterable[TrialStatus]) -> dict[str, int]:
    """The number of trials in each state."""
    counts = Counter(each.state for each in found)
    return {state: counts[state] for state in STATES}


def reasons(found: Iterable[TrialStatus]) -> dict[str, list[str]]:
    """The failed trials, by reason."""
    told: dict[str, list[str]] = {}
    for each in found:
        if each.reason is not None:
            told.setdefault(each.reason, []).append(each.trial.title)
    return told


def _status_of(trial: Trial, folder: Folder) -> TrialStatus:
    mark = folder.done(trial)
    if mark is not None:
        return TrialStatus(trial, "done", seconds=float(mark["seconds"]) if "seconds" in mark else None)
    if folder.claimed(trial):  # again, perhaps, after it failed
        return TrialStatus(trial, "under way")
    reason = folder.reason(trial)
    return TrialStatus(trial, "missing" if reason is None else "failed", reason)
