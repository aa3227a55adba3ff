"""From results to the page: accuracy, flips, and what must be erased.

    python -m studies.serrano_smith.tables

prints the table of the project's README.md from what is kept in results/.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from assay.records import Record
from studies.pages import made_from
from studies.results import Result, finding
from studies.serrano_smith.published import ACCURACY, FLIPS

HERE = Path(__file__).parent
FLAT = {"flan-rnn": "recurrent", "flan-conv": "convolutions", "flan-none": "no encoder"}
SHOWN = {
    "attention": "down the attention",
    "gradient": "down the gradient",
    "random": "in a random order",
    "optimum": "smallest set",
}
RANKINGS = ("attention", "gradient", "product", "leave_one_out", "random", "optimum")
SUBJECTS = ("attention", "gradient", "product")
CELLS = ("both", "top_only", "other_only", "neither")
BINS = np.linspace(0.0, 1.0, 11)
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
Results = Mapping[tuple[str, str], Result]


def spread(record: Record) -> Result:
    """How the numbers of the texts are spread: quantiles of what is erased, and of ΔJS by bin of Δα."""
    rows, single = record.audit_rows("minimal_set"), record.audit_rows("single_weight")
    erased, masses = ({name: rows[f"{of}:{name}"].to_numpy() for name in RANKINGS} for of in ("erased", "erased_mass"))
    gap, change = (single[f"{name}:attention"].to_numpy() for name in ("delta_weight", "delta_js"))
    place = np.digitize(gap, BINS[1:-1])
    known = np.isfinite(change)
    bins = [change[known & (place == number)] for number in range(len(BINS) - 1)]
    return {
        "erased": {name: _quantiles(values) for name, values in erased.items()},
        "masses": {name: _quantiles(values) for name, values in masses.items()},
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
        parts += [_title(name, next(iter(models.values()))), erased(models), areas(models)]
        parts += [flips(name, models), single(models)]
    return "\n\n".join(parts) + "\n"


def _title(name: str, result: Result) -> str:
    corpus = result["corpus"]
    return f"### {name}: {len(corpus['classes'])} classes, {corpus['audited']:,} test texts"


def erased(models: Mapping[str, Result]) -> str:
    """Figures 5, 6 and 10: the median (quartiles) share of items erased until the first flip, of all texts."""
    head = ("model", *(name.replace("_", " ") for name in RANKINGS), "attention optimal", "gradient : attention")
    rows = []
    for model, result in models.items():
        boxes = [_box(quantiles(result, name)) for name in RANKINGS]
        rows.append((model, *boxes, _share(result, "optimal", "attention"), _wins(result)))
    told = "Share of items erased until the decision changes, 1 where it never does: median (quartiles) of all texts"
    return f"{told}:\n\n" + _lines(head, rows)


def quantiles(result: Result, ranking: str) -> list[float] | None:
    """Those of the share erased, of all texts; None where an earlier run kept them of the flipped texts alone."""
    found: list[float] | None = result["erased"][ranking] if "erased" in result else None
    return found


def areas(models: Mapping[str, Result]) -> str:
    """The mean of the same shares, which is an area, and the texts that a ranking never flips."""
    head = ("model", *(name.replace("_", " ") for name in RANKINGS))
    rows = [(model, *(_area(result, name) for name in RANKINGS)) for model, result in models.items()]
    told = "The mean of the same shares (in brackets: texts whose decision the ranking never changes)"
    return f"{told}:\n\n" + _lines(head, rows)


def _area(result: Result, name: str) -> str:
    mean, never = mean_erased(result, name), finding(result, "minimal_set", name, "never")
    return "–" if mean is None or never is None else f"{mean:.3f} ({never.mean:.1%})"


def mean_erased(result: Result, ranking: str) -> float | None:
    """The mean share erased, of all texts; of an earlier run from the mean of the texts that are flipped."""
    found = finding(result, "minimal_set", ranking, "erased")
    if found is not None:
        return found.mean
    some, never = (finding(result, "minimal_set", ranking, measure) for measure in ("fraction", "never"))
    return None if some is None or never is None else never.mean + (1 - never.mean) * some.mean


def summary(results: Mapping[str, Result]) -> str:
    """The table of the project's README.md: what must go in flat networks, of the same texts for every ranking."""
    head = ("flat network", *SHOWN.values(), "attention as short as possible")
    rows = []
    for model, title in FLAT.items():
        shortest = finding(results[model], "minimal_set", "attention", "optimal")
        cells = [_mean(results[model], name) for name in SHOWN]
        rows.append((title, *cells, "–" if shortest is None else f"{100 * shortest.mean:.0f} % of texts"))
    return _lines(head, rows)


def _mean(result: Result, name: str) -> str:
    """The mean share, and how many texts are never flipped where there are any."""
    mean, never = mean_erased(result, name), finding(result, "minimal_set", name, "never")
    if mean is None or never is None:
        return "–"
    return f"{100 * mean:.0f} %" + (f" (never {100 * never.mean:.0f} %)" if never.mean >= 0.005 else "")


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


def main() -> None:
    """Prints the table of film reviews with ratings in eight classes."""
    places = {model: HERE / "results" / f"imdb10-{model}.json" for model in FLAT}
    print(summary({model: json.loads(place.read_text(encoding="utf-8")) for model, place in places.items()}))


if __name__ == "__main__":
    main()
