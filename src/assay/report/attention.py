"""What the audits of attention alone say: shuffle it, replace it by the furthest with equal prediction, erase it."""

from __future__ import annotations

from assay.metrics.divergence import MAX_JSD
from assay.records import Finding, Record
from assay.report.flips import alone
from assay.report.items import items
from assay.report.known import known
from assay.report.rankings import shortest
from assay.report.stacks import stacked
from assay.report.yardsticks import SHUFFLE_SMALL
from assay.writing import count, evidence, interval, number

SEARCHED = "This is a lower bound from a search: the furthest one may be further away."


def sentences(record: Record) -> tuple[str, ...]:
    """What each audit of attention says, for those that were run."""
    told = (each(record) for each in (shuffling, furthest, alone, shortest))
    return tuple(sentence for sentence in told if sentence is not None)


def shuffling(record: Record) -> str | None:
    """One sentence on what shuffling attention does to the prediction."""
    found = known(record, "permutation", "median_tvd")
    if found is None:
        return None
    size = " hardly at all" if found.high < SHUFFLE_SMALL else " noticeably" if found.high >= SHUFFLE_SMALL else ""
    mean, ends = number(100 * found.mean, 1), interval(100 * found.low, 100 * found.high, 1)
    among = "in every layer, head and place" if stacked(record) else f"among the {items(record).many}"
    return (
        f"Shuffling the attention weights {among} moves the prediction{size}: by {mean} "
        f"percentage points on average (95 % interval {ends}, n = {count(found.n)})."
    )


def furthest(record: Record) -> str | None:
    """Two sentences on the furthest attention with the same prediction: how far, and how certain that is."""
    found, upper = known(record, "adversary", "jsd"), known(record, "adversary", "jsd_upper")
    if found is None:
        return None
    epsilon = record.summary.get("plan", {}).get("epsilon")
    within = f"within {epsilon:g}" if isinstance(epsilon, (int, float)) else "within ε"
    least, most = f"{found.mean:.2f}", f"{MAX_JSD if upper is None else upper.mean:.2f}"
    between = f"the furthest one lies at least {least}, which a search found, and provably at most {most} away."
    certainty = {
        "exact": "This is exact: no attention with the same prediction is further away.",
        "to rounding": "To the rounding of single precision, no attention with the same prediction is further away.",
        "bracket": f"The furthest one is certified to lie between this and {most} on average.",
        "lower bound": f"On average {between}" if most < f"{MAX_JSD:.2f}" else SEARCHED,
    }
    other, over = "Another attention map gives", ""
    if stacked(record):
        other, over = "Other weights in all layers give", " over layers, heads, places and texts"
    return (
        f"{other} the same prediction ({within}) at a Jensen–Shannon divergence of "
        f"{least} on average{over}, where {MAX_JSD:.2f} is the most there can be "
        f"({evidence(found.low, found.high, found.n)}). "
        f"{certainty.get(_kind(record, found), SEARCHED)}"
    )


def missed(record: Record) -> str | None:
    """A sentence on how much of the furthest attention the published search finds."""
    found, reached = known(record, "searched", "found"), known(record, "searched", "reached")
    if found is None or reached is None:
        return None
    return (
        f"The search of Jain and Wallace (2019) reaches {found.mean:.0%} of the largest divergence on average "
        f"({evidence(found.low, found.high, found.n)}), and all of it in {reached.mean:.0%} of the texts."
    )


def _kind(record: Record, found: Finding) -> str:
    if found.kind in ("exact", "to rounding", "bracket", "lower bound"):
        return found.kind
    return str(record.summary["audits"].get("adversary", {}).get("kind", "lower bound"))
