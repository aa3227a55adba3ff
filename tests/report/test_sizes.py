"""A report stays small however many texts were audited."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa

from assay.records import Record
from assay.report.audit import render
from tests.report.synthetic import FAITHFUL

MEGABYTE = 1_000_000


def repeated(record: Record, times: int) -> Record:
    """The record with all its texts so many times, each time under numbers of their own."""
    size = record.examples.num_rows
    tables = []
    for table in (record.examples, record.instances):
        numbers = np.concatenate([table["example"].to_numpy() + size * time for time in range(times)])
        place = table.column_names.index("example")
        tables.append(pa.concat_tables([table] * times).set_column(place, "example", pa.array(numbers)))
    return replace(record, examples=tables[0], instances=tables[1])


def test_a_usual_report_is_below_two_megabytes(make: Callable[..., Record]) -> None:
    record = make(count=220, sentences=8, audits=("permutation", "adversary", "single_weight", *FAITHFUL))
    assert len(render(record).encode()) < 2 * MEGABYTE


def test_a_report_over_25000_texts_is_below_five_megabytes(make: Callable[..., Record]) -> None:
    record = repeated(make(count=100, sentences=12), 250)
    text = render(record)
    assert record.examples.num_rows == 25_000
    assert '"total":25000' in text
    assert len(text.encode()) < 5 * MEGABYTE
