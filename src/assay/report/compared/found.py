"""The numbers of audits about models, by the model that each is of, and how they are written."""

from __future__ import annotations

import math
import re

from assay.metrics.measured import measured
from assay.records import Finding, Record
from assay.report.instances import side_by_side
from assay.writing import count, interval, number, percent


def subjects(record: Record, audit: str, measure: str) -> dict[str, Finding]:
    """The findings of a measure over all texts, by subject, in the record's order; only those that hold a number."""
    return {
        f.subject: f
        for f in record.findings
        if (f.audit, f.measure, f.group) == (audit, measure, "all") and f.n > 0 and math.isfinite(f.mean)
    }


def named(record: Record, audit: str, measure: str, beginning: str) -> dict[str, Finding]:
    """Those of the subjects that begin so, as `seed ` or `λ=`; strengths in their order."""
    mine = {name: f for name, f in subjects(record, audit, measure).items() if name.startswith(beginning)}
    return dict(sorted(mine.items(), key=lambda pair: strength(pair[0]) or 0.0)) if beginning == "λ=" else mine


def strength(subject: str) -> float | None:
    """The number in `λ=0.1`, `sparsegen(0.5)` or `entmax(1.5)`; None where a name holds none, as with softmax."""
    inside = re.fullmatch(r"(?:λ=|\w+\()([^()]+)\)?", subject)
    try:
        return None if inside is None else float(inside[1])
    except ValueError:
        return None


def difference(record: Record, audit: str, measure: str, one: str, other: str) -> Finding | None:
    """How much higher one model is than another on the same texts, with its 95 % interval; None without texts."""
    both = side_by_side(record, audit, [f"{measure}:{one}", f"{measure}:{other}"])
    found = measured([f"{measure}_gain"], both[:, :1] - both[:, 1:]) if len(both) else None
    if found is None or found.n[0] == 0:
        return None
    mean, low, high, std = (float(each[0]) for each in (found.mean, found.low, found.high, found.std))
    return Finding(audit, one, f"{measure}_gain", "all", mean, low, high, std, int(found.n[0]))


def spread(found: Finding, places: int = 2) -> str:
    """A mean with its interval: `0.42 (95 % interval 0.40 to 0.44)`."""
    return f"{number(found.mean, places)} (95 % interval {interval(found.low, found.high, places)})"


def shared(found: Finding) -> str:
    """A share as a percentage with its interval."""
    return f"{percent(found.mean)} (95 % interval {interval(100 * found.low, 100 * found.high, 1)} %)"


def points(found: Finding) -> str:
    """A difference of shares in percentage points with its interval and the number of texts."""
    ends = interval(100 * found.low, 100 * found.high, 1)
    return f"{number(100 * found.mean, 1)} points (95 % interval {ends}, n = {count(found.n)})"


def short(value: float) -> str:
    """A λ or α as people read it."""
    return f"{value:g}".replace("-", "−")
