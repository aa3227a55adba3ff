"""One section for each audit: its question, the answer in a sentence, figures, a table, how to read them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from assay.records import Finding, Record
from assay.report.attention import furthest, shuffling
from assay.report.tables import Grid, agreement_rows, measure_rows
from assay.report.writing import evidence, number
from assay.report.yardsticks import REFERENCE

TITLES = {
    "agreement": "Do the explanations agree with each other?",
    "permutation": "Does it matter which word gets the attention?",
    "adversary": "Could another heatmap explain the same prediction?",
    "truth": "Do the explanations find the words that decide?",
}
FIGURES = {
    "agreement": ("agreement_gradient", "agreement_leave_one_out"),
    "permutation": ("permutation",),
    "adversary": ("adversary", "adversary_by_attention"),
    "truth": ("truth",),
}
CAPTIONS = {
    "agreement_gradient": "Attention and gradients, text by text. The dashed line at 0 is what unrelated "
    "rankings give.",
    "agreement_leave_one_out": "Attention and leave-one-out, text by text. The dashed line at 0 is what "
    "unrelated rankings give.",
    "permutation": "Change of the prediction when attention is shuffled, by how peaked attention is. Thin "
    "line: 5 to 95 % of texts; bar: 25 to 75 %; thick tick: median.",
    "adversary": "Distance of the furthest attention with the same prediction. The dashed line is the "
    "largest divergence that two distributions can have.",
    "adversary_by_attention": "The same distance, by how peaked the observed attention is. Thin line: 5 to "
    "95 % of texts; bar: 25 to 75 %; thick tick: median.",
    "truth": "How well each explainer finds the deciding words, with 95 % intervals.",
}
READING = {
    "agreement": "If attention tells why a model decides, it should rank the words much as other measures "
    "of importance do. A heap near 1 means that it does, a heap around 0 that the rankings have nothing to "
    "do with each other. A share of significant texts says only that some relation is there: long texts "
    "make weak relations significant.",
    "permutation": "The weights of each text are dealt out anew at random, the words stay. If the "
    "prediction hardly moves even where one word had most of the attention (upper rows), it is hard to "
    "argue that this word was the reason.",
    "adversary": "Mass near the dashed limit means that for most texts some quite different heatmap goes "
    "with the same prediction. One would hope for small distances where attention is peaked (upper rows).",
    "truth": "In this corpus it is known which words decide, so the ranking can be checked directly: 1 "
    "means that all deciding words come first.",
}


@dataclass(frozen=True)
class Section:
    """What a page says about one audit; `figures` names plots, `why_not` is set where it does not apply."""

    name: str
    title: str
    question: str
    answer: str
    reading: str
    paper: str
    kind: str
    figures: tuple[str, ...]
    grid: Grid
    why_not: str | None


def sections(record: Record) -> list[Section]:
    """One section for each audit, in the record's order; those without words of their own get a plain one."""
    return [_section(record, name, about) for name, about in record.summary["audits"].items()]


def _section(record: Record, name: str, about: dict[str, Any]) -> Section:
    grid = agreement_rows(record) if name == "agreement" else measure_rows(record, name)
    why_not = None if about.get("applies", True) else about.get("why") or "It does not apply to this model."
    answer = ANSWERS[name](record) if name in ANSWERS else ""
    return Section(
        name=name,
        title=TITLES.get(name, name.replace("_", " ").capitalize()),
        question=about.get("question") or "",
        answer="No text gave a number." if answer is None else answer,
        reading=READING.get(name, ""),
        paper=about.get("paper") or "",
        kind=about.get("kind") or "",
        figures=FIGURES.get(name, ()) if why_not is None else (),
        grid=grid,
        why_not=why_not,
    )


def _agreement(record: Record) -> str | None:
    """The pairs of the paper: attention with each of its two rivals, then these with one another."""
    rivals = [(name, _either(record, "attention", name)) for name in ("gradient", REFERENCE)]
    told = [f"with {name} at τ {_numbers(found)}" for name, found in rivals if found]
    between = _either(record, "gradient", REFERENCE)
    ending = f"gradient and {REFERENCE} agree with each other at τ {_numbers(between)}" if between else ""
    if not told:
        return f"{ending[0].upper()}{ending[1:]}." if between else None
    return f"Attention agrees {' and '.join(told)}{'; ' if ending else ''}{ending}."


def _numbers(found: Finding) -> str:
    return f"{number(found.mean, 2)} ({evidence(found.low, found.high, found.n)})"


def _either(record: Record, one: str, other: str) -> Finding | None:
    found = (record.finding("agreement", subject, "tau") for subject in (f"{one}~{other}", f"{other}~{one}"))
    return next((finding for finding in found if finding is not None and finding.n > 0), None)


def _truth(record: Record) -> str | None:
    found = [f for f in record.findings if (f.audit, f.measure, f.group) == ("truth", "auprc", "all")]
    if not found:
        return None
    best = max(found, key=lambda f: f.mean)
    rest = [f"{f.subject} {number(f.mean, 2)}" for f in found if f is not best]
    others = f"; the others: {', '.join(rest)}" if rest else ""
    return f"Best is {best.subject} with an AUPRC of {_numbers(best)}{others}."


ANSWERS: dict[str, Callable[[Record], str | None]] = {
    "agreement": _agreement,
    "permutation": shuffling,
    "adversary": furthest,
    "truth": _truth,
}
