"""How long the rest of a study takes, by how long the finished trials took; without any, what there is to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from statistics import fmean

from assay.study.making import is_trained
from assay.study.status import Standing
from assay.study.trials import Asked, Trial, model_folder

LIKENESSES: tuple[Callable[[Trial], Hashable], ...] = (  # the nearest first
    lambda trial: (trial.corpus, trial.kind, trial.asked),
    lambda trial: (trial.kind, trial.asked),
    lambda trial: trial.asked,
    lambda trial: None,
)


def seconds_left(found: Sequence[Standing], jobs: int = 1) -> float | None:
    """What the trials that are neither done nor failed take, so many at once; None where none is done yet.

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
    """How many models are still to be trained."""
    wanted = {model_folder(place, trial) for trial in trials if trial.kind.path is None}
    return sum(not is_trained(folder) for folder in wanted)


def work(trials: Sequence[Trial]) -> list[str]:
    """What there is to explain: texts and explainers of each set of audits, in words."""
    return [f"{number} × ({_explained(asked)})" for asked, number in Counter(trial.asked for trial in trials).items()]


def span(seconds: float) -> str:
    """Seconds as one would say them."""
    for size, name in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 1.5 * size:
            digits = 0 if seconds >= 10 * size else 1
            return f"about {seconds / size:.{digits}f} {name}"
    return f"about {max(1, round(seconds))} second{'s' if seconds >= 1.5 else ''}"


def _explained(asked: Asked) -> str:
    texts = "all test texts" if asked.limit is None else f"{asked.limit} test texts"
    return f"{texts} × {len(asked.explainers)} explainer{'s' if len(asked.explainers) > 1 else ''}"


def _likely(trial: Trial, known: Sequence[Standing]) -> float:
    for likeness in LIKENESSES:
        alike = [each.seconds for each in known if likeness(each.trial) == likeness(trial) and each.seconds is not None]
        if alike:
            return fmean(alike)
    raise AssertionError("all trials are alike in the last way")
