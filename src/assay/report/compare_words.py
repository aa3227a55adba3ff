"""The comparison in plain words: what the runs agree on, what exceeds noise, and which noise that is."""

from __future__ import annotations

import re

from assay.document import Span
from assay.grading.differences import ATTENTION, Comparison, Difference, Quantity, Side
from assay.grading.differences import headline as graded_by
from assay.grading.grade import FEW, Grade, near_chance, verdicts
from assay.metrics.comparisons import ENOUGH, FEWEST, SURE
from assay.report.outcome import OPENINGS
from assay.writing import count, counted, interval, line, listed, number

BULLETS = 6
"""So many lines of the verdict tell what differs; the rest stands in a table."""

OPEN, SHUT = "\u2068", "\u2069"
"""Around a name in a sentence: whatever direction it is written in, the sentence keeps its own."""

NOISE = {
    "same texts": "the same texts in both runs; knows the noise of texts only: training again may change it",
    "other texts": "other texts in each run; knows the noise of texts only: training again may change it",
    "seeds": "the spread over seeds on both sides; knows the noise of training and of texts",
    "one against seeds": "the spread over seeds of one side, taken to hold for the single run too; knows the noise of "
    "training and of texts",
}
"""What each comparison rests on, and which noise it knows about."""

MARKS = {"exceeds noise": "▲", "may be chance": "△", "within noise": "="}
RULES = (
    f"A difference “exceeds noise” when its p-value is at most {SURE:g} after Holm’s correction (1979) for all "
    "comparisons on this page: were all runs the same, a page in twenty or fewer would name any difference at all.",
    f"“May be chance” means that it would pass alone (p at most {SURE:g}) but not among so many.",
    "Two single runs are compared text by text (Student’s paired t) where at least half of the smaller run’s texts, "
    "found by text, query and label, are in both; else as independent samples (Welch’s t). Intervals of differences "
    "come from the same test and are not corrected; intervals within a run are those of its own report.",
    f"Runs that differ only by the seed of training are a group. From {ENOUGH} seeds on it is judged as a whole, by "
    "the spread over its runs (Welch’s t between two groups; one run against a group: Student’s t with the group’s "
    "spread), because texts alone understate how much training again would change.",
    f"Nothing is judged on fewer than {FEWEST} texts. Random scores are shown but not compared.",
)
LIMITS = (
    "A difference within noise is not shown to be nothing: there may be too few texts or seeds to see it.",
    "A difference between runs says that they differ, not why; all that differs between them is listed above.",
    "Grades have fixed limits: two runs may get different grades although their difference is within noise.",
)


def isolated(name: str) -> str:
    """A name as it stands in a sentence."""
    return f"{OPEN}{line(name)}{SHUT}"


def plain(sentence: str) -> str:
    """A sentence for a terminal or a file of text."""
    return sentence.replace(OPEN, "").replace(SHUT, "")


def worded(sentence: str) -> tuple[str | Span, ...]:
    """A sentence with its names as parts."""
    pieces = re.split(f"{OPEN}([^{SHUT}]*){SHUT}", sentence)
    return tuple(Span(piece, "name") if place % 2 else piece for place, piece in enumerate(pieces) if piece)


def headline(comparison: Comparison) -> str:
    """Two sentences: the grades, and how many differences exceed noise."""
    return f"{graded(comparison)} {tally(comparison)}"


def graded(comparison: Comparison) -> str:
    """How often the explainer of the headline passes, is warned of and fails."""
    found = grades(comparison)
    if found is None:
        return "No run grades an explainer."
    name, given = found
    shown, every = "Attention" if name == ATTENTION else isolated(name), len(comparison.records)
    counts = {grade: list(given.values()).count(grade) for grade in ("fail", "warn", "pass")}
    some = [(grade, size) for grade, size in counts.items() if size]
    if len(some) == 1 and some[0][1] == every:
        return f"{shown} is graded {some[0][0]} in {'both' if every == 2 else f'all {every}'} runs."
    first, *rest = (f"{grade} in {size}" for grade, size in some)
    return f"{shown} is graded {listed([f'{first} of {every} runs', *rest])}."


def tally(comparison: Comparison) -> str:
    """How many differences exceed noise, of how many that were looked at."""
    made, exceeding = len(comparison.differences), len(comparison.exceeding)
    if len(comparison.sides) == 1:
        return "The runs differ only by their seed, and their spread is the noise of training."
    if not made:
        return "The runs share nothing that could be compared."
    some = "None" if not exceeding else count(exceeding)
    return (
        f"{some} of {counted(made, 'difference', 'differences')} between the runs "
        f"{'exceed' if exceeding > 1 else 'exceeds'} noise."
    )


def bullets(comparison: Comparison) -> list[str]:
    """What exceeds noise, in so few lines that they are read, then what that leaves."""
    if not comparison.differences:
        return []
    ways = (_between_sides(comparison), _of_explainers(comparison))
    told = max(ways, key=lambda lines: sum(size for _, size in lines[:BULLETS]))  # the first where they tell as much
    if len(told) > BULLETS:
        rest = sum(size for _, size in told[BULLETS:])
        lines = [line for line, _ in told[:BULLETS]]
        more = counted(rest, "more difference exceeds", "more differences exceed")
        return [*lines, f"{more} noise; all stand in the table of differences."]
    closing = "Nothing else exceeds noise" if told else "Nothing exceeds noise"
    chance = sum(each.state == "may be chance" for each in comparison.differences)
    if chance:
        closing += f"; {count(chance)} would alone, but not among {count(len(comparison.differences))} comparisons"
    advice = " More texts or seeds would tell." if chance else ""
    return [*(line for line, _ in told), f"{closing}.{advice}"]


def caveats(comparison: Comparison) -> list[str]:
    """What a reader should know before trusting the comparison."""
    runs = comparison.records
    notes = []
    corpora = list(dict.fromkeys(str(record.summary["corpus"]["name"]) for record in runs.values()))
    if len(corpora) > 1:
        names = listed([isolated(name) for name in corpora])
        notes.append(
            f"The runs are about different corpora ({names}): a difference may come from texts, not from models."
        )
    if len({graded_by(record) for record in runs.values()}) > 1:
        notes.append(
            "Not all runs are graded by the same measure: where deciding words are known by AUPRC, elsewhere by τ."
        )
    if any(each.noise.endswith("texts") for each in comparison.differences):
        notes.append(
            "Where single runs are compared, noise is that of texts only; training again may change more. "
            f"With {ENOUGH} seeds or more of each, this page judges by the spread over seeds."
        )
    for group in comparison.groups:
        if len(group) < ENOUGH:
            names = listed([isolated(name) for name in group])
            notes.append(f"{names} differ only by their seed: what differs between them is the noise of training.")
    if chance := [isolated(name) for name, record in runs.items() if near_chance(record)]:
        model = "The model of {} is" if len(chance) == 1 else "The models of {} are"
        notes.append(
            f"{model.format(listed(chance))} hardly better than chance; explanations of such decisions say little."
        )
    for copies in _copies(comparison):
        shown = listed([isolated(name) for name in copies]) if len(copies) <= ENOUGH else f"{len(copies)} runs"
        notes.append(f"The same model was audited in {shown}.")
    sizes = [min(each.contrast.sizes) for each in comparison.differences if each.noise.endswith("texts")]
    if sizes and min(sizes) < FEW:
        notes.append(f"Fewer than {FEW} texts stand behind some differences; their noise is itself uncertain.")
    return notes


def sentence(difference: Difference) -> str:
    """One difference: which side is higher or better, by how much, and on what it rests."""
    upper, lower = _ordered(difference)
    quantity = difference.quantity
    if quantity.rises is None:
        clause = f"of {isolated(difference.subject)} is higher in {isolated(upper.name)} than in {isolated(lower.name)}"
        return f"{quantity.title} {clause} by {evidence(difference)}."
    clause = f"{isolated(difference.subject)} is better in {isolated(upper.name)} than in {isolated(lower.name)}"
    return f"By {quantity.title}, {clause}, by {evidence(difference)}."


def evidence(difference: Difference) -> str:
    """The size of a difference without its sign, its interval, and what stands behind it."""
    found = difference.contrast
    low, high = (found.low, found.high) if found.gap > 0 else (-found.high, -found.low)
    size = number(abs(found.gap), 2)
    return f"{size} (95 % interval {interval(low, high, 2)}, {behind(difference)})"


def behind(difference: Difference) -> str:
    """How many texts or runs a difference rests on."""
    first, second = difference.contrast.sizes
    if difference.noise == "same texts":
        return f"n = {count(first)}, the same texts"
    if difference.noise == "other texts":
        return f"n = {count(first)} and {count(second)}, other texts"
    if difference.noise == "seeds":
        return f"{first} and {second} seeds"
    return f"one run against {max(first, second)} seeds"


def grades(comparison: Comparison) -> tuple[str, dict[str, Grade]] | None:
    """The explainer of the headline with its grade in each run that grades it: attention, else the first of all."""
    found: dict[str, dict[str, Grade]] = {}
    for run, record in comparison.records.items():
        for verdict in verdicts(record):
            if verdict.grade in OPENINGS:
                found.setdefault(verdict.name, {})[run] = verdict.grade
    if not found:
        return None
    name = ATTENTION if ATTENTION in found else max(found, key=lambda each: len(found[each]))
    return name, found[name]


def lacking(comparison: Comparison) -> list[str]:
    """Which explainers and audits are only in some of the runs."""
    notes = []
    for kind in ("explainers", "audits"):
        held = {run: record.summary[kind] for run, record in comparison.records.items()}
        for name in dict.fromkeys(name for names in held.values() for name in names):
            there = [isolated(run) for run in held if name in held[run]]
            if len(there) < len(held):
                notes.append(f"The {kind[:-1]} {isolated(name)} is only in {listed(there)}.")
    return notes


def _between_sides(comparison: Comparison) -> list[tuple[str, int]]:
    """A sentence for each quantity and two sides, explainers together, with how many differences it tells."""
    patterns: dict[tuple[Quantity, Side, Side], list[Difference]] = {}
    for each in comparison.exceeding:
        patterns.setdefault((each.quantity, *_ordered(each)), []).append(each)
    return [(_pattern(comparison, found), len(found)) for found in patterns.values()]


def _pattern(comparison: Comparison, found: list[Difference]) -> str:
    if len(found) == 1:
        return sentence(found[0])
    most = max(found, key=lambda each: abs(each.contrast.gap))
    upper, lower = _ordered(most)
    asked = [each for each in comparison.differences if each.quantity == most.quantity]
    every = sum({each.first, each.second} == {upper, lower} for each in asked)
    few = listed([isolated(each.subject) for each in found])
    who = few if len(found) <= 3 else f"{len(found)} of {every} explainers"
    better = f"{who} are better in {isolated(upper.name)} than in {isolated(lower.name)}"
    return f"By {most.quantity.title}, {better}, most of all {isolated(most.subject)}, by {evidence(most)}."


def _of_explainers(comparison: Comparison) -> list[tuple[str, int]]:
    """A sentence for each quantity and explainer, all runs together, with how many differences it tells."""
    patterns: dict[tuple[Quantity, str], list[Difference]] = {}
    for each in comparison.exceeding:
        patterns.setdefault((each.quantity, each.subject), []).append(each)
    lines = []
    for (quantity, subject), found in patterns.items():
        every = sum((each.quantity, each.subject) == (quantity, subject) for each in comparison.differences)
        most = max(found, key=lambda each: abs(each.contrast.gap))
        upper, lower = _ordered(most)
        pairs = f"differs in {len(found)} of {counted(every, 'pair', 'pairs')} of runs"
        way = "is higher" if quantity.rises is None else "is better"
        ends = f"most of all it {way} in {isolated(upper.name)} than in {isolated(lower.name)}, by {evidence(most)}"
        lines.append((f"By {quantity.title}, {isolated(subject)} {pairs}; {ends}.", len(found)))
    return lines


def _ordered(difference: Difference) -> tuple[Side, Side]:
    """The better side before the other, or the higher one where no way is better."""
    sides = (difference.first, difference.second)
    return sides if (difference.contrast.gap > 0) is (difference.quantity.rises is not False) else sides[::-1]


def _copies(comparison: Comparison) -> list[list[str]]:
    """The runs of each model that was audited more than once."""
    models: dict[str, list[str]] = {}
    for name, record in comparison.records.items():
        if digest := record.summary.get("model", {}).get("sha256"):
            models.setdefault(digest, []).append(name)
    return [names for names in models.values() if len(names) > 1]
