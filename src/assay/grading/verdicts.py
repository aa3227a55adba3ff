"""The grade of each explainer in a run, with the number and the sentence behind it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assay.grading.grade import (
    AUC_INFORMED,
    CHANCE_AUC,
    FEW,
    NEAR_CHANCE,
    TRUTH,
    Grade,
    Scale,
    Yardstick,
    scale,
)
from assay.lookup import RANDOM
from assay.records import Finding, Record
from assay.writing import count

ATTENTION = "attention"
GRADED = ("pass", "warn", "fail")


@dataclass(frozen=True)
class Verdict:
    """One explainer's grade, the number behind it with its 95 % interval, the null to beat, a sentence."""

    name: str
    grade: Grade
    measure: str
    effect: float | None
    low: float | None
    high: float | None
    n: int
    null: float | None
    sentence: str
    more: tuple[str, ...] = ()


def verdicts(record: Record) -> list[Verdict]:
    """One verdict for each explainer of the record, the largest number first, then those that have none."""
    laid = scale(record)
    found = [_verdict(record, name, laid) for name in record.summary["explainers"]]
    return sorted(found, key=lambda v: (v.effect is None, v.name == RANDOM, -(v.effect or 0.0)))


def ranked(record: Record) -> list[Verdict]:
    """The verdicts on all explainers that are graded, the largest number first."""
    return [v for v in verdicts(record) if v.grade in GRADED]


def leading(record: Record) -> str | None:
    """The explainer that cards are about: attention where it was run, else the one with the largest number, if any."""
    if ATTENTION in record.summary["explainers"]:
        return ATTENTION
    return next((v.name for v in ranked(record)), None)


def standing(record: Record) -> Grade:
    """Whether any heatmap may be shown: the grade of the best, a warning at most where the model is near chance."""
    best = next(iter(ranked(record)), None)
    if best is None:
        return "not applicable"
    return "warn" if best.grade == "pass" and near_chance(record) else best.grade


def near_chance(record: Record) -> bool:
    """Whether the model is near chance: by its accuracy, unless its AUC shows that it knows more, or by its AUC."""
    accuracy, largest, auc = ability(record)
    if accuracy is None:
        return False
    by_accuracy = accuracy < largest + NEAR_CHANCE and (auc is None or auc < AUC_INFORMED)
    return by_accuracy or (auc is not None and auc < CHANCE_AUC + NEAR_CHANCE)


def ability(record: Record) -> tuple[float | None, float, float | None]:
    """The model's accuracy, that of always naming the largest class, and its AUC; None where it is not known."""
    test = record.summary.get("model", {}).get("test") or {}
    labels = record.examples["label"].to_numpy()
    if len(labels) == 0:
        return None, 0.0, None
    return test.get("accuracy"), float(np.bincount(labels).max() / len(labels)), test.get("auc")


def _verdict(record: Record, name: str, laid: Scale) -> Verdict:
    rule, found = laid.rule, laid.effects.get(name)
    more = _of_attention(record) if name == ATTENTION else ()
    if found is None:
        return _without_number(name, rule, _why_not(record, rule), more)
    numbers = (rule.measure, found.mean, found.low, found.high, found.n)
    if name == RANDOM:
        sentence = "Scores drawn at random: what an explainer that knows nothing reaches. The others must beat it."
        return Verdict(name, "reference", *numbers, None, sentence)
    given = laid.grade(name)
    if given == "not applicable":
        return _without_number(name, rule, too_few(found) or HOPELESS, more)
    return Verdict(name, given, *numbers, laid.null, _sentence(given, found, laid), more)


def _of_attention(record: Record) -> tuple[str, ...]:
    """What each audit of attention says, for those that were run."""
    every = ((record.stories[name].about, said.answer) for name, said in record.conclusions.items())
    return tuple(answer for about, answer in every if about == "attention" and answer)


HOPELESS = "Nothing can be said: in texts like these random rankings do as well."


def too_few(found: Finding) -> str | None:
    """Why a finding is too small for a grade, or None."""
    usable = "1 text is" if found.n == 1 else f"{count(found.n)} texts are"
    return None if found.n >= FEW else f"Too few texts: {usable} usable, and a grade takes {FEW}."


def _without_number(name: str, rule: Yardstick, sentence: str, more: tuple[str, ...] = ()) -> Verdict:
    return Verdict(name, "not applicable", rule.measure, None, None, None, 0, None, sentence, more)


def _why_not(record: Record, rule: Yardstick) -> str:
    audit = record.summary["audits"].get(rule.audit)
    if audit is None:
        return f"Not graded: the audit “{rule.audit}” was not run."
    if not audit.get("applies", True):
        return f"Not graded: {audit.get('why') or 'the audit does not apply to this model.'}"
    return "Nothing can be said: no text has a number."


def _sentence(given: Grade, found: Finding, laid: Scale) -> str:
    rule = laid.rule
    if laid.measured[found.subject].low <= laid.null_high:
        return f"Does not clearly beat scores drawn at random when compared with {rule.against}."
    if rule is TRUTH:
        words = {"pass": "Finds most of", "warn": "Finds some of", "fail": "Misses many of"}[given]
        return f"{words} {rule.against}: average precision {found.mean:.2f} of 1."
    words = {"pass": "Finds", "warn": "May find", "fail": "Hardly finds"}[given]
    return f"{words} {rule.against}: {likelihood(found.mean)} explainers that measured like this had found them."


def likelihood(probability: float) -> str:
    """A probability as how many of 100, to be followed by what they are."""
    hundredths = round(100 * probability)
    return f"{'more than 99' if hundredths == 100 else 'fewer than 1' if hundredths == 0 else hundredths} of 100"
