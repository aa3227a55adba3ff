"""One erased item against another: does the decision change, and by how much does the output move?"""

from __future__ import annotations

from dataclasses import dataclass

from assay.records import Record
from assay.report.items import items
from assay.report.known import known
from assay.writing import count, interval, percent

AUDIT = "single_weight"
TOPS = {
    "attention": "the most attended {item}",
    "gradient": "the {item} of the highest gradient",
    "product": "the {item} of the highest gradient × attention",
}
"""The item that is erased, by what puts it on top."""

CELLS = ("both", "top_only", "other_only", "neither")


@dataclass(frozen=True)
class Flips:
    """One table of Serrano and Smith (2019), table 2: shares of texts as text, by what changes the decision."""

    top: str
    other: str
    n: str
    both: str
    top_only: str
    other_only: str
    neither: str


def flip_tables(record: Record) -> list[Flips]:
    """A table of decision flips for each way of choosing the item on top; none where the audit was not run."""
    noun = items(record)
    tables = []
    for subject, top in TOPS.items():
        found = [each for cell in CELLS if (each := known(record, AUDIT, cell, subject)) is not None]
        if len(found) == len(CELLS):
            shares = [percent(each.mean) for each in found]
            tables.append(Flips(noun.named(top), noun.named("a random other {item}"), count(found[0].n), *shares))
    return tables


def alone(record: Record) -> str | None:
    """How often erasing the most attended item alone changes the decision, beside a random other one."""
    both, top, other, smaller = (known(record, AUDIT, name) for name in (*CELLS[:3], "smaller"))
    if both is None or top is None or other is None or smaller is None:
        return None
    noun = items(record)
    spread = interval(100 * top.low, 100 * top.high, 1)
    return (
        f"Erasing the most attended {noun.one} alone changed the decision in {percent(both.mean + top.mean)} of texts "
        f"(n = {count(top.n)}), erasing a random other {noun.one} in {percent(both.mean + other.mean)}; only the first "
        f"did in {percent(top.mean)} (95 % interval {spread} %). In {percent(smaller.mean)} of texts the most attended "
        f"{noun.one} moved the output less than the other one."
    )
