"""Predicts with a generated explanation: a writer, and where the mode needs it, a decider."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assay.data.explained import Explained
from assay.errors import AssayError
from assay.rationales.text.deciders import Candidates, Labels, read, scored
from assay.rationales.text.modes import BECAUSE, Task, mode_of
from assay.rationales.text.writer import Writer


@dataclass(frozen=True)
class Answers:
    """A label for each item (−1 where none was generated), its explanation, and those of all labels where generated."""

    labels: Labels
    explanations: tuple[str, ...]
    candidates: tuple[tuple[str, ...], ...] | None = None


@dataclass(frozen=True)
class TextExplainer:
    """Predicts and explains in one of four modes; a decider may read the example `beside` each explanation."""

    mode: str
    task: Task
    writer: Writer
    decider: Writer | None = None
    beside: bool = False

    def __call__(self, items: Sequence[Explained], beams: int = 1) -> Answers:
        """Predictions with explanations."""
        mode, task = mode_of(self.mode), self.task
        if mode.decides == "scorer":
            candidates = candidates_of(self.writer, task, items, beams)
            labels = self.decided(items, candidates)
            chosen = tuple(each[label] for each, label in zip(candidates, labels, strict=True))
            return Answers(labels, chosen, candidates)
        written, _ = self.writer([mode.source("", task.asked(item)) for item in items], beams)
        if mode.decides == "reader":
            return Answers(self.decided(items, [(text,) for text in written]), tuple(written))
        split = [text.partition(f" {BECAUSE} ") for text in written]
        known = {name: label for label, name in enumerate(task.words)}
        labels = np.array([known.get(start.strip(), -1) for start, _, _ in split])
        return Answers(labels, tuple(why for _, _, why in split))

    def decided(self, items: Sequence[Explained], candidates: Candidates) -> Labels:
        """The labels predicted from explanations: one for each item, or one for each of its labels."""
        if self.decider is None:
            raise AssayError(f"In the mode {self.mode!r} nothing decides by the explanation; use a reader.")
        if mode_of(self.mode).decides == "scorer":
            return scored(self.decider, self.task, items, candidates, self.beside)
        return read(self.decider, self.task, items, [why for (why,) in candidates])

    def labels_alone(self, items: Sequence[Explained]) -> Labels:
        """Labels without explanations, from bare sources; Narang et al. (2020)."""
        return self.writer.chosen([self.task.asked(item) for item in items], self.task.words)


def candidates_of(
    writer: Writer, task: Task, items: Sequence[Explained], beams: int = 1
) -> tuple[tuple[str, ...], ...]:
    """An explanation of each item for each label."""
    source, count = mode_of("label_specific").source, len(task.words)
    asked = [source(task.named(item, label), task.asked(item)) for item in items for label in range(count)]
    written, _ = writer(asked, beams)
    return tuple(tuple(written[start : start + count]) for start in range(0, len(written), count))
