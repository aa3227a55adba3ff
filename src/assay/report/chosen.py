"""Which examples a page shows: those of strongest disagreement, of best agreement, most disputed, some at random."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Float, Int

from assay.records import Record
from assay.report.instances import side_by_side, texts
from assay.report.likely import trusts
from assay.report.yardsticks import NULL, REFERENCE

MOST = 24
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


def choose(record: Record, most: int = MOST) -> list[Choice]:
    """At most `most` examples in groups of about equal size; each example stands in one group only."""
    ranking, dispute = _ranking(record), _dispute(record)
    kinds = 1 + 2 * (ranking is not None) + (dispute is not None)
    each = max(1, most // kinds)
    groups = [] if ranking is None else _extremes(record, ranking, each)
    read = _read(record)
    groups += [] if dispute is None else [_disputed(record, dispute, each, _taken(groups))]
    seed = int(record.summary.get("plan", {}).get("seed") or 0)
    rest = np.setdiff1d(np.arange(record.examples.num_rows), _taken(groups))
    known = rest[np.isin(rest, read)]
    size = len(rest) if record.examples.num_rows <= most else min(len(rest), each)
    among = " among those that the verdict was read off" if size <= len(known) < len(rest) else ""
    rest = known if among else rest
    drawn = np.random.default_rng(seed).choice(rest, size, replace=False)
    rule = f"{size} of {'the others' if groups else 'all examples'}{among}, drawn with seed {seed}"
    groups.append(Choice("At random", rule, tuple(np.sort(drawn).tolist())))
    return [group for group in groups if group.rows]


def _read(record: Record) -> Int[np.ndarray, " K"]:
    """The places of the examples that the audit of the words that decide has read."""
    return np.flatnonzero(np.isin(record.examples["example"].to_numpy(), list(trusts(record))))


def _taken(groups: list[Choice]) -> Int[np.ndarray, " K"]:
    return np.array([row for group in groups for row in group.rows], dtype=int)


def _extremes(record: Record, ranking: Ranking, each: int) -> list[Choice]:
    ordered, limit = _ordered(record, ranking, each)
    low = ordered[: min(each, len(ordered) // 2)]
    high = ordered[len(ordered) - min(each, len(ordered) - len(low)) :][::-1]
    return [
        Choice("Strongest disagreement", f"the {len(low)} with the lowest {ranking.name}{limit}", _places(low)),
        Choice("Best agreement", f"the {len(high)} with the highest {ranking.name}{limit}", _places(high)),
    ]


def _disputed(record: Record, ranking: Ranking, each: int, taken: Int[np.ndarray, " K"]) -> Choice:
    ordered, limit = _ordered(record, ranking, each)
    left = ordered[~np.isin(ordered, taken)][:each]
    others = " that are not shown above" if len(taken) else ""
    return Choice("Most disputed", f"the {len(left)} with the lowest {ranking.name}{limit}{others}", _places(left))


def _ordered(record: Record, ranking: Ranking, each: int) -> tuple[Int[np.ndarray, " K"], str]:
    """The places of the examples from the lowest number on, and in words which of them were looked at."""
    lengths = record.examples["starts"].combine_chunks().value_lengths().to_numpy(zero_copy_only=False)
    defined = np.isfinite(ranking.values)
    long = defined & (lengths >= SHORT)
    limit = f" among texts of at least {SHORT} tokens" if long.sum() >= 2 * each else ""
    candidates = np.flatnonzero(long if limit else defined)
    return candidates[np.argsort(ranking.values[candidates], kind="stable")], limit


def _places(rows: Int[np.ndarray, " K"]) -> tuple[int, ...]:
    return tuple(rows.tolist())


def _ranking(record: Record) -> Ranking | None:
    """Attention's AUPRC, its economy, or its τ with leave-one-out, else the first of these that there is."""
    wanted = ["auprc:attention", "economy:attention", f"tau:attention~{REFERENCE}", f"tau:{REFERENCE}~attention"]
    others = [name for name in record.instances.column_names if name.startswith(("auprc:", "economy:", "tau:"))]
    for name in wanted + others:
        kind, subject = name.split(":", 1)
        audit = {"auprc": "truth", "economy": "deciding"}.get(kind, "agreement")
        values = side_by_side(record, audit, [name])
        if np.isfinite(values).any():
            title = {"auprc": "AUPRC", "tau": "τ"}.get(kind, kind) + f" of {subject.replace('~', ' with ')}"
            return Ranking(title, _by_example(record, audit, values[:, 0]))
    return None


def _dispute(record: Record) -> Ranking | None:
    """The mean τ over all pairs of explainers, where there are more than two that are not random."""
    explainers = [name for name in record.summary["explainers"] if name != NULL]
    pairs = [f"tau:{one}~{other}" for one, other in combinations(explainers, 2)]
    values = side_by_side(record, "agreement", pairs)
    some = np.isfinite(values).any(axis=1)
    if len(explainers) < 3 or not some.any():
        return None
    means = np.full(len(values), np.nan)
    means[some] = np.nanmean(values[some], axis=1)
    return Ranking(f"mean τ over the {len(pairs)} pairs of explainers", _by_example(record, "agreement", means))


def _by_example(record: Record, audit: str, values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " N"]:
    """Numbers of an audit's texts, in the order of the examples table."""
    measured = dict(zip(texts(record, audit).tolist(), values.tolist(), strict=True))
    return np.array([measured.get(example, np.nan) for example in record.examples["example"].to_pylist()], dtype=float)
