"""The grade of each explainer in a run, with the number and the sentence behind it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assay.records import Finding, Record
from assay.report.attention import doubts, sentences
from assay.report.yardsticks import (
    AGREEMENT,
    AUC_INFORMED,
    CHANCE_AUC,
    NEAR_CHANCE,
    NULL,
    REFERENCE,
    SAME,
    TRUTH,
    Grade,
    Scale,
    Yardstick,
    grade,
    scale,
)

ATTENTION = "attention"


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
    """One verdict for each explainer of the record, in the order of the plan."""
    laid = scale(record)
    return [_verdict(record, name, laid) for name in record.summary["explainers"]]


def leading(record: Record) -> str | None:
    """The explainer of the headline: attention where it was run, else the one with the largest effect, if any."""
    if ATTENTION in record.summary["explainers"]:
        return ATTENTION
    graded = [v for v in verdicts(record) if v.effect is not None and v.name != NULL]
    return max(graded, key=lambda v: v.effect or 0.0).name if graded else None


def leader(record: Record) -> Verdict | None:
    """The verdict on the explainer of the headline, or None where there is no such explainer."""
    name = leading(record)
    return None if name is None else _verdict(record, name, scale(record))


def standing(record: Record) -> Grade:
    """Whether the heatmap of the headline may be shown: its grade, lowered by what speaks against it."""
    given, reasons = leader(record), against(record)
    if given is None or given.effect is None:
        return "warn" if reasons and given is not None else "not applicable"
    return "warn" if given.grade == "pass" and reasons else given.grade


def against(record: Record) -> list[str]:
    """What speaks against the heatmap of the headline beside its own grade; of one without a grade, of attention."""
    given = leader(record)
    own = doubts(record) if given is not None and given.name == ATTENTION else []
    weak = given is not None and given.effect is not None and near_chance(record)
    return own + (["the model itself is hardly better than chance"] if weak else [])


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
    more = sentences(record) if name == ATTENTION else ()
    if name == REFERENCE and rule is AGREEMENT:
        sentence = "The yardstick: how far the prediction moves when a word is deleted. Not graded against itself."
        return _without_number(name, "reference", rule, sentence)
    if found is None:
        return _without_number(name, "not applicable", rule, _why_not(record, rule), more)
    if rule is AGREEMENT and found.low >= SAME:
        sentence = f"The same as {REFERENCE} but for the sign, which is the yardstick. Not graded against itself."
        return _without_number(name, "reference", rule, sentence)
    numbers = (rule.measure, found.mean, found.low, found.high, found.n)
    if name == NULL:
        sentence = "Scores drawn at random: what an explainer that knows nothing reaches. The others must beat it."
        return Verdict(name, "reference", *numbers, None, sentence)
    given = grade(found, laid.null_high, rule)
    return Verdict(name, given, *numbers, laid.null, _sentence(given, found, laid), more)


def _without_number(name: str, given: Grade, rule: Yardstick, sentence: str, more: tuple[str, ...] = ()) -> Verdict:
    return Verdict(name, given, rule.measure, None, None, None, 0, None, sentence, more)


def _why_not(record: Record, rule: Yardstick) -> str:
    audit = record.summary["audits"].get(rule.audit)
    if audit is None:
        return f"Not graded: the audit “{rule.audit}” was not run."
    if not audit.get("applies", True):
        return f"Not graded: {audit.get('why') or 'the audit does not apply to this model.'}"
    if rule is AGREEMENT and REFERENCE not in record.summary["explainers"]:
        return f"Not graded: without {REFERENCE} among the explainers there is nothing to compare with."
    return "Not graded: no example has a defined value."


def _sentence(given: Grade, found: Finding, laid: Scale) -> str:
    rule = laid.rule
    if found.low <= laid.null_high:
        return f"Does not clearly beat scores drawn at random when compared with {rule.against}."
    if rule is TRUTH:
        words = {"pass": "Finds most of", "warn": "Finds some of", "fail": "Misses many of"}[given]
        return f"{words} {rule.against}: average precision {found.mean:.2f} of 1."
    words = {"pass": "Agrees well", "warn": "Agrees in part", "fail": "Agrees only weakly"}[given]
    # the share of concordant pairs is (1 + tau) / 2 where nothing is tied, and ties of real scores are rare
    alike = round(50 * (1 + found.mean))
    return (
        f"{words} with {rule.against}: of two words, both put the same one first "
        f"about {alike} times in 100 (chance: 50)."
    )
