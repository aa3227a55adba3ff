"""A record whose texts hold what could break a page."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from assay.records import Record

WORDS = (
    "</script><script>alert(1)</script>",
    "<img/src=x/onerror=alert(2)>",
    "\u202eevil\u2028\u2029",
    "a\x00b",
    "=HYPERLINK(1)",
    "../../etc/passwd",
    "{{7*7}}",
    "<!--",
    "x" * 10_000_000,
)


def hostile(record: Record) -> Record:
    """The first examples of a record, each with one hostile word in text and question, the last one of 10 MB."""
    texts, size = [f"fine {word}" for word in WORDS], len(WORDS)
    table = record.examples.slice(0, size)
    columns = {name: pa.array([[0.5, 0.2]] * size) for name in table.column_names if name.startswith("score:")}
    columns |= {"text": pa.array(texts), "query": pa.array(texts), "starts": pa.array([[0, 5]] * size)}
    columns |= {"ends": pa.array([[4, len(text)] for text in texts]), "adversary": pa.array([[0.1, 0.9]] * size)}
    for name, values in columns.items():
        table = table.set_column(table.column_names.index(name), name, values)
    return replace(record, examples=table)
