"""One card for each audit: its question, the answer, a grade by a rule that is stated, figures and tables."""

from __future__ import annotations

import re
from dataclasses import dataclass

from assay.grading.grade import (
    DECIDING,
    HOPELESS,
    SAME,
    TRUTH,
    Yardstick,
    leading,
    likelihood,
    scale,
    surely,
    too_few,
    yardstick,
)
from assay.lookup import MEASURED, NOT_APPLICABLE, RANDOM, bounded, items, told
from assay.records import Finding, Record
from assay.report.tables import Flips, Matrix, agreement_rows, by_class, flip_tables, kind, matrices, measure_rows
from assay.stories import Drawing, Grid, Rule
from assay.writing import number

TABLES = ("matrix", "flips")
"""Kinds of drawings that are tables of a page, not figures."""

MOST = 15
"""More explainers than this are not drawn in one figure; the table below it holds all."""

NOTHING = "No text gave a number."
SENTENCE = re.compile(r"(?<=[.])\s+(?=[A-Z“])")
TOGETHER = "together"
"""What a summary holds of tests that only say something together."""


@dataclass(frozen=True)
class Card:
    """One audit of a run: the question as its title, its grade with the reason, and the answer in a sentence or two."""

    name: str
    title: str
    grade: str  # pass, warn, fail, not applicable, or measured where no rule can be defended
    why: str
    answer: str

    @property
    def told(self) -> bool:
        """Whether the audit gave a result."""
        return self.grade != NOT_APPLICABLE and (self.grade != MEASURED or self.answer not in ("", NOTHING))

    @property
    def result(self) -> str:
        """What was graded in a sentence, or else the whole answer."""
        told = self.answer if self.grade == MEASURED and self.answer else self.why
        return f"{told[:1].upper()}{told[1:]}{'' if told.endswith('.') else '.'}"

    @property
    def brief(self) -> str:
        """The first sentence of the result."""
        first = SENTENCE.split(self.result, maxsplit=1)[0]
        return first if first.endswith(".") else f"{first}."


@dataclass(frozen=True)
class Section(Card):
    """What a page says about one audit: its card and more; `figures` names plots, `why_not` is set where it is unfit.

    `grid` holds all its numbers, `short` those that are worth a table of their own.
    """

    question: str
    reading: str
    paper: str
    kind: str
    figures: tuple[str, ...]
    matrices: tuple[Matrix, ...]
    flips: tuple[Flips, ...]
    short: Grid | None
    grid: Grid
    why_not: str | None
    remark: str | None
    whole: bool  # whether the numbers of each predicted class stand elsewhere
    rule: str


def cards(record: Record) -> list[Card]:
    """One card for each audit, in the record's order."""
    return [card(record, name) for name in record.summary["audits"]]


def card(record: Record, name: str) -> Card:
    """The card of one audit."""
    said = record.conclusions.get(name)
    answer = "" if said is None else said.answer or NOTHING
    return Card(name, items(record).named(record.stories[name].title), *grade(record, name), answer)


def sections(record: Record) -> list[Section]:
    """One section for each audit, in the record's order."""
    return [_section(record, name) for name in record.summary["audits"]]


def _section(record: Record, name: str) -> Section:
    about, story, said = record.summary["audits"][name], record.stories[name], record.conclusions.get(name)
    why_not = None if about.get("applies", True) else about.get("why") or "It does not apply to this model."
    models = story.subjects == "model"
    return Section(
        **vars(card(record, name)),
        question=story.question,
        reading=items(record).named(story.reading),
        paper=story.paper,
        kind=kind(story, about.get("kind") or ""),
        figures=_figures(record, name) if why_not is None else (),
        matrices=tuple(matrices(record, name)),
        flips=tuple(flip_tables(record, name)),
        short=said.tables[0] if said and said.tables else None,
        grid=agreement_rows(record, name) if story.subjects == "pair" else measure_rows(record, name),
        why_not=why_not,
        remark=about.get("remark"),
        whole=not by_class(record) or (models and any(f.audit == name and f.group != "all" for f in record.findings)),
        rule=" ".join(filter(None, (story.rule.how, speaks(record, name)))),
    )


def drawings(record: Record) -> dict[str, tuple[str, Drawing]]:
    """The drawings of all audits by their names, each with its audit; the last audit that has one of a name counts."""
    every = ((name, drawing) for name, story in record.stories.items() for drawing in story.drawings)
    return {drawing.name: (name, drawing) for name, drawing in every if drawing.kind not in TABLES}


def _figures(record: Record, name: str) -> tuple[str, ...]:
    """The figures of an audit; what stands in the block of several tests, or in another section, is not repeated."""
    block = record.summary.get(TOGETHER) or {}
    mine = (figure for figure, (owner, _) in drawings(record).items() if owner == name)
    return tuple(figure for figure in mine if figure != block.get("figure"))


def captions(record: Record) -> dict[str, str]:
    """The caption of each figure; where a figure cannot hold all explainers it says which ones it holds."""
    total, noun = len(record.summary["explainers"]), items(record)
    found = {name: drawing for name, (_, drawing) in drawings(record).items()}
    texts = {name: noun.named(drawing.caption) for name, drawing in found.items()}
    limited = {name: drawing.options["drawn"] for name, drawing in found.items() if drawing.options.get("drawn")}
    if total <= MOST:
        return texts
    return texts | {
        name: f"{texts[name]} Drawn are the {first} {MOST} of {total} explainers; the table below holds all."
        for name, first in limited.items()
    }


def speaks(record: Record, name: str) -> str:
    """What a card is about, and whether it decides what may be shown."""
    if name == yardstick(record).audit:
        return "The verdict is read off this card."
    explained = record.stories[name].about == "explanations"
    about = "the explanations" if explained else "the model and its attention"
    return f"This card speaks of {about}; it does not decide what may be shown."


def grade(record: Record, name: str) -> tuple[str, str]:
    """The grade of one audit (pass, warn, fail, not applicable, measured) and the reason in a sentence."""
    about = record.summary["audits"].get(name)
    if about is None:
        return NOT_APPLICABLE, "The audit was not run."
    if not about.get("applies", True):
        return NOT_APPLICABLE, about.get("why") or "It does not apply to this model."
    if not any(f.audit == name and f.n > 0 for f in record.findings):
        return NOT_APPLICABLE, NOTHING
    story, said = record.stories[name], record.conclusions.get(name)
    if not story.rule.how:
        return MEASURED, f"Not graded. {story.ungraded or 'No rule is stated for this audit.'}"
    if said is not None and said.grade:
        return said.grade, said.why
    return _by_rule(record, name) or (MEASURED, "Not graded: what the rule asks for was not measured.")


def _by_rule(record: Record, name: str) -> tuple[str, str] | None:
    """The grade of the leading explainer, by the verdict's own scale or by the limits of the rule."""
    rule, explainer = record.stories[name].rule, leading(record) or ""
    for known in (TRUTH, DECIDING):
        if name == known.audit:
            return _laid(record, known, rule, explainer)
    if rule.reference and explainer == rule.reference:
        return MEASURED, f"Not graded: {explainer} is what the others are compared with."
    found, null = (_subject(record, name, rule, each) for each in (explainer, RANDOM))
    if found is None:
        return None
    if rule.reference and found.low >= SAME:
        return MEASURED, f"Not graded: {explainer} is the same as {rule.reference} but for the sign."
    reached = 0.0 if null is None else null.high
    return _limited(found, rule, reached), _reason(rule, explainer, found, reached)


def _laid(record: Record, known: Yardstick, rule: Rule, explainer: str) -> tuple[str, str] | None:
    laid = scale(record, known)
    found = laid.measured.get(explainer)
    if found is None:
        return None
    given = laid.grade(explainer)
    if given == NOT_APPLICABLE:
        return given, too_few(found) or HOPELESS
    likely = likelihood(laid.effects[explainer].mean) if known is DECIDING else ""
    return given, _reason(rule, explainer, found, laid.null_high).replace("{likelihood}", likely)


def _subject(record: Record, audit: str, rule: Rule, explainer: str) -> Finding | None:
    pairs = (f"{explainer}~{rule.reference}", f"{rule.reference}~{explainer}")
    every = (bounded(record, audit, rule.measure, each) for each in (pairs if rule.reference else (explainer,)))
    return next((found for found in every if found is not None), None)


def _limited(found: Finding, rule: Rule, null_high: float) -> str:
    """Fails when surely weak or not beyond the null, passes when surely strong, warns in between."""
    if rule.beyond_null and found.low <= null_high:
        return "fail"
    if rule.passes is None or rule.fails is None:  # a gain
        return "pass" if found.low > 0 else "fail" if found.high <= 0 else "warn"
    if rule.better == "low":
        return "pass" if found.high < rule.passes else "fail" if found.low >= rule.fails else "warn"
    return surely(found, rule.passes, rule.fails)


def _reason(rule: Rule, explainer: str, found: Finding, null_high: float) -> str:
    words = {"{found}": told(found), "{null}": number(null_high, 2), "{name}": explainer}
    sentence = rule.sentence
    for key, text in words.items():
        sentence = sentence.replace(key, text)
    return sentence
