"""How far a study is: what is done, what failed and why, what is under way, and what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from assay.study.folder import Folder
from assay.study.running import unique
from assay.study.trials import Trial

STATES = ("done", "failed", "under way", "missing")


@dataclass(frozen=True)
class Standing:
    """How far one trial is."""

    trial: Trial
    state: str  # one of STATES
    reason: str | None = None  # why it failed
    seconds: float | None = None  # that it took


def standings(trials: Sequence[Trial], folder: Folder) -> list[Standing]:
    """How far each trial is, each once, by what it is."""
    return [_standing(trial, folder) for trial in unique(trials)]


def counted(found: Iterable[Standing]) -> dict[str, int]:
    """How many trials there are of each state."""
    counts = Counter(each.state for each in found)
    return {state: counts[state] for state in STATES}


def reasons(found: Iterable[Standing]) -> dict[str, list[str]]:
    """The trials that failed, by why they did."""
    told: dict[str, list[str]] = {}
    for each in found:
        if each.reason is not None:
            told.setdefault(each.reason, []).append(each.trial.title)
    return told


def _standing(trial: Trial, folder: Folder) -> Standing:
    mark = folder.done(trial)
    if mark is not None:
        return Standing(trial, "done", seconds=float(mark["seconds"]) if "seconds" in mark else None)
    if folder.claimed(trial):  # again, perhaps, after it failed
        return Standing(trial, "under way")
    reason = folder.reason(trial)
    return Standing(trial, "missing" if reason is None else "failed", reason)
