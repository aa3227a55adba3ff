"""Two runs or more beside each other: what they have in common, and which numbers differ by more than noise."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Int

from assay.errors import AssayError
from assay.grading.grade import AGREES as AGREEMENT
from assay.grading.grade import DECIDING, REFERENCE, TRUTH, Grade, verdicts, yardstick
from assay.grading.leaderboard import Column, columns
from assay.lookup import BASELINES, over_all, side_by_side, texts
from assay.metrics.comparisons import ENOUGH, FEWEST, SURE, Contrast, alone, apart, holm, paired
from assay.records import Finding, Record
from assay.writing import line, number

Runs = Mapping[str, Record]
"""Runs by name."""

Facts = tuple[tuple[str, tuple[str, ...]], ...]
"""Facts with a text for each run."""

ATTENTION = "attention"
YARDSTICKS = [(each.audit, each.measure) for each in (TRUTH, DECIDING)]
COURSE = ("data", "epochs", "best_epoch", "best_dev", "losses", "dev_scores", "skipped")
"""What the history of a model tells of how training went; `data` is a hash, and planted texts follow the seed."""


@dataclass(frozen=True)
class Quantity:
    """One number of an explainer in each run, and its number for each text; `rises` is None where no way is better."""

    audit: str
    measure: str
    title: str = field(compare=False)
    rises: bool | None = field(compare=False)
    meaning: str = field(compare=False)
    alone: bool = field(default=False, compare=False)  # whether it is one number of the model, not of each explainer

    def subjects(self, record: Record) -> dict[str, Finding]:
        """The explainers that have this number in a run, each with its finding over all texts."""
        found = {self._subject(each.subject): each for each in over_all(record, self.audit, self.measure)}
        return {name: each for name, each in found.items() if name in record.summary["explainers"]}

    def column(self, record: Record, subject: str) -> str | None:
        """The column of `instances` with the number of each text, or None."""
        names = [f"{self.measure}:{subject}"]
        if self.audit == AGREEMENT[0]:
            names = [f"{self.measure}:{subject}~{REFERENCE}", f"{self.measure}:{REFERENCE}~{subject}"]
        elif self.alone:
            names = [self.measure]
        return next((name for name in names if record.instances.schema.get_field_index(name) >= 0), None)

    def _subject(self, name: str) -> str:
        """The explainer that a finding is about: of a pair with the reference, the other one."""
        one, _, other = name.partition("~")
        if self.audit != AGREEMENT[0] or REFERENCE not in (one, other):
            return name
        return one if other == REFERENCE else other


AGREES = Quantity(*AGREEMENT, "τ with leave-one-out", True, "how alike its ranking is to that of deletion")
"""Where runs hold no number that a verdict could be read off."""


def known(records: Iterable[Record]) -> tuple[Quantity, ...]:
    """What any of the runs may have: the columns of leaderboards, the yardsticks first, and numbers of attention."""
    every = sorted((each for record in records for each in columns(record)), key=lambda each: each.measure.place)
    board = dict.fromkeys(map(_of_column, every))
    yardsticks = [each for each in board if (each.audit, each.measure) in YARDSTICKS]
    rest = [each for each in board if each not in yardsticks]
    return (*yardsticks, AGREES, *rest, *_of_attention(records))


def _of_column(column: Column) -> Quantity:
    return Quantity(column.audit, column.name, column.title, column.rises, column.meaning)


def _of_attention(records: Iterable[Record]) -> Iterable[Quantity]:
    """Numbers of attention itself, which no way is better of."""
    return dict.fromkeys(
        Quantity(audit, measure.name, measure.short, None, measure.help, alone=True)
        for record in records
        for audit, story in record.stories.items()
        for measure in story.measures
        if measure.short and not measure.column
    )


def headline(record: Record) -> Quantity:
    """What the grades of a run are given by."""
    found = yardstick(record)
    board = map(_of_column, columns(record))
    mine = Quantity(found.audit, found.measure, found.symbol, True, found.against)
    return next((each for each in board if each == mine), mine)


def quantities(records: Runs) -> tuple[Quantity, ...]:
    """What two runs or more have a number of: yardsticks first, and τ only where none of them is there."""
    every = known(list(records.values()))
    held = [each for each in every if sum(bool(each.subjects(record)) for record in records.values()) > 1]
    judged = any(headline(record) in held for record in records.values())
    return tuple(each for each in held if each is not AGREES or not judged)


def why_not(quantity: Quantity, first: Record, second: Record) -> str | None:
    """Why the same quantity is not the same question in two runs, or None."""
    audit, summaries = quantity.audit, (first.summary, second.summary)
    if _options(first, audit) != _options(second, audit):
        return f"the audit “{audit}” had other options"
    asked = {}
    if quantity.alone:
        items = [summary.get("model", {}).get("items", "words") for summary in summaries]
        asked["attention is over {} in one and over {} in the other"] = items
    if quantity.alone and audit == "adversary":
        epsilons = [summary.get("plan", {}).get("epsilon") for summary in summaries]
        asked["“the same prediction” is within {} in one and within {} in the other"] = epsilons
        asked["it is {} in one and {} in the other"] = [
            summary["audits"].get(audit, {}).get("kind") for summary in summaries
        ]
    return next((told.format(*both) for told, both in asked.items() if both[0] != both[1]), None)


def _options(record: Record, audit: str) -> str:
    """The options of an audit as they stand in the plan."""
    named = (str(name).partition("(") for name in record.summary.get("plan", {}).get("audits", ()))
    return next((options for name, _, options in named if name.strip() == audit), "")


def matched(first: Record, second: Record) -> Int[np.ndarray, "n 2"]:
    """The places in both tables of examples that hold the same text, query and label; each is used once."""
    there = {key: place for place, key in enumerate(_keys(second))}
    pairs = [(place, there[key]) for place, key in enumerate(_keys(first)) if key in there]
    return np.array(pairs, dtype=int).reshape(-1, 2)


def numbers(record: Record, audit: str, columns: Sequence[str]) -> Float[np.ndarray, "n k"]:
    """These columns of an audit in the order of the table of examples; nan where a text has no number."""
    place = {example: row for row, example in enumerate(record.examples["example"].to_pylist())}
    ordered = np.full((record.examples.num_rows, len(columns)), np.nan)
    ordered[[place[example] for example in texts(record, audit).tolist()]] = side_by_side(record, audit, columns)
    return ordered


def _keys(record: Record) -> Iterator[tuple[Any, ...]]:
    """What makes a text the same: its words, its query, the name of its label, and how often it came before."""
    classes, examples = record.summary["corpus"]["classes"], record.examples
    queries = examples["query"].to_pylist() if "query" in examples.column_names else [None] * examples.num_rows
    earlier: Counter[tuple[Any, ...]] = Counter()
    for text, query, label in zip(examples["text"].to_pylist(), queries, examples["label"].to_pylist(), strict=True):
        key = (text, query, str(classes[label]) if 0 <= label < len(classes) else str(label))
        earlier[key] += 1
        yield (*key, earlier[key])


def seed(record: Record) -> int | None:
    """The seed that the model was trained with, or None where the record does not say."""
    recipe = _history(record).get("recipe") or {}
    known = (recipe.get("training") or {}).get("seed", recipe.get("seed"))
    return known if isinstance(known, int) else None


def groups(records: Runs) -> list[tuple[str, ...]]:
    """The names of runs that differ only by the seed of training, at least two together, in their order.

    Runs of which two have the same seed are no such group: one may be a copy of the other.
    """
    alike: dict[str, dict[str, int]] = {}
    for name, record in records.items():
        if (own := seed(record)) is not None:
            alike.setdefault(_but_for_seeds(record), {})[name] = own
    return [tuple(seeds) for seeds in alike.values() if 1 < len(seeds) == len(set(seeds.values()))]


def _but_for_seeds(record: Record) -> str:
    """Corpus, recipe and plan of a run as one text, without any seed."""
    summary, corpus = record.summary, record.summary["corpus"]
    history = {key: value for key, value in _history(record).items() if key not in COURSE}
    kept = {
        "corpus": {key: corpus.get(key) for key in ("name", "classes", "split")},
        "model": {"description": summary.get("model", {}).get("description"), "history": history},
        "plan": summary.get("plan", {}),
    }
    return json.dumps(_without_seeds(kept), sort_keys=True, default=str)


def _without_seeds(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_seeds(inner) for key, inner in value.items() if key != "seed"}
    return [_without_seeds(inner) for inner in value] if isinstance(value, list) else value


def _history(record: Record) -> dict[str, Any]:
    return record.summary.get("model", {}).get("history") or {}


Noise = Literal["same texts", "other texts", "seeds", "one against seeds"]
State = Literal["exceeds noise", "may be chance", "within noise"]

MOST = 24
"""More runs than this make a page that nobody reads."""

LONG = 60
"""Letters of the name of a run."""

FACTS = ("command", "created", "assay", "versions", "platform", "device", "plan", "corpus", "model")
UNCOMPARED = ("losses", "dev_scores")  # are not compared
TEXT, ABSENT = 240, "–"  # letters of a fact, and what stands for one that is not there


@dataclass(frozen=True)
class Side:
    """One run, or several that differ only by their seed and are judged together."""

    runs: tuple[str, ...]

    @property
    def name(self) -> str:
        if len(self.runs) == 1:
            return self.runs[0]
        shown = ", ".join(self.runs) if len(self.runs) <= ENOUGH else f"{self.runs[0]} … {self.runs[-1]}"
        return f"{len(self.runs)} seeds ({shown})"


@dataclass(frozen=True)
class Value:
    """What one explainer reaches in one run; the grade stands where this quantity decides it."""

    mean: float
    low: float
    high: float
    n: int
    grade: Grade | None


@dataclass(frozen=True)
class Difference:
    """One quantity of one explainer on two sides; `shared` texts are the same in both."""

    quantity: Quantity
    subject: str
    first: Side
    second: Side
    noise: Noise
    contrast: Contrast
    shared: int
    adjusted: float = 1.0

    @property
    def state(self) -> State:
        if self.adjusted <= SURE:
            return "exceeds noise"
        return "may be chance" if self.contrast.p <= SURE else "within noise"


@dataclass(frozen=True)
class Comparison:
    """All that two runs or more have in common, and how they differ in it."""

    records: Runs
    quantities: tuple[Quantity, ...]
    values: Mapping[tuple[Quantity, str, str], Value]  # by quantity, explainer and run
    groups: tuple[tuple[str, ...], ...]
    sides: tuple[Side, ...]
    differences: tuple[Difference, ...]
    not_compared: tuple[tuple[str, str], ...]  # what, and why

    @cached_property
    def exceeding(self) -> tuple[Difference, ...]:
        """The differences that exceed noise: those in what is graded first, then the largest for their noise."""
        found = [each for each in self.differences if each.state == "exceeds noise"]
        return tuple(sorted(found, key=lambda each: (self.quantities.index(each.quantity), each.contrast.p)))

    @property
    def headline(self) -> Quantity | None:
        """What grades most runs, where two runs or more have it."""
        graded = [headline(record) for record in self.records.values()]
        shared = [each for each in dict.fromkeys(graded) if each in self.quantities]
        return max(shared, key=graded.count) if shared else next(iter(self.quantities), None)

    def subjects(self, quantity: Quantity) -> list[str]:
        """The explainers that have a number in some run, in the order of the runs' plans, baselines last."""
        every = dict.fromkeys(name for record in self.records.values() for name in record.summary["explainers"])
        known = {subject for each, subject, _ in self.values if each == quantity}
        return sorted((name for name in every if name in known), key=lambda name: name in BASELINES)


def differences(records: Runs) -> Comparison:
    """Values with intervals in each run, and for every two sides the differences, adjusted for their number.

    Two single runs are compared text by text where both audited mostly the same texts, else as independent samples.
    From three seeds on a group of runs counts as one side, and its noise is the spread over seeds.
    """
    runs = named(records)
    if not 2 <= len(runs) <= MOST:
        raise AssayError(f"A comparison takes 2 to {MOST} runs, not {len(runs)}.")
    shared, alike = quantities(runs), groups(runs)
    together = [group for group in alike if len(group) >= ENOUGH]
    grouped = {name: group for group in together for name in group}
    sides = tuple(Side(names) for names in dict.fromkeys(grouped.get(name, (name,)) for name in runs))
    found, reasons = _all(runs, shared, sides)
    adjusted = holm([each.contrast.p for each in found])
    return Comparison(
        runs,
        shared,
        _values(runs, shared),
        tuple(alike),
        sides,
        tuple(replace(each, adjusted=p) for each, p in zip(found, adjusted, strict=True)),
        tuple(reasons.items()),
    )


def named(records: Runs) -> dict[str, Record]:
    """The runs under names of one line without anything hidden in them, all different."""
    shown: dict[str, Record] = {}
    for place, (name, record) in enumerate(records.items(), start=1):
        plain = line(name).strip() or f"run {place}"
        plain = plain if len(plain) <= LONG else f"{plain[: LONG - 1]}…"
        shown[plain if plain not in shown else f"{plain} ({place})"] = record
    return shown


def _values(runs: Runs, shared: Iterable[Quantity]) -> dict[tuple[Quantity, str, str], Value]:
    values = {}
    for name, record in runs.items():
        grades = {verdict.name: verdict.grade for verdict in verdicts(record)}
        for quantity in shared:
            graded = quantity == headline(record)
            for subject, found in quantity.subjects(record).items():
                grade = grades.get(subject) if graded else None
                values[quantity, subject, name] = Value(found.mean, found.low, found.high, found.n, grade)
    return values


def _all(runs: Runs, shared: Sequence[Quantity], sides: Sequence[Side]) -> tuple[list[Difference], dict[str, str]]:
    """All differences in the order of quantities, and why some quantities were not compared."""
    reasons: dict[str, str] = {}
    found: list[Difference] = []
    for first, second in combinations(sides, 2):
        one, other = runs[first.runs[0]], runs[second.runs[0]]
        why = {quantity: why_not(quantity, one, other) for quantity in shared}
        for quantity, reason in why.items():
            if reason is not None and quantity.subjects(one) and quantity.subjects(other):
                reasons[f"{quantity.title}, {first.name} and {second.name}"] = reason
        by = _by_texts if len(first.runs) == len(second.runs) == 1 else _by_seeds
        found += by(runs, [quantity for quantity in shared if why[quantity] is None], first, second)
    return sorted(found, key=lambda each: shared.index(each.quantity)), reasons


def _subjects(quantity: Quantity, *records: Record) -> Iterator[tuple[str, list[Finding]]]:
    """The explainers that all of these runs have a number of, without the baselines, each with its findings."""
    found = [quantity.subjects(record) for record in records]
    for subject in found[0]:
        if subject not in BASELINES and all(subject in each for each in found):
            yield subject, [each[subject] for each in found]


def _by_texts(runs: Runs, asked: Iterable[Quantity], first: Side, second: Side) -> Iterator[Difference]:
    """Two single runs: text by text where at least half of the smaller one's are in both, else as two samples."""
    one, other = runs[first.name], runs[second.name]
    pairs = matched(one, other)
    for quantity in asked:
        columns = {}
        for subject, _ in _subjects(quantity, one, other):
            here, there = quantity.column(one, subject), quantity.column(other, subject)
            if here is not None and there is not None:
                columns[subject] = (here, there)
        values = (
            numbers(record, quantity.audit, [names[side] for names in columns.values()]).T
            for side, record in enumerate((one, other))
        )
        for subject, mine, theirs in zip(columns, *values, strict=True):
            noise, contrast = _contrast(mine, theirs, pairs)
            if contrast is not None and min(contrast.sizes) >= FEWEST:
                yield Difference(quantity, subject, first, second, noise, contrast, len(pairs))


def _contrast(
    here: Float[np.ndarray, " n"], there: Float[np.ndarray, " m"], pairs: Int[np.ndarray, "k 2"]
) -> tuple[Noise, Contrast | None]:
    both = ~np.isnan(here[pairs[:, 0]]) & ~np.isnan(there[pairs[:, 1]])
    least = min(int((~np.isnan(side)).sum()) for side in (here, there))
    if both.sum() >= max(FEWEST, least / 2):
        return "same texts", paired(here[pairs[:, 0]], there[pairs[:, 1]])
    return "other texts", apart(here, there)


def _by_seeds(runs: Runs, asked: Iterable[Quantity], first: Side, second: Side) -> Iterator[Difference]:
    """Two sides of which at least one is a group of seeds: what each run reaches is one number."""
    noise: Noise = "one against seeds" if 1 in (len(first.runs), len(second.runs)) else "seeds"
    for quantity in asked:
        for subject, found in _subjects(quantity, *(runs[name] for name in (*first.runs, *second.runs))):
            means = np.array([finding.mean for finding in found])
            here, there = means[: len(first.runs)], means[len(first.runs) :]
            if len(here) == 1:
                contrast = alone(float(here[0]), there)
            elif len(there) == 1:
                turned = alone(float(there[0]), here)
                contrast = turned and Contrast(-turned.gap, -turned.high, -turned.low, turned.p, turned.sizes[::-1])
            else:
                contrast = apart(here, there)
            if contrast is not None:
                yield Difference(quantity, subject, first, second, noise, contrast, 0)


def spreads(comparison: Comparison, group: tuple[str, ...]) -> Iterator[dict[str, str]]:
    """Each explainer over the seeds of a group: mean, standard deviation, least and most of the headline's quantity."""
    quantity = comparison.headline
    for subject in comparison.subjects(quantity) if quantity else ():
        found = [comparison.values.get((quantity, subject, run)) for run in group]  # type: ignore[arg-type]
        means = np.array([value.mean for value in found if value is not None])
        if len(means) == len(group):
            spread = {"mean": means.mean(), "spread": means.std(ddof=1), "least": means.min(), "most": means.max()}
            yield {"subject": line(subject)} | {name: number(float(value)) for name, value in spread.items()}


def provenance(records: Runs) -> tuple[Facts, tuple[tuple[str, str], ...]]:
    """The facts that differ between plans, models, data and versions of runs, with a text for each; and the others."""
    held = [
        dict(pair for name in FACTS if name in record.summary for pair in _flat(name, record.summary[name]))
        for record in records.values()
    ]
    names = dict.fromkeys(name for facts in held for name in facts)
    rows = {name: tuple(facts.get(name, ABSENT) for facts in held) for name in names}
    return (
        tuple((name, texts) for name, texts in rows.items() if len(set(texts)) > 1),
        tuple((name, texts[0]) for name, texts in rows.items() if len(set(texts)) == 1),
    )


def _flat(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """A value under its name, and what is inside a dictionary under names with dots."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in UNCOMPARED:
                yield from _flat(f"{name}.{key}", inner)
        return
    text = ", ".join(map(str, value)) if isinstance(value, list) else value
    if value is None:
        text = "none"
    elif not isinstance(text, str):
        text = json.dumps(text, ensure_ascii=False, default=str)
    yield name, line(text if len(text) <= TEXT else f"{text[:TEXT]} …")
