"""Numbers of a record: findings by audit, measure and subject, as text, and numbers text by text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute
from jaxtyping import Float, Int

from assay.metrics.intervals import measured
from assay.records import CHANCE, Finding, Record
from assay.writing import count, evidence, interval, number, percent

RANDOM = "random"
"""What random scores are called as an explainer; those that an audit draws itself are CHANCE."""

BASELINES = (CHANCE, RANDOM)
MODEL = "model"
"""The subject of what an audit finds about the model itself."""

NOT_APPLICABLE, MEASURED = "not applicable", "measured"
"""Grades of an audit that says nothing of this model, and of one without a rule."""


@dataclass(frozen=True)
class Items:
    """What one of the attended items is called, and several of them."""

    one: str
    many: str

    def named(self, text: str) -> str:
        """The text with `{item}` and `{items}` called by their names."""
        return text.replace("{item}", self.one).replace("{items}", self.many)


WORDS, SENTENCES = Items("word", "words"), Items("sentence", "sentences")


def items(record: Record) -> Items:
    """What the attention of the record's model is over; records that do not say so are over words."""
    return SENTENCES if record.summary.get("model", {}).get("items") == SENTENCES.many else WORDS


def stacked(record: Record) -> bool:
    """Whether the record is of a model whose attention is a stack of layers that nothing pools."""
    return bool(record.summary.get("model", {}).get("shape") == "transformer")


def known(record: Record, audit: str, measure: str, subject: str = "attention") -> Finding | None:
    """The finding over all texts, or None where no text has a number."""
    found = record.finding(audit, subject, measure)
    return found if found is not None and found.n > 0 else None


def bounded(record: Record, audit: str, measure: str, subject: str = "attention") -> Finding | None:
    """The finding over all texts, or None where it holds no number or no interval."""
    found = known(record, audit, measure, subject)
    return found if found is not None and all(map(math.isfinite, (found.mean, found.low, found.high))) else None


def over_all(record: Record, audit: str, measure: str) -> list[Finding]:
    """The findings of a measure over all texts, of those that hold a number."""
    return [f for f in record.findings if (f.audit, f.measure, f.group) == (audit, measure, "all") and f.n > 0]


def subjects(record: Record, audit: str, measure: str) -> dict[str, Finding]:
    """The findings of a measure over all texts, by subject, in the record's order; only those that hold a number."""
    return {f.subject: f for f in over_all(record, audit, measure) if math.isfinite(f.mean)}


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


def told(found: Finding) -> str:
    """A mean with what stands behind it: `0.42 (95 % interval 0.40 to 0.44, n = 50)`."""
    return f"{number(found.mean, 2)} ({evidence(found.low, found.high, found.n)})"


def side_by_side(record: Record, audit: str, names: Sequence[str]) -> Float[np.ndarray, "n k"]:
    """The audit's texts in rows and these columns of `instances` beside each other; nan where there is no number."""
    known = set(record.instances.column_names)
    rows = _rows(record, audit, [name for name in names if name in known])
    absent = np.full(rows.num_rows, np.nan)
    there = [rows[name].to_numpy().astype(float) if name in known else absent for name in names]
    return np.stack(there, axis=1) if there else np.empty((rows.num_rows, 0))


@dataclass(frozen=True)
class Extent:
    """The share of each text that is erased down a ranking, and whether that never changes the decision."""

    erased: Float[np.ndarray, " n"]
    never: Float[np.ndarray, " m"]


def extents(record: Record, audit: str, names: Iterable[str], measures: Sequence[str]) -> dict[str, Extent]:
    """Of each ranking that has a number; the one that erases least on average comes first.

    Of equals, the one that changes more decisions. The measures are the share, what older records hold of the texts
    whose decision changes, and whether it never does; where older records hold no share, everything counts as erased.
    """
    found = {}
    for name in names:
        values, older, never = side_by_side(record, audit, [f"{measure}:{name}" for measure in measures]).T
        values = np.where(np.isfinite(values), values, np.where(never == 1, 1.0, older))
        extent = Extent(values[np.isfinite(values)], never[np.isfinite(never)])
        if len(extent.erased):
            found[name] = extent
    ties = {name: each.never.mean() if len(each.never) else 0 for name, each in found.items()}
    ordered = sorted(found, key=lambda name: (round(found[name].erased.mean(), 9), ties[name]))
    return {name: found[name] for name in ordered}


def texts(record: Record, audit: str) -> Int[np.ndarray, " n"]:
    """The number of the example behind each row of `side_by_side`."""
    return np.asarray(_rows(record, audit, ["example"])["example"].to_numpy().astype(int))


def _rows(record: Record, audit: str, names: Sequence[str]) -> pa.Table:
    # an audit of many explainers has thousands of columns; only those that are asked for are filtered
    chosen = record.instances.select(["audit", *names])
    return chosen.filter(pa.compute.equal(chosen["audit"], audit))
