"""The page: for each corpus and kind of model, every recipe beside what was published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assay.rationales.recipes import RECIPES
from studies.pages import made_from, table
from studies.results import Result

TITLES = {"hatexplain": "HateXplain", "movies": "ERASER movies", "planted:phrase": "Planted phrases"}
MODELS = {"bilstm": "BiLSTM", "minilm": "MiniLM"}
COLUMNS = (
    ("accuracy", "accuracy"),
    ("size", "size"),
    ("token_f1", "token F1"),
    ("iou_f1", "IOU F1"),
    ("auprc", "AUPRC"),
    ("comprehensiveness", "comprehensiveness"),
    ("sufficiency", "sufficiency ↓"),
    ("complement_accuracy", "complement accuracy ↓"),
)
LOW = (1, 6, 7)  # where less is better
PUBLISHED: Mapping[str, Sequence[tuple[str, Mapping[str, float]]]] = {
    "hatexplain": (
        ("Mathew et al. (2021), BiRNN with attention", {"accuracy": 0.621}),
        ("Mathew et al. (2021), BERT", {"accuracy": 0.690}),
        ("Mathew et al. (2021), BERT that learnt people's marks", {"accuracy": 0.698}),
    ),
    "movies": (
        ("Paranjape et al. (2020), information bottleneck over sentences, BERT", {"accuracy": 0.840, "iou_f1": 0.275}),
    ),
}


def page(results: Mapping[tuple[str, str], Mapping[str, Result]]) -> str:
    """All tables; results are by corpus and model, then by recipe."""
    lines: list[str] = []
    for (corpus, model), recipes in results.items():
        good = {name: result for name, result in recipes.items() if "failed" not in result}
        if not good:
            continue
        lines += [f"### {TITLES.get(corpus, corpus)}, {MODELS[model]}", "", *_about(good), ""]
        lines += [*_table(corpus, good), ""]
        lines += [
            f"- {name} could not be made: {result['failed']}" for name, result in recipes.items() if "failed" in result
        ]
        missing = [name for name in RECIPES if name not in recipes]
        lines += [f"- Not made yet: {', '.join(missing)}."] if missing else []
        lines += [f"- {name}: {sentence}" for name, result in good.items() for sentence in result.get("collapse") or ()]
        lines.append("")
    made = [result for recipes in results.values() for result in recipes.values() if "failed" not in result]
    return "\n".join([made_from("studies.rationales", made), "", *lines]).rstrip() + "\n"


def _about(results: Mapping[str, Result]) -> list[str]:
    first = next(iter(results.values()))
    corpus, rates = first["corpus"], {f"{result['selecting']['rate']:.3f}" for result in results.values()}
    return [
        f"{corpus['measured']:,} test texts, {corpus['marked']:,} of them with marks; always naming the most frequent "
        f"class is right in {corpus['majority']:.3f}. Asked for was a share of {', '.join(sorted(rates))}."
    ]


def _table(corpus: str, results: Mapping[str, Result]) -> list[str]:
    head = ["recipe", *(title for _, title in COLUMNS)]
    numbers = [[_mean(result, name) for name, _ in COLUMNS] for result in results.values()]
    lines = table(head, list(results), numbers, LOW)
    for title, figures in PUBLISHED.get(corpus, ()):
        cells = ["–" if name not in figures else f"{figures[name]:.3f}" for name, _ in COLUMNS]
        lines.append("| " + " | ".join([f"*{title}*", *cells]) + " |")
    return lines


def _mean(result: Result, name: str) -> float | None:
    """A mean over texts; the IOU F1 as ERASER pools it, so that it stands beside published ones."""
    if name == "iou_f1":
        pooled: float | None = result["pooled"].get("iou_f1_eraser")
        return pooled
    found = result["measures"].get(name)
    return None if found is None else float(found["mean"])
