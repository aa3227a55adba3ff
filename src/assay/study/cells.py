"""One cell of a table: the mean over the seeds of a column, and the difference from another subject."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from assay.lookup import BASELINES
from assay.metrics.comparisons import ENOUGH, FEWEST, Contrast, by_example, holm, paired, student
from assay.study.finished import Finished
from assay.study.plans import Question
from assay.study.results import Cell, Difference, Over, Row


def cell(question: Question, subject: str, column: Sequence[Finished]) -> Cell | None:
    """A subject's mean over the finished trials of a column; None where none has a number.

    The interval is Student's over seeds; with one seed it is the one over texts that the trial itself has.
    """
    key = (question.audit, subject, question.measure)
    own = [each.findings[key] for each in column if key in each.findings]
    if not own:
        return None
    mean, low, high = student(np.array([each.mean for each in own]))
    over: Over = "seeds"
    if len(own) == 1:
        over, low, high = "texts", own[0].low, own[0].high
    difference = _difference(question, subject, column)
    return Cell(mean, low, high, over, len(own), sum(each.n for each in own), difference)


def adjusted(rows: Sequence[Row]) -> tuple[Row, ...]:
    """The rows with Holm's adjusted p-values over all differences of the table."""
    every = [cell.difference for row in rows for cell in row.cells if cell is not None and cell.difference is not None]
    values = iter(holm([each.p for each in every]))
    return tuple(replace(row, cells=tuple(_with(cell, values) for cell in row.cells)) for row in rows)


def _difference(question: Question, subject: str, column: Sequence[Finished]) -> Difference | None:
    """Over seeds where there are enough, else over texts; chance baselines are not tested against themselves."""
    if subject == question.against or {subject, question.against} <= set(BASELINES):
        return None
    keys = [(question.audit, name, question.measure) for name in (subject, question.against)]
    both = [each for each in column if all(key in each.findings for key in keys)]
    if len(both) >= ENOUGH:
        means = np.array([[each.findings[key].mean for key in keys] for each in both])
        return _judged(paired(means[:, 0], means[:, 1]), "seeds")
    gaps = [each.gaps(question.audit, question.measure, subject, question.against) for each in both]
    if not gaps:
        return None
    contrast = by_example(np.concatenate([each[0] for each in gaps]), np.concatenate([each[1] for each in gaps]))
    return _judged(contrast, "texts") if contrast is not None and contrast.sizes[0] >= FEWEST else None


def _judged(contrast: Contrast | None, over: Over) -> Difference | None:
    if contrast is None:
        return None
    return Difference(contrast.gap, contrast.low, contrast.high, contrast.p, contrast.p, over, contrast.sizes[0])


def _with(cell: Cell | None, values: Iterator[float]) -> Cell | None:
    if cell is None or cell.difference is None:
        return cell
    return replace(cell, difference=replace(cell.difference, adjusted=next(values)))
