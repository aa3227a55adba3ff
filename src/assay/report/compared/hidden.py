"""Attention that was trained to avoid some words: how little of it do they need?"""

from __future__ import annotations

from assay.records import Finding, Record
from assay.report.compared.found import named, shared, subjects
from assay.report.compared.limits import KEPT
from assay.writing import count, percent

AUDIT = "deception"
HONEST, WITHOUT = "λ=0", "without"


def kept(record: Record) -> dict[str, Finding]:
    """The mean mass on the words for each λ whose accuracy is at most KEPT below that of λ = 0, and for λ = 0."""
    mass, right = (named(record, AUDIT, measure, "λ=") for measure in ("mass", "right"))
    if HONEST not in mass or HONEST not in right:
        return {}
    least = right[HONEST].mean - KEPT - 1e-9  # so that exactly 1 point is within 1 point
    return {name: mass[name] for name in mass if name in right and right[name].mean >= least}


def deceived(record: Record) -> str | None:
    """The smallest mass on the avoided words at which accuracy holds, and the accuracy without these words."""
    right, within = subjects(record, AUDIT, "right"), kept(record)
    if not within:
        return None
    best, honest = min(within, key=lambda name: within[name].mean), within[HONEST]
    start = (
        f"{shared(honest)} of the attention lies on the words to be avoided (n = {count(honest.n)} texts that hold one)"
    )
    if best == HONEST:
        told = (
            f"{start}, and no λ lowered that with an accuracy within {100 * KEPT:g} point of {_right(right, HONEST)}."
        )
    else:
        told = (
            f"{start}; trained to stay off them with {best}, it is {shared(within[best])}, and the model is right on "
            f"{_right(right, best)} of texts where without that it is on {_right(right, HONEST)}."
        )
    return told + _control(right, best)


def _control(right: dict[str, Finding], best: str) -> str:
    """What the words are worth: a model that never sees them."""
    if WITHOUT not in right:
        return ""
    told = f" Without these words a model is right on {shared(right[WITHOUT])}"
    if right[WITHOUT].mean >= right[HONEST].mean - KEPT:
        return f"{told}: they are not needed, so that avoiding them hides nothing."
    if best == HONEST:
        return f"{told}."
    return f"{told}: the words count, and attention need not show it."


def _right(right: dict[str, Finding], name: str) -> str:
    return percent(right[name].mean)
