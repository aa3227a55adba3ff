"""Whether each explanation is true to the model, in one plain sentence, and what that means for a heatmap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assay.records import Finding, Record
from assay.report.attention import doubts, sentences
from assay.report.writing import interval, listed, number
from assay.report.yardsticks import (
    AGREEMENT,
    AUC_INFORMED,
    FEW,
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

OPENINGS: dict[Grade, str] = {
    "pass": "The {heatmap} may be shown as a reason for this model’s decisions",
    "warn": "Show the {heatmap} as a reason for this model’s decisions only with a warning",
    "fail": "Do not show the {heatmap} as the reason for this model’s decisions",
}
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


def standing(record: Record) -> Grade:
    """Whether the heatmap of the headline may be shown: its grade, lowered by what speaks against it."""
    given, against = _leading(record), _against(record)
    if given is None or given.effect is None:
        return "warn" if against and given is not None else "not applicable"
    return "warn" if given.grade == "pass" and against else given.grade


def headline(record: Record) -> str:
    """One sentence on whether a heatmap may be shown as the reason for the model's decisions."""
    given, against, decision = _leading(record), _against(record), standing(record)
    if given is None:
        return "This run cannot say whether a heatmap may be shown: no explainer was put to a test."
    if decision not in OPENINGS:
        return "This run cannot say whether the attention heatmap may be shown: attention was not put to a test."
    opening = OPENINGS[decision].format(heatmap=_heatmap(record, given.name))
    clause = [] if given.effect is None else [_clause(record, given)]
    if given.grade == "pass" and against:
        return f"{opening}: {clause[0]}, but {listed(against)}."
    return f"{opening}: {listed(clause + against)}."


def tally(record: Record) -> str | None:
    """How many of the graded explainers pass, are warned of and fail; None where fewer than two are graded."""
    given = [v.grade for v in verdicts(record) if v.grade in OPENINGS]
    if len(given) < 2:
        return None
    words = {"pass": "may be shown", "warn": "with a warning only", "fail": "should not be shown"}
    counts = [f"{given.count(grade)} {words[grade]}" for grade in OPENINGS if grade in given]
    return f"Of {len(given)} graded explainers {listed(counts)}."


def caveats(record: Record) -> list[str]:
    """What a reader should know before trusting the verdict."""
    notes = []
    if near_chance(record):
        notes.append(
            "The model itself is hardly better than always naming the largest class; "
            "an explanation of decisions that are near chance means little, whatever its grade."
        )
    effects = scale(record).effects
    deciding = [effects[name] for name in record.summary["explainers"] if name in effects]
    if deciding and min(f.n for f in deciding) < FEW:
        notes.append(f"Fewer than {FEW} examples stand behind a grade; its interval is itself uncertain.")
    lost = max((f.undefined for f in deciding), default=0)
    if lost:
        notes.append(f"For {lost} examples a measure does not exist (one token only, or all scores equal).")
    return notes


def near_chance(record: Record) -> bool:
    """Whether the model's test accuracy is close to that of always naming the largest class."""
    test = record.summary.get("model", {}).get("test") or {}
    accuracy, auc = test.get("accuracy"), test.get("auc")
    labels = record.examples["label"].to_numpy()
    if accuracy is None or len(labels) == 0:
        return False
    largest = float(np.bincount(labels).max() / len(labels))
    return bool(accuracy < largest + NEAR_CHANCE and (auc is None or auc < AUC_INFORMED))


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


def _leading(record: Record) -> Verdict | None:
    name = leading(record)
    return None if name is None else _verdict(record, name, scale(record))


def _heatmap(record: Record, name: str) -> str:
    """The heatmap of the headline; one that stands there because no other is better is named as such."""
    if name == ATTENTION:
        return "attention heatmap"
    graded = sum(verdict.grade in OPENINGS for verdict in verdicts(record))
    return f"heatmap of {name}" + (f", the best of {graded}," if graded > 1 else "")


def _against(record: Record) -> list[str]:
    own = doubts(record) if leading(record) == ATTENTION else []
    return own + (["the model itself is hardly better than chance"] if near_chance(record) else [])


def _clause(record: Record, given: Verdict) -> str:
    laid = scale(record)
    rule = laid.rule
    numbers = f"({rule.symbol} {number(given.effect, 2)}, 95 % interval {interval(given.low, given.high, 2)})"
    if given.low is not None and given.low <= laid.null_high:
        return f"it does not clearly beat random scores {numbers}"
    if rule is TRUTH:
        words = {"pass": "finds most of", "warn": "finds only some of", "fail": "misses many of"}[given.grade]
        return f"it {words} {rule.against} {numbers}"
    words = {"pass": "agrees well", "warn": "agrees only in part", "fail": "agrees only weakly"}[given.grade]
    return f"it {words} with {rule.against} {numbers}"
