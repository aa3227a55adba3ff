"""The page: for each corpus, kind of model and of units, every recipe beside what was published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from assay.rationales.recipes import RECIPES
from studies.pages import made_from
from studies.rationales.sentences import OVERLAPS
from studies.results import Result

TITLES = {"hatexplain": "HateXplain", "movies": "ERASER movies", "planted:phrase": "Planted phrases"}
MODELS = {"bilstm": "BiLSTM", "minilm": "MiniLM"}
COLUMNS = {
    "accuracy": "accuracy",
    "size": "size",
    "token_f1": "token F1",
    "iou_f1": "IOU F1",
    "auprc": "AUPRC",
    "comprehensiveness": "comprehensiveness",
    "sufficiency": "sufficiency ↓",
    "complement_accuracy": "complement accuracy ↓",
}
SENTENCES = {f"iou_f1_sentences_{overlap:g}": f"IOU F1, sentence by sentence, {overlap:g}" for overlap in OVERLAPS}
LOW = {"size", "sufficiency", "complement_accuracy"}  # where less is better
PUBLISHED: Mapping[tuple[str, str], Sequence[tuple[str, Mapping[str, float]]]] = {
    ("hatexplain", "word"): (
        ("Mathew et al. (2021), BiRNN with attention", {"accuracy": 0.621}),
        ("Mathew et al. (2021), BERT", {"accuracy": 0.690}),
        ("Mathew et al. (2021), BERT that learnt people's marks", {"accuracy": 0.698}),
    ),
    ("movies", "sentence"): (
        (
            "Paranjape et al. (2020), information bottleneck; IOU F1 0.275 at an overlap of .5 or .1 (their code "
            "prints both)",
            {"accuracy": 0.840},
        ),
    ),
}
Seeds = Mapping[int, Result]
Table = Mapping[str, Seeds]
"""Recipes of a table by name, and of each its results by seed."""


def page(
    results: Mapping[tuple[str, str, str], Table], drawn: Mapping[str, Mapping[str, float]] = MappingProxyType({})
) -> str:
    """All tables; results are by corpus, model and units, then by recipe, then by seed.

    `drawn` is what is reached on whole reviews by what is drawn at random, by units.
    """
    lines: list[str] = []
    for (corpus, model, units), recipes in results.items():
        good = {name: made for name, seeds in recipes.items() if (made := worked(seeds))}
        if good:
            lines += [f"### {TITLES.get(corpus, corpus)}, {MODELS[model]}{', sentences' * (units == 'sentence')}", ""]
            chance = drawn.get(units, {}) if (corpus, model) == ("movies", "bilstm") else {}
            lines += [*_about(good, units), "", *_table(corpus, units, good, chance), "", *_said(recipes, good), ""]
    made = [
        result
        for recipes in results.values()
        for seeds in recipes.values()
        for result in seeds.values()
        if "failed" not in result
    ]
    return "\n".join([made_from("studies.rationales", made), "", *lines]).rstrip() + "\n"


def worked(seeds: Seeds) -> dict[int, Result]:
    """The seeds that there are measures of."""
    return {seed: result for seed, result in seeds.items() if "failed" not in result}


def at_chance(result: Result) -> bool:
    """Whether the selected words decide no better, by two standard errors, than always naming one class."""
    right, count = result["measures"]["accuracy"]["mean"], result["measures"]["accuracy"]["n"]
    return bool(right <= result["corpus"]["majority"] + 2 * np.sqrt(right * (1 - right) / count))


def learnt(seeds: Seeds) -> bool:
    """Whether the model decides better than chance with any seed; what others select says nothing of a recipe."""
    return not all(map(at_chance, seeds.values()))


def values(seeds: Seeds, name: str) -> list[float]:
    """A measure of each seed; the IOU F1 as ERASER pools it, so that it stands beside published ones."""
    if name.startswith("iou_f1"):
        found = [result["pooled"].get("iou_f1_eraser" if name == "iou_f1" else name) for result in seeds.values()]
    else:
        found = [result["measures"].get(name, {}).get("mean") for result in seeds.values()]
    return [float(each) for each in found if each is not None]


def spread(found: Sequence[float]) -> str:
    """The mean over seeds, and from where to where they go; a number alone is that of one seed."""
    if not found:
        return "–"
    mean = f"{np.mean(found):.3f}"
    return mean if len(found) == 1 else f"{mean} ({min(found):.3f} to {max(found):.3f})"


def _about(results: Table, units: str) -> list[str]:
    all_seeds = [result for seeds in results.values() for result in seeds.values()]
    corpus = all_seeds[0]["corpus"]
    asked = {
        f"{result['selecting']['rate'] * result['selecting']['masks']:.3f}"
        for result in all_seeds
        if result["selecting"]["rule"] != "threshold"
    }
    told = (
        f"{corpus['measured']:,} test texts, {corpus['marked']:,} of them with marks; always naming the most frequent "
        f"class is right in {corpus['majority']:.3f}. Asked for was a share of {', '.join(sorted(asked))} of all "
        f"{units}s of a text. {_counted(results)}"
    )
    return [told]


def _counted(results: Table) -> str:
    """How many seeds the rows rest on."""
    counts = {len(seeds) for seeds in results.values()}
    if counts == {1}:
        return "**One seed: each row is one draw, and says nothing of the next.**"
    if len(counts) == 1:
        return f"Means over {counts.pop()} seeds, and in brackets the lowest and the highest."
    few = [name for name, seeds in results.items() if len(seeds) == 1]
    alone = f" One seed, and so one draw, have {', '.join(few)}." if few else ""
    return f"Means over {min(counts)} to {max(counts)} seeds, and in brackets the lowest and the highest.{alone}"


def _table(corpus: str, units: str, results: Table, chance: Mapping[str, float]) -> list[str]:
    """A row for each recipe that learnt; the best mean of each column is bold."""
    columns = COLUMNS | (SENTENCES if units == "sentence" else {})
    shown = {name: seeds for name, seeds in results.items() if learnt(seeds)}
    best = {column: _best(shown, column) for column in columns}
    rows = [["recipe", "seeds", *columns.values()]]
    for name, seeds in shown.items():
        numbers = [(values(seeds, column), best[column]) for column in columns]
        rows.append([name, str(len(seeds)), *(_cell(found, top) for found, top in numbers)])
    beside = [(f"as large a share of {units}s drawn at random", chance)] if chance else []
    for title, figures in [*beside, *PUBLISHED.get((corpus, units), ())]:
        told = [f"{figures[column]:.3f}" if column in figures else "–" for column in columns]
        rows.append([f"*{title}*", "–", *told])
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return [lines[0], "|" + "---|" * len(rows[0]), *lines[1:]]


def _best(results: Table, column: str) -> str:
    means = [f"{np.mean(found):.3f}" for seeds in results.values() if (found := values(seeds, column))]
    return (min if column in LOW else max)(means, key=float, default="")


def _cell(found: Sequence[float], best: str) -> str:
    mean, *rest = spread(found).split(" ", 1)
    return " ".join([f"**{mean}**" if mean == best else mean, *rest])


def _said(recipes: Table, good: Table) -> list[str]:
    """What was left out and why, what failed, what is not there, and how training collapsed."""
    lines = _left_out(good)
    for name, seeds in recipes.items():
        lines += [f"- {name} could not be made: {each['failed']}" for each in seeds.values() if "failed" in each]
    lost = [name for name in RECIPES if name not in recipes]
    lines += [f"- Not made yet: {', '.join(lost)}."] if lost else []
    for name, seeds in good.items():
        if learnt(seeds) and (poor := [seed for seed, result in seeds.items() if at_chance(result)]):
            lines.append(f"- {name} decides at chance with {len(poor)} of {len(seeds)} seeds, which the means hold.")
        said = [(seed, sentence) for seed, result in seeds.items() for sentence in _collapse(result)]
        lines += [f"- {name}, seed {seed}: {sentence}" for seed, sentence in said if learnt(seeds)]
    return lines


def _left_out(good: Table) -> list[str]:
    poor = {name: seeds for name, seeds in good.items() if not learnt(seeds)}
    if not poor:
        return []
    told = ", ".join(f"{name} {spread(values(seeds, 'accuracy'))}" for name, seeds in poor.items())
    return [
        f"- Left out, since they decide no better than always naming one class, whatever the seed, so that what they "
        f"select explains nothing ({len(poor)} of {len(good)}; accuracy): {told}."
    ]


def _collapse(result: Result) -> list[str]:
    """How training collapsed; that a model decides at chance is said for all of its seeds together."""
    return [each for each in result.get("collapse") or () if "always guessing" not in each]
