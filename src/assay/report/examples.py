"""The examples of a page: chosen by a rule that is stated, with every explainer's scores; and those of the browser."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from jaxtyping import Float, Int

from assay.document import Example, Line, opening
from assay.grading.grade import AGREES, ECONOMY, REFERENCE, TRUST, TRUTH, trusted, trusts
from assay.lookup import RANDOM, SENTENCES, items, side_by_side, stacked, texts
from assay.records import Record
from assay.report import heatmaps
from assay.report.heatmaps import PIECE
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

NONE = "none: whatever is erased, the decision stays"
LEAST = 20  # tokens of a text that are always shown
QUERY = 600  # letters of a question that are shown

PRINTED, ROOM, SHOWN = 8, 60, 6
"""Examples, words of each and explainers beside them on paper; all of them stand in the record."""


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
    defined = np.isfinite(ranking.values)
    long = defined & (lengths(record) >= SHORT)
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
class Source:
    """A column of the examples table as a line of scores or flags over each text."""

    column: str
    name: str
    remark: str = ""
    flags: bool = False
    none: str = ""  # what is said where no flag is set

    @property
    def explainer(self) -> bool:
        return self.column.startswith("score:")


def sources(record: Record, order: Sequence[str] = ()) -> list[Source]:
    """Attention with what could stand in its place, then all explainers from the best on, then what is known."""
    table = record.examples
    there = [name for name in table.column_names if table[name].null_count < table.num_rows]
    names = [name.removeprefix("score:") for name in there if name.startswith("score:")]
    ranked = sorted(names, key=lambda name: order.index(name) if name in order else len(order))
    first = [name for name in ranked if name == "attention"]
    found = [Source(f"score:{name}", name) for name in first]
    if first and OTHER in there:
        found.append(Source(OTHER, "furthest equivalent attention"))
    found += [Source(f"score:{name}", name) for name in ranked if name not in first]
    marked = "deciding words" if record.summary["corpus"].get("planted", True) else "words marked by people"
    extra = [
        Source(DECEIVED, "deceiving attention", "another model"),
        Source("truth", marked, KNOWN, flags=True),
        Source(SMALLEST, "smallest set that flips the decision", EXACT, flags=True, none=NONE),
    ]
    return found + [source for source in extra if source.column in there]


def groups(record: Record, order: Sequence[str] = (), printed: bool = False) -> list[tuple[Choice, list[Example]]]:
    """Each group of chosen examples; explainers come in this order, and only the first of many at once.

    Where nothing can be opened, examples, words and explainers are fewer.
    """
    found = sources(record, order)
    room = max(8, CELLS // (len(found) * LEAST)) if found else MOST
    choices = choose(record, PRINTED if printed else min(MOST, room))
    size = ROOM if printed else window(record, choices, len(found), CELLS, heatmaps.WINDOW)
    shown = shown_examples(record, choices, found, size, printed)
    return [(choice, [next(shown) for _ in choice.rows]) for choice in choices]


def window(record: Record, choices: Sequence[Choice], lines: int, cells: int, longest: int) -> int:
    """The most words of a text so that all lines of all chosen texts hold no more than so many cells."""
    chosen = [row for choice in choices for row in choice.rows]
    most = lengths(record)[chosen] if chosen else np.empty(0, int)
    sizes = range(longest, LEAST, -1)
    return next((size for size in sizes if lines * int(np.minimum(most, size).sum()) <= cells), LEAST)


def lengths(record: Record) -> Int[np.ndarray, " N"]:
    """How many tokens each example has."""
    return np.asarray(record.examples["starts"].combine_chunks().value_lengths().to_numpy(zero_copy_only=False), int)


def shown_examples(
    record: Record, choices: Sequence[Choice], found: Sequence[Source], size: int, printed: bool = False
) -> Iterator[Example]:
    """The chosen examples in their order, each with its lines and with so many words around the strongest."""
    places = pa.array([row for choice in choices for row in choice.rows], pa.int64())
    classes, known = [str(name) for name in record.summary["corpus"]["classes"]], trusts(record)
    for row in record.examples.take(places).to_pylist():
        yield _example(row, classes, _lines(row, found, known), size, printed)


def _lines(row: Mapping[str, Any], found: Sequence[Source], known: Mapping[int, Mapping[str, float]]) -> list[Line]:
    """The lines that an example has; those of explainers say how far each can be trusted, where that is known."""
    trust, lines = known.get(row["example"], {}), []
    for source in found:
        scores = row[source.column]
        if scores is None or (not scores and not source.explainer):
            continue
        remark = _distance(row) if source.column == OTHER else source.remark
        if source.explainer and source.name in trust:
            remark = trusted(trust[source.name])
        if source.flags:
            scores = [1.0 if flag and flag > 0 else 0.0 for flag in scores]
        kind: Literal["explainer", "other", "flags"] = "flags" if source.flags else "other"
        lines.append(Line(source.name, scores, "explainer" if source.explainer else kind, remark, source.none))
    return lines


def _example(
    row: Mapping[str, Any], classes: Sequence[str], lines: Sequence[Line], size: int, printed: bool
) -> Example:
    explainers = [line for line in lines if line.kind == "explainer"]
    most = SHOWN if printed else FIRST if len(explainers) > MANY else len(explainers)
    rest = explainers[most:]
    first, last = heatmaps.window(lines[0].scores if lines else [0.0] * len(row["starts"]), size)
    query = row.get("query") or ""
    return Example(
        number=row["example"],
        text=row["text"],
        starts=row["starts"],
        ends=row["ends"],
        first=first,
        last=last,
        label=classes[row["label"]],
        predicted=classes[row["predicted"]],
        probability=row["probabilities"][row["predicted"]],
        lines=tuple(line for line in lines if line not in rest),
        rest=tuple(rest),
        query=query if printed else opening(query, QUERY),
        paired=len(lines) > 1 and lines[0].name == "attention" and lines[1].kind == "other",
    )


def _distance(row: Mapping[str, Any]) -> str:
    """How far the furthest equivalent attention lies from the observed one, as figure 1 of Jain and Wallace (2019)."""
    return f"JSD {number(row['adversary_jsd'])}, prediction moves by TVD {number(row.get('adversary_tvd'))}"


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


# The data of the example browser: up to 200 examples chosen by rule, with all scores as small whole numbers.


BROWSED = 200
"""Examples in the browser; all others lie in the files beside a page."""

BROWSED_CELLS = 120_000
"""Scores in the browser together, about 400 kB; longer texts are cut to fit."""

LONGEST = 400
"""Tokens of a text that are shown at most."""

STEPS = 999
"""A score is a whole number of steps up to the strongest of its row, which has this many."""

KEYS = {
    "Strongest disagreement": "worst",
    "Best agreement": "best",
    "Most disputed": "disputed",
    "At random": "random",
}


def browse(record: Record, order: Sequence[str] = ()) -> dict[str, Any] | None:
    """What the browser shows, ready for JSON; None where a record has no examples. Rows stand in this order."""
    found = sources(record, order)
    room = max(8, BROWSED_CELLS // (LEAST * max(1, len(found))))
    choices = choose(record, min(BROWSED, room, max(1, record.examples.num_rows)))
    if not choices:
        return None
    size = window(record, choices, len(found), BROWSED_CELLS, LONGEST)
    classes = [str(name) for name in record.summary["corpus"]["classes"]]
    groups = [place for place, choice in enumerate(choices) for _ in choice.rows]
    shown = [_data(example, found, classes) for example in shown_examples(record, choices, found, size)]
    return {
        "classes": classes,
        "groups": [{"key": _key(choice.title), "title": choice.title, "rule": choice.rule} for choice in choices],
        "rows": [{key: value for key, value in asdict(source).items() if value} for source in found],
        "first": FIRST if len(found) > MANY else None,
        "total": record.examples.num_rows,
        "steps": STEPS,
        "window": size if any(example["length"] > size for example in shown) else None,
        "lengths": thirds(record),
        "examples": [{"group": group} | example for group, example in zip(groups, shown, strict=True)],
    }


def thirds(record: Record) -> tuple[int, int]:
    """Up to how many tokens a text counts as short, and up to how many as medium: thirds of all texts."""
    every = lengths(record)
    low, high = np.quantile(every, [1 / 3, 2 / 3]) if len(every) else (0, 0)
    return int(low), int(high)


def _key(title: str) -> str:
    return KEYS.get(title, title.lower())


def _data(example: Example, found: Sequence[Source], classes: Sequence[str]) -> dict[str, Any]:
    lines = {line.name: line for line in (*example.lines, *example.rest)}
    remarks = {name: line.remark for name, line in lines.items() if line.remark}
    trust = {name: remark for name, remark in remarks.items() if lines[name].kind == "explainer"}
    moved = next((remarks[each.name] for each in found if each.column == OTHER and each.name in lines), "")
    own = {"query": example.query, "remark": moved, "trust": trust}
    return {
        "number": example.number,
        "label": classes.index(example.label),
        "predicted": classes.index(example.predicted),
        "probability": round(float(example.probability), 3),
        "opening": example.opening,
        "length": len(example.starts),
        "first": example.first,
        "words": [word if len(word) <= PIECE else f"{word[:PIECE]}…" for word in example.words],
        "scores": [_steps(lines[each.name].scores, example) if each.name in lines else None for each in found],
    } | {name: value for name, value in own.items() if value}


def _steps(given: Sequence[float], example: Example) -> list[Any]:
    """The strongest of the whole text, then each score that is shown in steps up to it; None where there is no number.

    A score is told to a thousandth of the strongest, which is finer than any shade.
    """
    scores = np.array(given, float)
    finite = np.isfinite(scores)
    peak = float(np.abs(scores[finite]).max(initial=0.0))
    steps = np.rint(STEPS * np.where(finite, scores, 0.0) / (peak or 1.0)).astype(int).tolist()
    told = [step if there else None for step, there in zip(steps, finite.tolist(), strict=True)]
    return [float(f"{peak:.4g}") if math.isfinite(peak) else 0.0, *told[example.first : example.last]]
