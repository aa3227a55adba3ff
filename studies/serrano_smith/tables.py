"""From results to the page: accuracy, flips, and what must be erased."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from assay.records import Record
from studies.pages import made_from
from studies.results import Result, finding
from studies.serrano_smith.published import ACCURACY, FLIPS

RANKINGS = ("attention", "gradient", "product", "leave_one_out", "random", "optimum")
SUBJECTS = ("attention", "gradient", "product")
CELLS = ("both", "top_only", "other_only", "neither")
BINS = np.linspace(0.0, 1.0, 11)
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
Results = Mapping[tuple[str, str], Result]


def spread(record: Record) -> Result:
    """How the numbers of the texts are spread: quantiles of what is erased, and of ΔJS by bin of Δα."""
    erased, single = record.audit_rows("minimal_set"), record.audit_rows("single_weight")
    fractions = {name: erased[f"fraction:{name}"].to_numpy() for name in RANKINGS}
    gap, change = (single[f"{name}:attention"].to_numpy() for name in ("delta_weight", "delta_js"))
    place = np.digitize(gap, BINS[1:-1])
    known = np.isfinite(change)
    bins = [change[known & (place == number)] for number in range(len(BINS) - 1)]
    return {
        "fractions": {name: _quantiles(values) for name, values in fractions.items()},
        "masses": {name: _quantiles(erased[f"mass:{name}"].to_numpy()) for name in RANKINGS},
        "change_by_gap": [{"n": len(part), "quantiles": _quantiles(part)} for part in bins],
        "negative_by_gap": [int((part < 0).sum()) for part in bins],
    }


def _quantiles(values: np.ndarray) -> list[float] | None:
    known = values[np.isfinite(values)]
    return [round(float(value), 4) for value in np.quantile(known, QUANTILES)] if len(known) else None


def page(results: Results) -> str:
    """All tables, a section for each corpus."""
    names = list(dict.fromkeys(name for name, _ in results))
    parts = [made_from("studies.serrano_smith", list(results.values()))]
    for name in names:
        models = {model: result for (other, model), result in results.items() if other == name}
        parts += [_title(name, next(iter(models.values()))), erased(models), flips(name, models), single(models)]
    return "\n\n".join(parts) + "\n"


def _title(name: str, result: Result) -> str:
    corpus = result["corpus"]
    return f"### {name}: {len(corpus['classes'])} classes, {corpus['audited']:,} test texts"


def erased(models: Mapping[str, Result]) -> str:
    """Figures 5, 6 and 10: the median (quartiles) fraction of items erased before the first flip."""
    head = ("model", *(name.replace("_", " ") for name in RANKINGS), "attention optimal", "gradient : attention")
    rows = []
    for model, result in models.items():
        boxes = [_box(result["fractions"][name]) for name in RANKINGS]
        rows.append((model, *boxes, _share(result, "optimal", "attention"), _wins(result)))
    return "Fraction of items erased before the decision changes, median (quartiles):\n\n" + _lines(head, rows)


def _box(quantiles: Sequence[float] | None) -> str:
    if quantiles is None:
        return "–"
    _, low, middle, high, _ = quantiles
    return f"{middle:.2f} ({low:.2f}–{high:.2f})"


def _wins(result: Result) -> str:
    """How often the gradient needs fewer items than attention, against how often it needs more."""
    one, other = (finding(result, "minimal_set", pair, "wins") for pair in ("gradient~attention", "attention~gradient"))
    return f"{one.mean:.0%} : {other.mean:.0%}" if one and other else "–"


def flips(name: str, models: Mapping[str, Result]) -> str:
    """Table 2 and figures 9 and 13: which of two single erasures changes the decision, in percent."""
    head = ("model", "accuracy", "paper", *(f"{subject}: ours" for subject in SUBJECTS))
    rows = []
    for model, result in models.items():
        family = name.removesuffix("10")
        cells = [_table(result, subject, FLIPS.get((family, model, subject))) for subject in SUBJECTS]
        rows.append((model, f"{result['model']['test']['accuracy']:.1%}", f"{ACCURACY[family][model]:.1f}", *cells))
    told = "Decision changed by both the top and a random other item / the top alone / the other alone / neither"
    return f"{told}, in % (the paper's in brackets, where it can be read):\n\n" + _lines(head, rows)


def _table(result: Result, subject: str, paper: Sequence[float] | None) -> str:
    found = [finding(result, "single_weight", subject, cell) for cell in CELLS]
    ours = " / ".join("–" if each is None else f"{100 * each.mean:.1f}" for each in found)
    return ours + (f" ({' / '.join(f'{number:.1f}' for number in paper)})" if paper else "")


def single(models: Mapping[str, Result]) -> str:
    """Figures 3 and 4: the median ΔJS by Δα, and where it is negative."""
    head = ("model", "ΔJS < 0", *(f"{low:.1f}–{low + 0.1:.1f}" for low in BINS[:-1]))
    rows = []
    for model, result in models.items():
        medians = [
            "–" if part["quantiles"] is None else f"{part['quantiles'][2]:.3f} ({negative}/{part['n']:,})"
            for part, negative in zip(result["change_by_gap"], result["negative_by_gap"], strict=True)
        ]
        rows.append((model, _share(result, "smaller", "attention", "single_weight"), *medians))
    return "Median ΔJS by bin of Δα (how many of the texts there have ΔJS < 0):\n\n" + _lines(head, rows)


def _share(result: Result, measure: str, subject: str, audit: str = "minimal_set") -> str:
    found = finding(result, audit, subject, measure)
    return "–" if found is None else f"{found.mean:.1%}"


def _lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows))
