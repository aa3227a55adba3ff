"""Which candidate is audited: the most accurate on dev texts. Nothing here has seen a test text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import mean

from studies.planted.cells import Audited, Taught
from studies.planted.subjects import Subject
from studies.results import Result

Results = Mapping[str, Result]
"""What is finished, by the name of its cell."""

LEARNT = 0.9
"""The accuracy on dev texts from which on a model counts as one that has learnt; others are not audited."""


def tried(subject: Subject, seeds: Sequence[int], done: Results) -> dict[str, float]:
    """The mean dev accuracy over the seeds of each candidate that was taught with all of them, in their order."""
    found = {}
    for candidate in subject.candidates:
        cells = [Taught(subject.name, candidate, seed).name for seed in seeds]
        if all(cell in done for cell in cells):
            found[candidate] = mean(done[cell]["dev"] for cell in cells)
    return found


def missing(subject: Subject, seeds: Sequence[int], done: Results) -> list[Taught]:
    """What is still to be taught before one can choose; a candidate after one without a mistake is not tried."""
    accuracies, wanted = tried(subject, seeds, done), list[Taught]()
    for candidate in subject.candidates:
        if candidate not in accuracies:
            cells = (Taught(subject.name, candidate, seed) for seed in seeds)
            wanted += [cell for cell in cells if cell.name not in done]
            if not subject.at_once:
                break
        elif accuracies[candidate] == 1:
            break
    return wanted


def choice(subject: Subject, seeds: Sequence[int], done: Results) -> str | None:
    """The candidate with the highest mean dev accuracy, the first of several; None while some are to be taught."""
    if missing(subject, seeds, done):
        return None
    accuracies = tried(subject, seeds, done)
    return max(accuracies, key=accuracies.__getitem__)  # max gives the first


def ready(subject: Subject, seeds: Sequence[int], done: Results) -> Iterator[Taught | Audited]:
    """The cells that can be made now."""
    yield from missing(subject, seeds, done)
    chosen = choice(subject, seeds, done)
    if chosen is not None:
        for seed in seeds:
            taught = done[Taught(subject.name, chosen, seed).name]
            cells = (Audited(subject.name, chosen, seed, name) for name in subject.corpora if learnt(taught, name))
            yield from (cell for cell in cells if cell.name not in done)


def learnt(taught: Result, corpus: str) -> bool:
    """Whether a model that was taught is right often enough on the dev texts of a corpus to say something."""
    return bool(taught["each"][corpus] >= LEARNT)
