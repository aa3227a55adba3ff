"""Which examples a page shows: those of strongest disagreement, of best agreement, and some at random."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from assay.records import Record
from assay.report.yardsticks import REFERENCE

EACH = 8
SHORT = 5
"""Rankings of fewer tokens agree or disagree perfectly by accident, so the extremes leave them out."""


@dataclass(frozen=True)
class Choice:
    """One group of examples and the rule by which they were chosen; `rows` are places in their table."""

    title: str
    rule: str
    rows: tuple[int, ...]


@dataclass(frozen=True)
class Ranking:
    """A number for each row of the examples table; nan where there is none."""

    name: str
    values: Float[np.ndarray, " N"]


def choose(record: Record) -> list[Choice]:
    """At most 24 examples in groups; each example stands in one group only."""
    total, ranking = record.examples.num_rows, _ranking(record)
    groups = [] if ranking is None else _extremes(record, ranking)
    taken = [row for group in groups for row in group.rows]
    seed = int(record.summary.get("plan", {}).get("seed") or 0)
    rest = np.setdiff1d(np.arange(total), np.array(taken, dtype=int))
    size = min(len(rest), EACH if groups else 3 * EACH)
    drawn = np.random.default_rng(seed).choice(rest, size, replace=False)
    rule = f"{size} of {'the others' if groups else 'all examples'}, drawn with seed {seed}"
    groups.append(Choice("At random", rule, tuple(np.sort(drawn).tolist())))
    return [group for group in groups if group.rows]


def _extremes(record: Record, ranking: Ranking) -> list[Choice]:
    lengths = record.examples["starts"].combine_chunks().value_lengths().to_numpy(zero_copy_only=False)
    defined = np.isfinite(ranking.values)
    long = defined & (lengths >= SHORT)
    limit = f" among texts of at least {SHORT} tokens" if long.sum() >= 2 * EACH else ""
    candidates = np.flatnonzero(long if limit else defined)
    ordered = candidates[np.argsort(ranking.values[candidates], kind="stable")]
    low = ordered[: min(EACH, len(ordered) // 2)]
    high = ordered[len(ordered) - min(EACH, len(ordered) - len(low)) :][::-1]
    return [
        Choice("Strongest disagreement", f"the {len(low)} with the lowest {ranking.name}{limit}", _places(low)),
        Choice("Best agreement", f"the {len(high)} with the highest {ranking.name}{limit}", _places(high)),
    ]


def _places(rows: Int[np.ndarray, " K"]) -> tuple[int, ...]:
    return tuple(rows.tolist())


def _ranking(record: Record) -> Ranking | None:
    """Attention's AUPRC, else its τ with leave-one-out, else the first measure of that kind that there is."""
    wanted = ["auprc:attention", f"tau:attention~{REFERENCE}", f"tau:{REFERENCE}~attention"]
    others = [name for name in record.instances.column_names if name.startswith(("auprc:", "tau:"))]
    for name in wanted + others:
        kind, subject = name.split(":", 1)
        table = record.audit_rows("truth" if kind == "auprc" else "agreement")
        if name in table.column_names:
            measured = dict(zip(table["example"].to_pylist(), table[name].to_numpy().astype(float), strict=True))
            values = [measured.get(example, np.nan) for example in record.examples["example"].to_pylist()]
            title = f"AUPRC of {subject}" if kind == "auprc" else f"τ of {subject.replace('~', ' with ')}"
            return Ranking(title, np.array(values, dtype=float))
    return None
