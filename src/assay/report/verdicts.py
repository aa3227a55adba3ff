"""Whether each explanation is true to the model, in one plain sentence, and what that means for a heatmap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assay.records import Finding, Record
from assay.report.attention import doubts, furthest, shuffling
from assay.report.writing import interval, number
from assay.report.yardsticks import (
    AGREEMENT,
    AUC_INFORMED,
    FEW,
    NEAR_CHANCE,
    NULL,
    REFERENCE,
    TRUTH,
    Grade,
    Yardstick,
    effect,
    grade,
    null,
    yardstick,
)

OPENINGS: dict[Grade, str] = {
    "pass": "The attention heatmap may be shown as a reason for this model’s decisions",
    "warn": "Show the attention heatmap as a reason for this model’s decisions only with a warning",
    "fail": "Do not show the attention heatmap as the reason for this model’s decisions",
}


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
    return [_verdict(record, name) for name in record.summary["explainers"]]


def standing(record: Record) -> Grade:
    """Whether the attention heatmap may be shown: attention's grade, lowered by what speaks against it."""
    given, against = _attention(record), _against(record)
    if given is None or given.effect is None:
        return "warn" if against else "not applicable"
    return "warn" if given.grade == "pass" and against else given.grade


def headline(record: Record) -> str:
    """One sentence on whether the attention heatmap may be shown as the reason for the model's decisions."""
    given, against, decision = _attention(record), _against(record), standing(record)
    if decision not in OPENINGS:
        return "This run cannot say whether the attention heatmap may be shown: attention was not put to a test."
    clause = [] if given is None or given.effect is None else [_clause(record, given)]
    if given is not None and given.grade == "pass" and against:
        return f"{OPENINGS[decision]}: {clause[0]}, but {_listed(against)}."
    return f"{OPENINGS[decision]}: {_listed(clause + against)}."


def caveats(record: Record) -> list[str]:
    """What a reader should know before trusting the verdict."""
    notes = []
    if near_chance(record):
        notes.append(
            "The model itself is hardly better than always naming the largest class; "
            "an explanation of decisions that are near chance means little, whatever its grade."
        )
    deciding = [f for f in (effect(record, name) for name in record.summary["explainers"]) if f is not None]
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


def _verdict(record: Record, name: str) -> Verdict:
    rule, found, (chance, chance_high) = yardstick(record), effect(record, name), null(record)
    sentences = (shuffling(record), furthest(record)) if name == "attention" else ()
    more = tuple(sentence for sentence in sentences if sentence is not None)
    if name == REFERENCE and rule is AGREEMENT:
        sentence = "The yardstick: how far the prediction moves when a word is deleted. Not graded against itself."
        return _without_number(name, "reference", rule, sentence)
    if found is None:
        return _without_number(name, "not applicable", rule, _why_not(record, rule), more)
    numbers = (rule.measure, found.mean, found.low, found.high, found.n)
    if name == NULL:
        sentence = "Scores drawn at random: what an explainer that knows nothing reaches. The others must beat it."
        return Verdict(name, "reference", *numbers, None, sentence)
    given = grade(found, chance_high, rule)
    return Verdict(name, given, *numbers, chance, _sentence(given, found, chance_high, rule), more)


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


def _sentence(given: Grade, found: Finding, chance_high: float, rule: Yardstick) -> str:
    if found.low <= chance_high:
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


def _attention(record: Record) -> Verdict | None:
    return _verdict(record, "attention") if "attention" in record.summary["explainers"] else None


def _against(record: Record) -> list[str]:
    return doubts(record) + (["the model itself is hardly better than chance"] if near_chance(record) else [])


def _clause(record: Record, given: Verdict) -> str:
    rule = yardstick(record)
    numbers = f"({rule.symbol} {number(given.effect, 2)}, 95 % interval {interval(given.low, given.high, 2)})"
    if given.low is not None and given.low <= null(record)[1]:
        return f"it does not clearly beat random scores {numbers}"
    if rule is TRUTH:
        words = {"pass": "finds most of", "warn": "finds only some of", "fail": "misses many of"}[given.grade]
        return f"it {words} {rule.against} {numbers}"
    words = {"pass": "agrees well", "warn": "agrees only in part", "fail": "agrees only weakly"}[given.grade]
    return f"it {words} with {rule.against} {numbers}"


def _listed(clauses: list[str]) -> str:
    return " and ".join(clauses) if len(clauses) < 3 else f"{', '.join(clauses[:-1])}, and {clauses[-1]}"
