"""The outcome of a run: headline, counts, result of each audit and caveats, the same wherever they are shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.grading.grade import (
    ATTENTION,
    AUC_INFORMED,
    FEW,
    GRADED,
    NEAR_CHANCE,
    TRUTH,
    Grade,
    Scale,
    Verdict,
    ability,
    likelihood,
    near_chance,
    ranked,
    scale,
    standing,
    told,
    verdicts,
    yardstick,
)
from assay.lookup import MEASURED, NOT_APPLICABLE
from assay.records import Record
from assay.report.facts import left_out
from assay.report.sections import TOGETHER, Card, cards
from assay.writing import count, interval, number

OPENINGS: dict[Grade, str] = {
    "pass": "You may show {best} as a reason for this model’s decisions",
    "warn": "Show {best} as a reason for this model’s decisions only with a warning",
    "fail": "Do not show {best} as the reason for this model’s decisions",
}
OF_ATTENTION = {
    "pass": "attention may be shown too",
    "warn": "show attention only with a warning",
    "fail": "do not show attention",
    NOT_APPLICABLE: "of attention nothing can be said",
}
OF_EXPLAINERS = {"pass": "pass", "warn": "warn", "fail": "fail", "reference": "reference", NOT_APPLICABLE: "not graded"}
OF_AUDITS = {"pass": "pass", "warn": "warn", "fail": "fail", MEASURED: "measured only", NOT_APPLICABLE: NOT_APPLICABLE}
"""What each grade is called in a count, in the order in which they are counted."""


@dataclass(frozen=True)
class Outcome:
    """What a run says: terminal, `print`, page, PDF, Markdown, JSON and notebook show these words and no others.

    `grade` is that of the headline, which is about `explainer`, the best of all. `tally` counts the grades of all
    explainers and of all audits; `cards` are the audits, each with its result.
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
        """Whether any explainer has a grade, so that a table of them tells something."""
        return any(verdict.grade in GRADED for verdict in self.verdicts)


def outcome(record: Record) -> Outcome:
    """The outcome of a record."""
    found, audits, given = tuple(verdicts(record)), tuple(cards(record)), ranked(record)
    return Outcome(
        headline=_headline(record, given, audits),
        grade=standing(record),
        explainer=given[0].name if given else None,
        tally=" ".join(_tallies(found, audits)),
        cards=audits,
        caveats=tuple(_caveats(record)),
        verdicts=found,
    )


def _headline(record: Record, given: Sequence[Verdict], audits: Iterable[Card]) -> str:
    """Which heatmap may be shown, whether that of attention may, and why; of a run that tests none, its audits."""
    if not given:
        return _without_heatmap(record, audits)
    best, decision = given[0], standing(record)
    if decision == "fail" and len(given) > 1:
        opening = (
            f"None of these {count(len(given))} explainers may be shown as the reason for this model’s decisions; the "
            f"least bad is {best.name}"
        )
    else:
        opening = OPENINGS[decision].format(best=best.name)
    attention = next((v for v in verdicts(record) if v.name == ATTENTION and v.name != best.name), None)
    if attention is not None and decision != "fail":
        opening += f"; {OF_ATTENTION[attention.grade]}"
    chance = ", but the model itself is hardly better than chance" if near_chance(record) else ""
    return f"{opening}: {_clause(record, best, attention)}{chance}."


def _clause(record: Record, best: Verdict, attention: Verdict | None) -> str:
    """The numbers of the best explainer, and of attention where that is another one."""
    numbers = [v for v in (best, attention) if v is not None and v.effect is not None]
    if yardstick(record) is TRUTH:
        rule = TRUTH
        words = {"pass": "finds most of", "warn": "finds only some of", "fail": "misses many of"}[best.grade]
        reached = [f"{rule.symbol} {number(v.effect, 2)}, 95 % interval {interval(v.low, v.high, 2)}" for v in numbers]
        other = f"; attention: {reached[1]}" if len(reached) > 1 else ""
        return f"it {words} {rule.against} ({reached[0]}{other})"
    of_hundred = [likelihood(v.effect or 0.0) for v in numbers]
    other = f", one like attention in {of_hundred[1]}" if len(of_hundred) > 1 else ""
    return (
        f"in {of_hundred[0]} models with known reasons an explainer that measured like {best.name} had found the "
        f"deciding words{other}"
    )


def _without_heatmap(record: Record, audits: Iterable[Card]) -> str:
    if (block := together(record)) is not None:
        return f"This run tests attention, not a single heatmap: {block['closing']}"
    asked = [v for v in verdicts(record) if v.grade == NOT_APPLICABLE]
    if asked and yardstick(record).audit in record.summary["audits"]:
        return f"This run cannot say whether a heatmap may be shown: {_lowered(asked[0].sentence)}"
    if results := [card.brief for card in audits if card.told]:
        return f"No heatmap was graded: {results[0]}"
    return "This run cannot say whether a heatmap may be shown: no explainer was put to a test."


def together(record: Record) -> dict[str, Any] | None:
    """What several tests of attention say together, for a page; None where too few of them were run."""
    block: dict[str, Any] | None = record.summary.get(TOGETHER)
    if not block or not near_chance(record):
        return block or None
    weak = "The audited model is itself hardly better than chance, so none of this says much."
    return block | {"closing": f"{weak} {block['closing']}"}


def _lowered(sentence: str) -> str:
    return f"{sentence[:1].lower()}{sentence[1:]}"


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
    laid = scale(record)
    others = [f.n for f in record.findings if f.group == "all" and f.n > 0]
    fewest = min(others, default=record.examples.num_rows)
    notes = _of_the_model(record)
    if laid.unlike and ranked(record):
        notes.append(told(laid.unlike))
    if fewest < FEW and not ranked(record):
        notes.append(
            f"Only {_texts(fewest)} behind some numbers: with fewer than {FEW} an interval is itself uncertain."
        )
    return notes + _unread(record) + _undefined(laid) + _unfit(record)


def _undefined(laid: Scale) -> list[str]:
    """Where known words judge: in how many texts the explainer with the fewest numbers has none."""
    most = max(laid.measured.values(), key=lambda found: found.undefined, default=None)
    if laid.rule is not TRUTH or most is None or not most.undefined:
        return []
    every = most.n + most.undefined
    return [
        f"For {count(most.undefined)} of {count(every)} texts a measure does not exist (no word is known to decide, or "
        "a score is missing)."
    ]


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
