"""Sentences that several audits say: the best explainer, the two ends of all pairs, who beats chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scipy.stats import binomtest

from assay.lookup import BASELINES, MODEL, RANDOM, over_all, told
from assay.metrics.comparisons import holm
from assay.records import Finding, Record
from assay.writing import count, listed, number, significance

SURE = 0.05
"""An explainer beats chance where its p-value stays below this after Holm's (1979) correction for their number."""

LEAD_SURE = 0.05
"""One ranking leads another where a two-sided sign test over texts has at most this p-value.

The null is the limit: no share of wins or of shortest sets is published as enough, but a ranking that a random order
matches says nothing about what decides.
"""

NOTICED = 0.005
"""A divergence or a gain that does not show in two decimals is none, however sure it is."""

NAMED = 6
"""More explainers than this are counted instead of named."""

TRAINED: Mapping[str, str] = {"sample": "trained"}
"""Of audits that compare models: their numbers vary by what was trained once each."""


def best(record: Record, audit: str, measure: str, amount: str) -> str:
    """The best explainer with its number, then the others by name where they are few, and random scores."""
    found = rivals(record, audit, measure)
    if not found:
        return ""
    ordered = sorted(found, key=lambda f: -f.mean)
    leader, rest = ordered[0], ordered[1:]
    others = ", ".join(f"{f.subject} {number(f.mean, 2)}" for f in rest)
    if len(rest) >= NAMED:
        others = f"from {number(rest[-1].mean, 2)} to {number(rest[0].mean, 2)}"
    null = next((f for f in over_all(record, audit, measure) if f.subject in BASELINES), None)
    told = f"Best is {leader.subject} with {amount} {tested(leader)}"
    told += f"; the others: {others}" if rest else ""
    told += f"; random scores reach {number(null.mean, 2)}" if null else ""
    return f"{told}."


def beating(gains: Sequence[Finding]) -> str:
    """How many explainers are clearly better than chance, and which are not."""
    failing = [f.subject for f, better in zip(gains, _sure(gains), strict=True) if not better]
    if not failing:
        return f"All {len(gains)} beat chance." if len(gains) > 1 else "It beats chance."
    named = f": {listed(failing)}" if len(failing) <= NAMED else ""
    return f"{len(gains) - len(failing)} of {len(gains)} beat chance, {len(failing)} do not clearly{named}."


def _sure(gains: Sequence[Finding]) -> list[bool]:
    """Which gains are above 0 beyond doubt. Without p-values the intervals decide."""
    p_values = [f.p_value for f in gains if f.p_value is not None]
    if len(p_values) < len(gains):
        return [f.low > 0 for f in gains]
    return [p <= SURE and f.low > 0 for p, f in zip(holm(p_values), gains, strict=True)]


def extremes(record: Record, audit: str, measure: str, amount: str) -> str:
    """The mean over all pairs of explainers that are not random, and the two ends."""
    found = pairs(record, audit, measure)
    if not found:
        return ""
    least, most = min(found, key=lambda f: f.mean), max(found, key=lambda f: f.mean)
    if len(found) == 1:
        return f"{_pair(most)} have {amount} {tested(most)}."
    return (
        f"Two explainers have {amount} {number(mean(found), 2)} on average over {count(len(found))} pairs: the most "
        f"alike are {_pair(most)} with {tested(most)}, the least {_pair(least)} with {number(least.mean, 2)}."
    )


def rivals(record: Record, audit: str, measure: str) -> list[Finding]:
    """The findings of a measure over all texts, of those that are neither random nor the model."""
    return [f for f in over_all(record, audit, measure) if f.subject not in (*BASELINES, MODEL)]


def pairs(record: Record, audit: str, measure: str) -> list[Finding]:
    """The findings of all pairs without random scores."""
    return [f for f in rivals(record, audit, measure) if RANDOM not in f.subject.split("~")]


def tested(found: Finding) -> str:
    """A mean with what stands behind it, and the p-value where there is one."""
    p = significance(found.p_value)
    return f"{told(found)[:-1]}, {p})" if p else told(found)


def lead(ahead: Finding, behind: Finding) -> int:
    """1 where the first share surely exceeds the second by a two-sided sign test over texts, −1 where it is less."""
    won, lost = (round(each.mean * each.n) for each in (ahead, behind))
    if won + lost == 0 or binomtest(won, won + lost).pvalue > LEAD_SURE:
        return 0
    return 1 if won > lost else -1


def mean(found: Sequence[Finding]) -> float:
    """The mean over findings."""
    return sum(f.mean for f in found) / len(found)


def _pair(finding: Finding) -> str:
    return finding.subject.replace("~", " and ")
