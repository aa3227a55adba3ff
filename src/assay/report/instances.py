"""Numbers text by text: several measures of one audit side by side, so that they can be paired."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute
from jaxtyping import Float, Int

from assay.records import Record


def side_by_side(record: Record, audit: str, names: Sequence[str]) -> Float[np.ndarray, "n k"]:
    """The audit's texts in rows and these columns of `instances` beside each other; nan where there is no number."""
    known = set(record.instances.column_names)
    rows = _rows(record, audit, [name for name in names if name in known])
    absent = np.full(rows.num_rows, np.nan)
    there = [rows[name].to_numpy().astype(float) if name in known else absent for name in names]
    return np.stack(there, axis=1) if there else np.empty((rows.num_rows, 0))


def texts(record: Record, audit: str) -> Int[np.ndarray, " n"]:
    """The number of the example behind each row of `side_by_side`."""
    return np.asarray(_rows(record, audit, ["example"])["example"].to_numpy().astype(int))


def _rows(record: Record, audit: str, names: Sequence[str]) -> pa.Table:
    # an audit of many explainers has thousands of columns; only those that are asked for are filtered
    chosen = record.instances.select(["audit", *names])
    return chosen.filter(pa.compute.equal(chosen["audit"], audit))
