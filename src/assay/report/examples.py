"""The chosen examples with every explainer's scores over the text, ready to be shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from assay.records import Record
from assay.report import heatmaps
from assay.report.chosen import MOST, Choice, choose
from assay.report.items import SENTENCES, items
from assay.report.likely import TRUST, trusted, trusts
from assay.report.stacks import stacked
from assay.writing import number

CELLS = 6000
"""Tokens in all heatmaps together; longer texts are cut so far that a page stays well below 1 MB."""

MANY, FIRST = 12, 8
"""With more explainers than MANY, only the FIRST are shown at once."""

KNOWN, EXACT = "known", "exact"
SMALLEST, DECEIVED = "smallest_set", "deceived"
NONE = '<span class="cut">none: whatever is erased, the decision stays</span>'
LEAST = 20  # tokens of a text that are always shown


@dataclass(frozen=True)
class Strip:
    """One line of an example: what scored the words, a remark, and the words as HTML."""

    name: str
    remark: str
    html: str


@dataclass(frozen=True)
class Shown:
    """One example as the page shows it; `pair` is observed attention beside the furthest equivalent one.

    Of many explainers the first ones are shown at once, the `rest` only when asked for.
    """

    number: int
    label: str
    predicted: str
    right: bool
    probability: float
    opening: str
    query: str | None
    pair: tuple[Strip, ...]
    strips: tuple[Strip, ...]
    rest: tuple[Strip, ...] = ()


def groups(record: Record, order: Sequence[str] = ()) -> list[tuple[Choice, list[Shown]]]:
    """Each group of chosen examples with what is shown of them; many explainers come in this order."""
    choices = choose(record, _most(record))
    places = pa.array([row for choice in choices for row in choice.rows], pa.int64())
    rows = record.examples.take(places).to_pylist()
    size = _window(record, rows)
    known = trusts(record)
    shown = iter([_shortened(_shown(record, row, size, known.get(row["example"], {})), order) for row in rows])
    return [(choice, [next(shown) for _ in choice.rows]) for choice in choices]


def notes(record: Record) -> list[str]:
    """What a reader of the heatmaps should know of this model and this audit."""
    noun = items(record)
    told = []
    if trusts(record):
        told.append(f"{TRUST} It is known of the texts that the audit of the words that decide has drawn.")
    if noun is SENTENCES:
        told.append("Attention is over sentences here: a word has its share of the weight of its sentence.")
    if SMALLEST in record.examples.column_names:
        told.append(f"The smallest set holds the fewest {noun.many} whose erasure changes the decision.")
    if stacked(record) and "adversary" in record.examples.column_names:
        told.append(
            "The furthest equivalent attention is what is read of the words in the uppermost layer, the mean over its "
            "heads; its distance is that of all layers. What goes to markers around a text is not shown."
        )
    if DECEIVED in record.examples.column_names:
        told.append("Deceiving attention is that of another model, trained to keep it off some words.")
    return told


def _window(record: Record, rows: list[dict[str, Any]]) -> int:
    """The most tokens of a text, at most 150, so that all heatmaps together hold no more than CELLS."""
    strips, lengths = _strips(record), [len(row["starts"]) for row in rows]
    sizes = range(heatmaps.WINDOW, LEAST, -1)
    return next((size for size in sizes if strips * sum(min(n, size) for n in lengths) <= CELLS), LEAST)


def _most(record: Record) -> int:
    """How many examples there is room for; with many explainers they are fewer, but never fewer than two a group."""
    return min(MOST, max(8, CELLS // (_strips(record) * LEAST)))


def _strips(record: Record) -> int:
    """How often a text is written: for each explainer, other attention, what is known, the smallest set."""
    names = record.examples.column_names
    return len([name for name in names if name.startswith("score:")]) + 2 + (SMALLEST in names) + (DECEIVED in names)


def _shown(record: Record, row: dict[str, Any], size: int, trust: Mapping[str, float]) -> Shown:
    classes = [str(name) for name in record.summary["corpus"]["classes"]]
    tokens = heatmaps.Tokens(row["text"], row["starts"], row["ends"])
    scores = {key.removeprefix("score:"): row[key] for key in row if key.startswith("score:") and row[key] is not None}
    first = scores.get("attention") or next(iter(scores.values()), [0.0] * len(row["starts"]))
    part = heatmaps.window(first, size)
    remarks = {name: trusted(value) for name, value in trust.items()}
    strips = [Strip(name, remarks.get(name, ""), heatmaps.row(tokens, values, part)) for name, values in scores.items()]
    pair = _pair(row, tokens, strips, part)
    if row.get(DECEIVED):
        strips.append(Strip("deceiving attention", "another model", heatmaps.row(tokens, row[DECEIVED], part)))
    if row.get("truth"):
        strips.append(Strip(*evidence(record), heatmaps.marked(tokens, row["truth"], part)))
    if row.get(SMALLEST):
        strips.append(_smallest(tokens, row[SMALLEST], part))
    return Shown(
        number=row["example"],
        label=classes[row["label"]],
        predicted=classes[row["predicted"]],
        right=row["label"] == row["predicted"],
        probability=row["probabilities"][row["predicted"]],
        opening=opening(row["text"]),
        query=opening(row["query"], 600) if row.get("query") else None,
        pair=pair,
        strips=tuple(strip for strip in strips if strip not in pair),
    )


def _shortened(shown: Shown, order: Sequence[str]) -> Shown:
    """The example with only the first of many explainers at once, and what is known of the words."""
    names = [*order, *(strip.name for strip in shown.strips)]
    known = [strip for strip in shown.strips if strip.remark in (KNOWN, EXACT)]
    others = sorted((strip for strip in shown.strips if strip not in known), key=lambda strip: names.index(strip.name))
    if len(others) <= MANY:
        return shown
    return replace(shown, strips=(*others[:FIRST], *known), rest=tuple(others[FIRST:]))


def evidence(record: Record) -> tuple[str, str]:
    """Whether the marked words decide by construction, or are what people hold to be the reason."""
    return ("deciding words" if record.summary["corpus"].get("planted", True) else "words marked by people", KNOWN)


def _smallest(tokens: heatmaps.Tokens, flags: Sequence[float], part: tuple[int, int]) -> Strip:
    """The fewest words, or words of the fewest sentences, whose erasure changes the decision, where any does."""
    shown = heatmaps.marked(tokens, [flag > 0 for flag in flags], part) if any(flags) else NONE
    return Strip("smallest set that flips the decision", EXACT, shown)


def _pair(
    row: dict[str, Any], tokens: heatmaps.Tokens, strips: Sequence[Strip], part: tuple[int, int]
) -> tuple[Strip, ...]:
    """Observed attention and the furthest equivalent one, as in figure 1 of Jain and Wallace (2019)."""
    observed = next((strip for strip in strips if strip.name == "attention"), None)
    if observed is None or row.get("adversary") is None:
        return ()
    remark = f"JSD {number(row['adversary_jsd'])}, prediction moves by TVD {number(row['adversary_tvd'])}"
    return observed, Strip("furthest equivalent attention", remark, heatmaps.row(tokens, row["adversary"], part))


def opening(text: str, length: int = 90) -> str:
    """The beginning of a text on one line."""
    line = " ".join(text[: 4 * length].split())
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"
