"""All findings of a study in one long table, for whoever asks something else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields

import pyarrow as pa

KINDS = {"str": pa.string(), "int": pa.int64(), "float": pa.float64()}


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
