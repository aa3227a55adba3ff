"""The questions of a study with their answers as plain numbers: nothing says when, where or how long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Literal

import pyarrow as pa

from assay.metrics.comparisons import SURE

Over = Literal["seeds", "texts"]
State = Literal["failed", "not run"]

MODEL = "model"
"""The audit and the subject of how good a model itself is on the test texts."""

KINDS = {"str": pa.string(), "int": pa.int64(), "float": pa.float64()}


@dataclass(frozen=True)
class Column:
    """A corpus with a kind of model, put to a set of audits; of so many seeds, so many are done and have failed."""

    corpus: str
    model: str
    asked: str  # the set of audits where several could be meant, else nothing
    planned: int
    done: int
    failed: int = 0

    @property
    def title(self) -> str:
        return " · ".join(filter(None, (self.corpus, self.model, self.asked)))


@dataclass(frozen=True)
class Difference:
    """A subject less the one that it is tested against: 95 % interval, p-value, and this adjusted for the table."""

    gap: float
    low: float
    high: float
    p: float
    adjusted: float
    over: Over
    n: int

    @property
    def sure(self) -> bool:
        return self.adjusted <= SURE


@dataclass(frozen=True)
class Cell:
    """A mean over seeds and its 95 % interval, over seeds, or over texts where there is one seed."""

    mean: float
    low: float
    high: float
    over: Over
    seeds: int
    texts: int  # of all seeds together
    difference: Difference | None = None


@dataclass(frozen=True)
class Row:
    """A subject with a cell in each column; None where there is no number."""

    subject: str
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True)
class Missing:
    """A trial without a result."""

    title: str
    state: State


@dataclass(frozen=True)
class Answer:
    """One table: subjects by columns; `rises` is None where no way is better, `against` where nothing was tested."""

    title: str
    audit: str
    measure: str
    rises: bool | None
    against: str | None
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    kinds: tuple[str, ...] = ()  # how far the numbers can be trusted: exact, sample, lower bound, ...
    missing: tuple[Missing, ...] = ()
    notes: tuple[str, ...] = ()  # why some numbers are not there
    label: str = ""  # of the measure; without one, its name with blanks

    @property
    def called(self) -> str:
        """The name of the measure in a sentence."""
        return self.label or self.measure.replace("_", " ")

    @property
    def cells(self) -> tuple[tuple[Row, Column, Cell], ...]:
        """The cells that have a number, row by row."""
        return tuple(
            (row, column, cell)
            for row in self.rows
            for column, cell in zip(self.columns, row.cells, strict=True)
            if cell is not None
        )

    @property
    def differences(self) -> tuple[Difference, ...]:
        return tuple(cell.difference for _, _, cell in self.cells if cell.difference is not None)


@dataclass(frozen=True)
class Study:
    """A whole study: its grid, how many of its trials are done, and its answers."""

    name: str
    corpora: tuple[str, ...]
    models: tuple[str, ...]
    seeds: tuple[int, ...]
    trials: int
    done: int
    answers: tuple[Answer, ...]
    missing: tuple[Missing, ...] = ()


@dataclass(frozen=True)
class Line:
    """One number of one trial over all its texts, with its 95 % interval over them."""

    corpus: str
    model: str
    seed: int
    asked: str  # the name of the set of audits
    audit: str
    subject: str
    measure: str
    mean: float
    low: float
    high: float
    n: int
    kind: str


def long(lines: Sequence[Line]) -> pa.Table:
    """The lines as a table, in their order."""
    schema = pa.schema([(each.name, KINDS[str(each.type)]) for each in fields(Line)])
    return pa.Table.from_pylist([asdict(each) for each in lines], schema=schema)
