"""Whether an explanation passes each audit: that of the headline, attention where it was run."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.stats import binomtest

from assay.records import Finding, Record
from assay.report import known as numbers
from assay.report.compared import four, hidden
from assay.report.compared.found import points, shared, spread, subjects
from assay.report.compared.limits import KEPT
from assay.report.rankings import no_sooner
from assay.report.verdicts import HOPELESS, leading, likelihood, too_few
from assay.report.yardsticks import (
    AGREEMENT,
    DECIDING,
    JSD_FAR,
    LEAD_SURE,
    NULL,
    REFERENCE,
    SAME,
    SHUFFLE_SMALL,
    TRUTH,
    Scale,
    Yardstick,
    grade,
    scale,
    surely,
)
from assay.writing import count, evidence, number, percent

MEASURED, NOT_APPLICABLE = "measured", "not applicable"
Graded = tuple[str, str]
"""A grade, and the reason in a sentence with effect, interval and number of texts."""


def known(record: Record, audit: str, measure: str, subject: str = "attention") -> Finding | None:
    """The finding over all texts, or None where it holds no number or no interval."""
    found = numbers.known(record, audit, measure, subject)
    return found if found is not None and all(map(math.isfinite, (found.mean, found.low, found.high))) else None


def _agreement(record: Record) -> Graded | None:
    name = leading(record)
    if name == REFERENCE:
        return MEASURED, f"Not graded: {REFERENCE} is what the others are compared with."
    found, null = (_either(record, each) for each in (name, NULL))
    if found is None:
        return None
    if found.low >= SAME:
        return MEASURED, f"Not graded: {name} is the same as {REFERENCE} but for the sign."
    return _judged(f"With {REFERENCE} {name} has a τ of", found, AGREEMENT, 0.0 if null is None else null.high)


def _laid(rule: Yardstick) -> Callable[[Record], Graded | None]:
    """The grade of the leading explainer by a yardstick of the verdict, as the verdict gives it."""

    def judged(record: Record) -> Graded | None:
        laid, name = scale(record, rule), leading(record) or ""
        found = laid.measured.get(name)
        if found is None:
            return None
        given = laid.grade(name)
        return given, _reached(laid, name) if given != NOT_APPLICABLE else too_few(found) or HOPELESS

    return judged


def _reached(laid: Scale, name: str) -> str:
    found = _numbers(laid.measured[name])
    if laid.rule is DECIDING:
        had = likelihood(laid.effects[name].mean)
        return f"Economy of {name}: {found}; {had} such explainers had found the words."
    null = number(laid.null_high, 2)
    return f"For the words that decide {name} has an AUPRC of {found}; random scores reach {null} at most."


def _either(record: Record, name: str | None) -> Finding | None:
    pairs = (f"{name}~{REFERENCE}", f"{REFERENCE}~{name}")
    return next((found for pair in pairs if (found := known(record, "agreement", "tau", pair))), None)


def _permutation(record: Record) -> Graded | None:
    found = known(record, "permutation", "median_tvd")
    told = "Shuffled attention moves predictions by a TVD of"
    return None if found is None else (surely(found, SHUFFLE_SMALL, SHUFFLE_SMALL), f"{told} {_numbers(found)}.")


def _adversary(record: Record) -> Graded | None:
    found, upper = known(record, "adversary", "jsd"), known(record, "adversary", "jsd_upper")
    if found is None:
        return None
    kind = found.kind if found.kind != "sample" else record.summary["audits"]["adversary"].get("kind")
    certain = kind in ("exact", "to rounding")
    most = found if certain else upper
    told = f"Another attention with the same prediction lies {_numbers(found)} away (JSD) on average"
    if found.low > JSD_FAR:
        return "fail", f"{told}."
    if most is not None and most.high <= JSD_FAR:
        return "pass", f"{told}, and none further than {number(most.mean, 2)}."
    return "warn", f"{told}{'' if certain else '; there may be one further away'}."


def _shortcut(record: Record) -> Graded | None:
    used = known(record, "shortcut", "used", "model")
    if used is not None and used.mean == 0:
        return NOT_APPLICABLE, f"The model uses the planted words in none of {count(used.n)} texts."
    name = leading(record) or ""
    found, null = (known(record, "shortcut", "shown", each) for each in (name, NULL))
    told = f"At the planted words {name} has a precision of"
    return None if found is None else _judged(told, found, TRUTH, 0.0 if null is None else null.high)


def _gain(audit: str, measure: str, words: str) -> Callable[[Record], Graded | None]:
    def judged(record: Record) -> Graded | None:
        name = leading(record) or ""
        found = known(record, audit, measure, name)
        if found is None:
            return None
        given = "pass" if found.low > 0 else "fail" if found.high <= 0 else "warn"
        return given, f"{words} {_numbers(found)} without the words that {name} ranks highest."

    return judged


def _sanity(record: Record) -> Graded | None:
    name = leading(record) or ""
    found = known(record, "sanity", "similarity", name)
    if found is None:
        return None
    turned = {"pass": "fail", "fail": "pass", "warn": "warn"}[surely(found, AGREEMENT.passes, AGREEMENT.fails)]
    return turned, f"Explanations of randomised models agree with {name} at a τ of {_numbers(found)}."


def _stability(record: Record) -> Graded | None:
    name = leading(record) or ""
    found = known(record, "stability", "steadiness", name)
    told = f"Before and after tiny changes {name} agrees with itself at a τ of"
    return None if found is None else (surely(found, AGREEMENT.passes, AGREEMENT.fails), f"{told} {_numbers(found)}.")


def _single_weight(record: Record) -> Graded | None:
    top, other = (known(record, "single_weight", measure) for measure in ("top_only", "other_only"))
    if top is None or other is None:
        return None
    won, lost = round(top.mean * top.n), round(other.mean * other.n)
    sure = won + lost > 0 and float(binomtest(won, won + lost).pvalue) <= LEAD_SURE
    told = f"In {percent(top.mean)} of texts only the most attended one changes the decision, in {percent(other.mean)} "
    given = "warn" if not sure else "pass" if won > lost else "fail"
    return given, f"{told}only the other one ({evidence(top.low, top.high, top.n)} for the first share)."


def _minimal_set(record: Record) -> Graded | None:
    ahead, behind = (known(record, "minimal_set", "wins", pair) for pair in ("attention~random", "random~attention"))
    if ahead is None or behind is None:
        return None
    told = (
        f"Attention needs fewer erasures than a random order in {percent(ahead.mean)} of texts, more in "
        f"{percent(behind.mean)} ({evidence(ahead.low, ahead.high, ahead.n)} for the first share)"
    )
    lost = [known(record, "minimal_set", "never", name) for name in ("attention", "random")]
    never = [percent(each.mean) for each in lost if each is not None]
    told += f"; it never changes the decision in {never[0]}, that order in {never[1]}." if len(never) == 2 else "."
    tied = ahead.mean == behind.mean == 0
    return "warn" if tied else "fail" if no_sooner(record) else "pass", told


def _frozen_uniform(record: Record) -> Graded | None:
    gain = subjects(record, "frozen_uniform", "right_gain").get("learnt")
    given = {"hardly": "fail", "surely": "pass", "unclear": "warn", None: None}[four.worth(record)]
    return None if gain is None or given is None else (given, f"Learnt attention gains {points(gain)}.")


def _guide(record: Record) -> Graded | None:
    gain = subjects(record, "guide", "right_gain").get("imported")
    if gain is None:
        return None
    good = four.helps(record) and four.misleads(record) is not False
    given = "pass" if good else "fail" if gain.high < 0 else "warn"
    return given, f"The attention of the audited model gains another one {points(gain)} over its own."


def _trained_adversary(record: Record) -> Graded | None:
    found = four.reached(record)
    if found is None:
        return None
    few = found.null is None or found.null.small
    if found.jsd is None:
        return "warn" if few else "pass", "No adversary kept the predictions."
    told = f"Attention was trained {spread(found.jsd)} away (JSD; n = {count(found.jsd.n)}) while predictions held."
    near = found.null is not None and found.jsd.high <= found.null.furthest
    return "fail" if found.beyond else "pass" if near and not few else "warn", told


def _deception(record: Record) -> Graded | None:
    within, right = hidden.kept(record), subjects(record, "deception", "right")
    if not within:
        return None
    honest, without = within[hidden.HONEST], right.get(hidden.WITHOUT)
    if without is not None and without.mean >= right[hidden.HONEST].mean - KEPT:
        return NOT_APPLICABLE, "The model does as well without these words, so that there is nothing to hide."
    best = min(within.values(), key=lambda found: found.mean)
    told = f"At the same accuracy {shared(best)} of attention is left on words that had {percent(honest.mean)}"
    given = "pass" if best is honest else "fail" if best.high < honest.low else "warn"
    return given, f"{told} (n = {count(best.n)})."


def _judged(told: str, found: Finding, rule: Yardstick, null_high: float) -> Graded:
    reached = f"random scores reach {number(null_high, 2)} at most"
    return grade(found, null_high, rule), f"{told} {_numbers(found)}; {reached}."


def _numbers(found: Finding) -> str:
    return f"{number(found.mean, 2)} ({evidence(found.low, found.high, found.n)})"


GRADERS: dict[str, Callable[[Record], Graded | None]] = {
    "deciding": _laid(DECIDING),
    "agreement": _agreement,
    "permutation": _permutation,
    "adversary": _adversary,
    "truth": _laid(TRUTH),
    "erasure": _gain("erasure", "comprehensiveness_gain", "Beyond random words the probability falls by"),
    "roar": _gain("roar", "fall_gain", "Beyond random words the accuracy of a retrained model falls by"),
    "sanity": _sanity,
    "stability": _stability,
    "shortcut": _shortcut,
    "single_weight": _single_weight,
    "minimal_set": _minimal_set,
    "frozen_uniform": _frozen_uniform,
    "guide": _guide,
    "trained_adversary": _trained_adversary,
    "deception": _deception,
}
