"""The examples of a page: chosen by a rule that is stated, with every explainer's scores over the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Float, Int

from assay.grading.grade import AGREES, ECONOMY, REFERENCE, TRUST, TRUTH, trusted, trusts
from assay.lookup import RANDOM, SENTENCES, items, side_by_side, stacked, texts
from assay.records import Record
from assay.report import heatmaps
from assay.writing import number

MOST = 24
SHORT = 5
"""Rankings of fewer tokens agree or disagree perfectly by accident, so the extremes leave them out."""

CELLS = 6000
"""Tokens in all heatmaps together; longer texts are cut so far that a page stays well below 1 MB."""

MANY, FIRST = 12, 8
"""With more explainers than MANY, only the FIRST are shown at once."""

KNOWN, EXACT = "known", "exact"
SMALLEST, DECEIVED, OTHER = "smallest_set", "deceived", "adversary"
"""Columns of the examples: flags of words, and weights other than those of explainers."""

NONE = '<span class="cut">none: whatever is erased, the decision stays</span>'
LEAST = 20  # tokens of a text that are always shown


@dataclass(frozen=True)
class Choice:
    """One group of examples and the rule by which they were chosen; `rows` are places in their table."""

    title: str
    rule: str
    rows: tuple[int, ...]


@dataclass(frozen=True)
class Ranking:
    """A number for each row of the examples table; nan where there is none."""

    name: str
    values: Float[np.ndarray, " N"]


def choose(record: Record, most: int = MOST) -> list[Choice]:
    """At most `most` examples in groups of about equal size; each example stands in one group only."""
    ranking, dispute = _ranking(record), _dispute(record)
    kinds = 1 + 2 * (ranking is not None) + (dispute is not None)
    each = max(1, most // kinds)
    groups = [] if ranking is None else _extremes(record, ranking, each)
    read = _read(record)
    groups += [] if dispute is None else [_disputed(record, dispute, each, _taken(groups))]
    seed = int(record.summary.get("plan", {}).get("seed") or 0)
    rest = np.setdiff1d(np.arange(record.examples.num_rows), _taken(groups))
    known = rest[np.isin(rest, read)]
    size = len(rest) if record.examples.num_rows <= most else min(len(rest), each)
    among = " among those that the verdict was read off" if size <= len(known) < len(rest) else ""
    rest = known if among else rest
    drawn = np.random.default_rng(seed).choice(rest, size, replace=False)
    rule = f"{size} of {'the others' if groups else 'all examples'}{among}, drawn with seed {seed}"
    groups.append(Choice("At random", rule, tuple(np.sort(drawn).tolist())))
    return [group for group in groups if group.rows]


def _read(record: Record) -> Int[np.ndarray, " K"]:
    """The places of the examples that the audit of the words that decide has read."""
    return np.flatnonzero(np.isin(record.examples["example"].to_numpy(), list(trusts(record))))


def _taken(groups: list[Choice]) -> Int[np.ndarray, " K"]:
    return np.array([row for group in groups for row in group.rows], dtype=int)


def _extremes(record: Record, ranking: Ranking, each: int) -> list[Choice]:
    ordered, limit = _ordered(record, ranking, each)
    low = ordered[: min(each, len(ordered) // 2)]
    high = ordered[len(ordered) - min(each, len(ordered) - len(low)) :][::-1]
    return [
        Choice("Strongest disagreement", f"the {len(low)} with the lowest {ranking.name}{limit}", _places(low)),
        Choice("Best agreement", f"the {len(high)} with the highest {ranking.name}{limit}", _places(high)),
    ]


def _disputed(record: Record, ranking: Ranking, each: int, taken: Int[np.ndarray, " K"]) -> Choice:
    ordered, limit = _ordered(record, ranking, each)
    left = ordered[~np.isin(ordered, taken)][:each]
    others = " that are not shown above" if len(taken) else ""
    return Choice("Most disputed", f"the {len(left)} with the lowest {ranking.name}{limit}{others}", _places(left))


def _ordered(record: Record, ranking: Ranking, each: int) -> tuple[Int[np.ndarray, " K"], str]:
    """The places of the examples from the lowest number on, and in words which of them were looked at."""
    lengths = record.examples["starts"].combine_chunks().value_lengths().to_numpy(zero_copy_only=False)
    defined = np.isfinite(ranking.values)
    long = defined & (lengths >= SHORT)
    limit = f" among texts of at least {SHORT} tokens" if long.sum() >= 2 * each else ""
    candidates = np.flatnonzero(long if limit else defined)
    return candidates[np.argsort(ranking.values[candidates], kind="stable")], limit


def _places(rows: Int[np.ndarray, " K"]) -> tuple[int, ...]:
    return tuple(rows.tolist())


def _ranking(record: Record) -> Ranking | None:
    """Attention's AUPRC, its economy, or its τ with leave-one-out, else the first of these that there is."""
    wanted = ["auprc:attention", "economy:attention", f"tau:attention~{REFERENCE}", f"tau:{REFERENCE}~attention"]
    others = [name for name in record.instances.column_names if name.startswith(("auprc:", "economy:", "tau:"))]
    for name in wanted + others:
        kind, subject = name.split(":", 1)
        audit = {TRUTH.measure: TRUTH.audit, ECONOMY[1]: ECONOMY[0]}.get(kind, AGREES[0])
        values = side_by_side(record, audit, [name])
        if np.isfinite(values).any():
            title = {"auprc": "AUPRC", "tau": "τ"}.get(kind, kind) + f" of {subject.replace('~', ' with ')}"
            return Ranking(title, _by_example(record, audit, values[:, 0]))
    return None


def _dispute(record: Record) -> Ranking | None:
    """The mean τ over all pairs of explainers, where there are more than two that are not random."""
    explainers = [name for name in record.summary["explainers"] if name != RANDOM]
    pairs = [f"tau:{one}~{other}" for one, other in combinations(explainers, 2)]
    values = side_by_side(record, AGREES[0], pairs)
    some = np.isfinite(values).any(axis=1)
    if len(explainers) < 3 or not some.any():
        return None
    means = np.full(len(values), np.nan)
    means[some] = np.nanmean(values[some], axis=1)
    return Ranking(f"mean τ over the {len(pairs)} pairs of explainers", _by_example(record, AGREES[0], means))


def _by_example(record: Record, audit: str, values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " N"]:
    """Numbers of an audit's texts, in the order of the examples table."""
    measured = dict(zip(texts(record, audit).tolist(), values.tolist(), strict=True))
    return np.array([measured.get(example, np.nan) for example in record.examples["example"].to_pylist()], dtype=float)


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
    if stacked(record) and OTHER in record.examples.column_names:
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
    if observed is None or row.get(OTHER) is None:
        return ()
    remark = f"JSD {number(row['adversary_jsd'])}, prediction moves by TVD {number(row['adversary_tvd'])}"
    return observed, Strip("furthest equivalent attention", remark, heatmaps.row(tokens, row[OTHER], part))


def opening(text: str, length: int = 90) -> str:
    """The beginning of a text on one line."""
    line = " ".join(text[: 4 * length].split())
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"
