"""What the audits of attention alone say: shuffle it, or replace it by the furthest with equal prediction."""

from __future__ import annotations

from assay.metrics.divergence import MAX_JSD
from assay.records import Finding, Record
from assay.report.writing import count, evidence
from assay.report.yardsticks import JSD_FAR, SHUFFLE_SMALL

SEARCHED = "This is a lower bound from a search: the furthest one may be further away."


def shuffling(record: Record) -> str | None:
    """One sentence on what shuffling attention does to the prediction."""
    found = _finding(record, "permutation", "median_tvd")
    if found is None:
        return None
    size = "hardly at all" if found.high < SHUFFLE_SMALL else "noticeably"
    mean, low, high = (f"{100 * value:.1f}" for value in (found.mean, found.low, found.high))
    return (
        f"Shuffling the attention weights among the words moves the prediction {size}: by {mean} percentage "
        f"points on average (95 % interval {low} to {high}, n = {count(found.n)})."
    )


def furthest(record: Record) -> str | None:
    """Two sentences on the furthest attention with the same prediction: how far, and how certain that is."""
    found, upper = _finding(record, "adversary", "jsd"), _finding(record, "adversary", "jsd_upper")
    if found is None:
        return None
    epsilon = record.summary.get("plan", {}).get("epsilon")
    within = f"within {epsilon:g}" if isinstance(epsilon, (int, float)) else "within ε"
    ceiling = f"{MAX_JSD if upper is None else upper.mean:.2f}"
    certainty = {
        "exact": "This is exact: no attention with the same prediction is further away.",
        "bracket": f"The furthest one is certified to lie between this and {ceiling} on average.",
    }
    return (
        f"Another attention map gives the same prediction ({within}) at a Jensen–Shannon divergence of "
        f"{found.mean:.2f} on average, where {MAX_JSD:.2f} is the most there can be "
        f"({evidence(found.low, found.high, found.n)}). "
        f"{certainty.get(_kind(record, found), SEARCHED)}"
    )


def doubts(record: Record) -> list[str]:
    """What speaks against an attention heatmap beside attention's own grade."""
    shuffled, distant = _finding(record, "permutation", "median_tvd"), _finding(record, "adversary", "jsd")
    against = []
    if shuffled is not None and shuffled.high < SHUFFLE_SMALL:
        against.append("shuffling it hardly changes the prediction")
    if distant is not None and distant.low > JSD_FAR:
        against.append("a very different heatmap gives the same prediction")
    return against


def _finding(record: Record, audit: str, measure: str) -> Finding | None:
    found = record.finding(audit, "attention", measure)
    return found if found is not None and found.n > 0 else None


def _kind(record: Record, found: Finding) -> str:
    if found.kind in ("exact", "bracket", "lower bound"):
        return found.kind
    return str(record.summary["audits"].get("adversary", {}).get("kind", "lower bound"))
