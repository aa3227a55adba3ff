"""What each audit found in a sentence or two: effect, interval, number of texts, and what random scores reach."""

from __future__ import annotations

from collections.abc import Callable

from assay.metrics.comparisons import holm
from assay.records import Finding, Record
from assay.report.attention import furthest, missed, shuffling
from assay.report.compared.answers import ANSWERS as COMPARED
from assay.report.flips import alone
from assay.report.matrices import KINDS, Kind
from assay.report.measures import BASELINES
from assay.report.rankings import shortest
from assay.report.stacks import needed
from assay.report.yardsticks import NULL, REFERENCE
from assay.writing import count, evidence, listed, number, significance

SURE = 0.05
"""An explainer beats chance where its p-value stays below this after Holm's (1979) correction for their number."""

NAMED = 6
"""More explainers than this are counted instead of named."""

MODEL = "model"
"""The subject of what an audit finds about the model itself."""


def _agreement(record: Record) -> str | None:
    """The pairs of the paper: attention with each of its two rivals, then these with one another; else the extremes."""
    rivals = [(name, _either(record, "attention", name)) for name in ("gradient", REFERENCE)]
    told = [f"with {name} at τ {_numbers(found)}" for name, found in rivals if found]
    between = _either(record, "gradient", REFERENCE)
    ending = f"gradient and {REFERENCE} agree with each other at τ {_numbers(between)}" if between else ""
    if told:
        return f"Attention agrees {' and '.join(told)}{'; ' if ending else ''}{ending}."
    return f"{ending[0].upper()}{ending[1:]}." if between else _extremes(record, KINDS[0], "a τ of")


def _consistency(record: Record) -> str | None:
    told = _extremes(record, KINDS[1], "an overlap of the top words of")
    signs = _pairs(record, KINDS[2])
    if told is None or not signs:
        return told
    return f"{told} They give a word the same sign in {number(_mean(signs), 2)} of cases on average."


def _extremes(record: Record, kind: Kind, amount: str) -> str | None:
    """The mean over all pairs of explainers that are not random, and the two ends."""
    found = _pairs(record, kind)
    if not found:
        return None
    least, most = min(found, key=lambda f: f.mean), max(found, key=lambda f: f.mean)
    if len(found) == 1:
        return f"{_pair(most)} have {amount} {_numbers(most)}."
    return (
        f"Two explainers have {amount} {number(_mean(found), 2)} on average over {count(len(found))} pairs: the most "
        f"alike are {_pair(most)} with {_numbers(most)}, the least {_pair(least)} with {number(least.mean, 2)}."
    )


def _truth(record: Record) -> str | None:
    return _best(record, "truth", "auprc", "an AUPRC of")


def _deciding(record: Record) -> str | None:
    return _best(record, "deciding", "economy", "an economy of")


def _plausibility(record: Record) -> str | None:
    told = _best(record, "plausibility", "auprc", "an AUPRC of")
    warning = "This tells what people find convincing, not what the model did."
    return None if told is None else f"{told} {warning}"


def _erasure(record: Record) -> str | None:
    gains = _found(record, "erasure", "comprehensiveness_gain")
    if not gains:
        return _best(record, "erasure", "comprehensiveness", "a comprehensiveness of")
    best = max(gains, key=lambda f: f.mean)
    return (
        f"Best is {best.subject}: without the words that it ranks highest the probability of the predicted class falls "
        f"by {_numbers(best)} more than without random words. {_beating(gains)}"
    )


def _roar(record: Record) -> str | None:
    gains = _found(record, "roar", "fall_gain")
    if not gains:
        return None
    best = max(gains, key=lambda f: f.mean)
    return (
        f"Best is {best.subject}: a model trained anew without the words that it ranks highest loses {_numbers(best)} "
        f"more of its accuracy than one trained without random words. {_beating(gains)}"
    )


def _sanity(record: Record) -> str | None:
    found = _found(record, "sanity", "similarity")
    if not found:
        return None
    least, most = min(found, key=lambda f: f.mean), max(found, key=lambda f: f.mean)
    told = f"{least.subject} notices most that the model is another one: τ {_numbers(least)} between both explanations"
    other = f"; {most.subject} notices least: τ {_numbers(most)}" if most is not least else ""
    return f"{told}{other}. Scores that do not depend on the model at all have 1."


def _stability(record: Record) -> str | None:
    told = _best(record, "stability", "steadiness", "a τ before and after the change of")
    moved = record.finding("stability", MODEL, "moved")
    if told is None or moved is None:
        return told
    return f"{told} The prediction itself moved by {_numbers(moved)} (TVD)."


def _shortcut(record: Record) -> str | None:
    used = record.finding("shortcut", MODEL, "used")
    told = _best(record, "shortcut", "shown", "a precision at the planted words of")
    if used is None or used.n == 0:
        return told
    share = f"The model uses the planted words in {100 * used.mean:.0f} of 100 texts (n = {count(used.n)})."
    return f"{share} {told}" if told else f"{share} So there is nothing to show."


def _best(record: Record, audit: str, measure: str, amount: str) -> str | None:
    """The best explainer with its number, then the others by name where they are few, and random scores."""
    found = _found(record, audit, measure)
    if not found:
        return None
    ordered = sorted(found, key=lambda f: -f.mean)
    best, rest = ordered[0], ordered[1:]
    others = ", ".join(f"{f.subject} {number(f.mean, 2)}" for f in rest)
    if len(rest) >= NAMED:
        others = f"from {number(rest[-1].mean, 2)} to {number(rest[0].mean, 2)}"
    null = next((f for f in _found(record, audit, measure, BASELINES)), None)
    words = [f"the others: {others}"] if rest else []
    words += [f"random scores reach {number(null.mean, 2)}"] if null else []
    return f"Best is {best.subject} with {amount} {_numbers(best)}{''.join(f'; {each}' for each in words)}."


def _beating(gains: list[Finding]) -> str:
    """How many explainers are clearly better than chance, and which are not."""
    failing = [f.subject for f, better in zip(gains, _sure(gains), strict=True) if not better]
    if not failing:
        return f"All {len(gains)} beat chance." if len(gains) > 1 else "It beats chance."
    named = f": {listed(failing)}" if len(failing) <= NAMED else ""
    return f"{len(gains) - len(failing)} of {len(gains)} beat chance, {len(failing)} do not clearly{named}."


def _sure(gains: list[Finding]) -> list[bool]:
    """Which gains are above 0 beyond doubt. Without p-values the intervals decide."""
    known = [f.p_value for f in gains if f.p_value is not None]
    if len(known) < len(gains):
        return [f.low > 0 for f in gains]
    return [p <= SURE and f.low > 0 for p, f in zip(holm(known), gains, strict=True)]


def _found(record: Record, audit: str, measure: str, subjects: tuple[str, ...] = ()) -> list[Finding]:
    """The findings of a measure over all texts: of these subjects, or of all that are neither random nor the model."""
    mine = [f for f in record.findings if (f.audit, f.measure, f.group) == (audit, measure, "all") and f.n > 0]
    return [f for f in mine if (f.subject in subjects if subjects else f.subject not in (*BASELINES, MODEL))]


def _numbers(found: Finding) -> str:
    p = significance(found.p_value)
    return f"{number(found.mean, 2)} ({evidence(found.low, found.high, found.n)}{f', {p}' if p else ''})"


def _pairs(record: Record, kind: Kind) -> list[Finding]:
    return [f for f in _found(record, kind.audit, kind.measure) if NULL not in f.subject.split("~")]


def _mean(found: list[Finding]) -> float:
    return sum(f.mean for f in found) / len(found)


def _pair(finding: Finding) -> str:
    return finding.subject.replace("~", " and ")


def _either(record: Record, one: str, other: str) -> Finding | None:
    found = (record.finding("agreement", subject, "tau") for subject in (f"{one}~{other}", f"{other}~{one}"))
    return next((finding for finding in found if finding is not None and finding.n > 0), None)


ANSWERS: dict[str, Callable[[Record], str | None]] = {
    "deciding": _deciding,
    "agreement": _agreement,
    "permutation": shuffling,
    "adversary": furthest,
    "layers": needed,
    "searched": missed,
    "truth": _truth,
    "erasure": _erasure,
    "plausibility": _plausibility,
    "sanity": _sanity,
    "stability": _stability,
    "consistency": _consistency,
    "roar": _roar,
    "shortcut": _shortcut,
    "single_weight": alone,
    "minimal_set": shortest,
    **COMPARED,
}
