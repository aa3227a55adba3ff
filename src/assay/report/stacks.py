"""What the page says about a transformer, whose attention is a stack of layers that nothing pools."""

from __future__ import annotations

from assay.records import Finding, Record
from assay.report.known import known
from assay.writing import evidence, number, percent

AUDIT, ALL = "layers", "all layers"
KINDS = {"uniform": "made equal", "permuted": "shuffled"}

TITLE = "Which layers’ attention does the prediction need?"
CAPTION = (
    "Change of the prediction (TVD) when the attention of one layer alone is made equal, or shuffled, and when that of "
    "all layers is; mean over texts and 95 % interval. Layer 0 is the lowest."
)
READING = (
    "In one layer after the other, every place attends to all others alike, or its weights are dealt out anew at "
    "random; the layers above go on with what they get. Where the prediction hardly moves, a heatmap of that layer’s "
    "attention shows nothing that the prediction hangs on. Layers can stand in for each other: that each can be spared "
    "does not mean that all can, which is what the last place shows."
)
SHUFFLED = (
    "The weights of each layer, head and place are dealt out anew at random over what may be attended to. If the "
    "prediction hardly moves even where attention is peaked (upper rows: the mean over layers, heads and places of the "
    "largest weight), it is hard to argue that what is attended to was the reason."
)
REPLACED = (
    "In every layer, head and place other weights are searched for that leave the prediction where it is; the distance "
    "is the mean over all of them. Places that the prediction cannot depend on do not count. What was found exists, "
    "but the search may have missed what lies further away. Mass near the dashed limit means that for most texts quite "
    "different attention goes with the same prediction."
)
READINGS = {"permutation": SHUFFLED, "adversary": REPLACED}
"""How to read audits that mean something else here than for an attention that pools."""

CAPTIONS = {
    "adversary": "Distance of the furthest attention that was found with the same prediction, the mean over layers, "
    "heads and places. The dashed line is the largest divergence that two distributions can have.",
}
TITLES = {
    "permutation": "Does it matter what the layers attend to?",
    "adversary": "Could other attention go with the same prediction?",
}


def stacked(record: Record) -> bool:
    """Whether the record is of a model whose attention is a stack of layers that nothing pools."""
    return bool(record.summary.get("model", {}).get("shape") == "transformer")


def needed(record: Record) -> str | None:
    """Which layer's attention the prediction needs most, and what becomes of it without any."""
    alone, every = single(record, "permuted"), known(record, AUDIT, "permuted", ALL)
    if not alone or every is None:
        return None
    most, least = max(alone.values(), key=lambda f: f.mean), min(alone.values(), key=lambda f: f.mean)
    flips = known(record, AUDIT, "permuted_flips", ALL)
    changed = "" if flips is None else f" and changes {percent(flips.mean, 0)} of the decisions"
    between = f"; {least.subject} least: by {number(least.mean, 2)}" if len(alone) > 1 else ""
    return (
        f"Shuffling the attention of all layers moves the prediction by {_numbers(every)}{changed}. Of single layers "
        f"{most.subject} matters most: by {_numbers(most)}{between}."
    )


def single(record: Record, measure: str) -> dict[str, Finding]:
    """The findings of single layers, the lowest first."""
    mine = [f for f in record.findings if (f.audit, f.measure, f.group) == (AUDIT, measure, "all") and f.n > 0]
    return {f.subject: f for f in mine if f.subject != ALL}


def _numbers(found: Finding) -> str:
    return f"{number(found.mean, 2)} ({evidence(found.low, found.high, found.n)})"
