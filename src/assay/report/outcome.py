"""The outcome of a run: headline, counts, result of each audit and caveats, the same wherever they are shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from assay.records import Record
from assay.report.cards import Card, cards
from assay.report.compared.together import closing, together
from assay.report.facts import left_out
from assay.report.graders import MEASURED, NOT_APPLICABLE
from assay.report.verdicts import (
    ATTENTION,
    Verdict,
    ability,
    against,
    leader,
    near_chance,
    standing,
    verdicts,
)
from assay.report.writing import count, interval, listed, number
from assay.report.yardsticks import AUC_INFORMED, FEW, NEAR_CHANCE, TRUTH, Grade, scale

OPENINGS: dict[Grade, str] = {
    "pass": "The {heatmap} may be shown as a reason for this model’s decisions",
    "warn": "Show the {heatmap} as a reason for this model’s decisions only with a warning",
    "fail": "Do not show the {heatmap} as the reason for this model’s decisions",
}
OF_EXPLAINERS = {"pass": "pass", "warn": "warn", "fail": "fail", "reference": "reference", NOT_APPLICABLE: "not graded"}
OF_AUDITS = {"pass": "pass", "warn": "warn", "fail": "fail", MEASURED: "measured only", NOT_APPLICABLE: NOT_APPLICABLE}
"""What each grade is called in a count, in the order in which they are counted."""


@dataclass(frozen=True)
class Outcome:
    """What a run says: terminal, `print`, page, PDF, Markdown, JSON and notebook show these words and no others.

    `grade` is that of the heatmap of the headline, which is of `explainer`. `tally` counts the grades of all explainers
    and of all audits; `cards` are the audits, each with its result.
    """

    headline: str
    grade: Grade
    explainer: str | None
    tally: str
    cards: tuple[Card, ...]
    caveats: tuple[str, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def graded(self) -> bool:
        """Whether any explainer has a number on the yardstick, so that a table of them tells something."""
        return any(verdict.effect is not None for verdict in self.verdicts)


def outcome(record: Record) -> Outcome:
    """The outcome of a record."""
    found, audits = tuple(verdicts(record)), tuple(cards(record))
    given = leader(record)
    return Outcome(
        headline=_headline(record, given, audits),
        grade=standing(record),
        explainer=None if given is None else given.name,
        tally=" ".join(_tallies(found, audits)),
        cards=audits,
        caveats=tuple(_caveats(record)),
        verdicts=found,
    )


def _headline(record: Record, given: Verdict | None, audits: Iterable[Card]) -> str:
    """One sentence on whether a heatmap may be shown; of a run that tests none, the result of its audits."""
    decision, reasons = standing(record), against(record)
    if given is None or decision not in OPENINGS:
        return _without_heatmap(record, given, audits)
    opening = OPENINGS[decision].format(heatmap=_heatmap(record, given.name))
    clause = [] if given.effect is None else [_clause(record, given)]
    if given.grade == "pass" and reasons:
        return f"{opening}: {clause[0]}, but {listed(reasons)}."
    return f"{opening}: {listed(clause + reasons)}."


def _without_heatmap(record: Record, given: Verdict | None, audits: Iterable[Card]) -> str:
    if together(record) is not None:
        return f"This run tests attention, not a single heatmap: {closing(record)}"
    if results := [card.brief for card in audits if card.told]:
        return f"No heatmap was graded: {results[0]}"
    if given is None:
        return "This run cannot say whether a heatmap may be shown: no explainer was put to a test."
    return "This run cannot say whether the attention heatmap may be shown: attention was not put to a test."


def _heatmap(record: Record, name: str) -> str:
    """The heatmap of the headline; one that stands there because no other is better is named as such."""
    if name == ATTENTION:
        return "attention heatmap"
    graded = sum(verdict.grade in OPENINGS for verdict in verdicts(record))
    return f"heatmap of {name}" + (f", the best of {graded}," if graded > 1 else "")


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


def _tallies(found: Iterable[Verdict], audits: Iterable[Card]) -> list[str]:
    """How many explainers, and how many audits, have each grade: the numbers add up to the last one."""
    counted = {
        "Explainers": _counts((verdict.grade for verdict in found), OF_EXPLAINERS),
        "Audits": _counts((card.grade for card in audits), OF_AUDITS),
    }
    return [f"{noun}: {counts}." for noun, counts in counted.items() if counts]


def _counts(grades: Iterable[str], words: Mapping[str, str]) -> str:
    sizes = Counter(grades)
    shown = [f"{count(sizes[grade])} {word}" for grade, word in words.items() if sizes[grade]]
    return f"{', '.join(shown)} of {count(sizes.total())}" if shown else ""


def _caveats(record: Record) -> list[str]:
    """What a reader should know before trusting the outcome."""
    effects = scale(record).effects
    deciding = [effects[name] for name in record.summary["explainers"] if name in effects]
    others = [f for f in record.findings if f.group == "all" and f.n > 0]
    fewest = min((f.n for f in deciding or others), default=record.examples.num_rows)
    undefined = max(deciding, key=lambda f: f.undefined, default=None)
    notes = _of_the_model(record)
    if fewest < FEW:
        behind = "a grade" if deciding else "some numbers"
        notes.append(f"Only {_texts(fewest)} behind {behind}: with fewer than {FEW} an interval is itself uncertain.")
    notes += _unread(record)
    if undefined is not None and undefined.undefined:
        every = undefined.n + undefined.undefined
        notes.append(
            f"For {count(undefined.undefined)} of {count(every)} texts a measure does not exist (one token only, or "
            "all scores equal)."
        )
    return notes + _unfit(record)


def _unfit(record: Record) -> list[str]:
    """The explainers that were asked for and cannot serve the model, with the reasons."""
    every, told = record.summary.get("left_out") or {}, left_out(record)
    named = "; ".join(f"{names} ({reason.rstrip('.')})" for names, reason in told)
    noun = "explainer was" if len(every) == 1 else "explainers were"
    return [f"{count(len(every))} {noun} left out: {named}."] if every else []


def _texts(size: int) -> str:
    return "1 text stands" if size == 1 else f"{count(size)} texts stand"


def _of_the_model(record: Record) -> list[str]:
    """What accuracy and AUC say against the model."""
    accuracy, largest, auc = ability(record)
    if accuracy is None:
        return []
    known = f"accuracy {number(accuracy)}, largest class {number(largest)}"
    known += "" if auc is None else f", AUC {number(auc)}"
    if near_chance(record):
        return [
            f"The model itself is hardly better than chance ({known}); an explanation of decisions that are near "
            "chance means little, whatever its grade."
        ]
    if accuracy < largest + NEAR_CHANCE:
        return [
            f"The model is hardly more often right than always naming the largest class ({known}): its AUC shows that "
            "it knows something, its decisions hardly do."
        ]
    if auc is not None and auc < AUC_INFORMED:
        return [f"The model hardly ranks texts better than chance ({known})."]
    return []


def _unread(record: Record) -> list[str]:
    """The texts that were asked for and not audited, with the reasons."""
    reasons: dict[str, int] = record.summary["corpus"].get("unread") or {}
    if not reasons:
        return []
    lost, told = sum(reasons.values()), ", ".join(f"{reason}: {count(size)}" for reason, size in reasons.items())
    return [f"{count(lost)} of {count(lost + record.examples.num_rows)} texts were left out ({told})."]
