"""From results of several seeds to the page: means with t-intervals, and each objective against the base."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from scipy import stats

from studies.pages import made_from
from studies.results import Result, finding

VARIANTS = ("base", "concat", "tying", "mlm")
Cells = Mapping[tuple[str, int], Result]


def page(results: Cells) -> str:
    """All tables, a section for each corpus."""
    if not results:
        return "No results yet.\n"
    parts = [made_from("studies.word_level", list(results.values()))]
    for name in dict.fromkeys(name for name, _ in results):
        seeds = [result for (other, _), result in results.items() if other == name]
        parts += [_title(name, seeds), _levels(seeds), _gains(seeds)]
    return "\n\n".join(parts) + "\n"


def interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float]:
    """The mean and half the width of its t-interval; nan for one value."""
    if len(values) < 2:
        return float(np.mean(values)), float("nan")
    half = stats.t.ppf((1 + level) / 2, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
    return float(np.mean(values)), float(half)


def p_values(differences: Sequence[float]) -> tuple[float, float]:
    """The two-sided p-values of no difference: by Student's t and by Wilcoxon's signed ranks; nan where undefined."""
    values = np.asarray(differences, dtype=np.float64)
    if len(values) < 2 or not values.any():
        return float("nan"), float("nan")
    spread = np.ptp(values) > 1e-9  # else only rounding tells them apart
    student = float(stats.ttest_1samp(values, 0.0).pvalue) if spread else float("nan")
    return student, float(stats.wilcoxon(values).pvalue)


def _title(name: str, seeds: Sequence[Result]) -> str:
    corpus = seeds[0]["corpus"]
    return f"### {name}: {len(corpus['classes'])} classes, {corpus['audited']:,} test texts, {len(seeds)} seeds"


def _values(seeds: Sequence[Result], measure: str, variant: str) -> list[float]:
    """A number of each seed that has it."""
    found = [finding(result, "word_level", variant, measure) for result in seeds]
    return [each.mean for each in found if each is not None]


def _measures(seeds: Sequence[Result]) -> dict[str, str]:
    """The measures that there are, and the heads of their columns."""
    named = {"right": "accuracy", "auprc": "AUPRC", "information": "bits", "information_shuffled": "bits, shuffled"}
    named |= {"median_tvd": "median TVD"}
    there = [row["measure"] for row in seeds[0]["findings"] if row["audit"] == "word_level"]
    named |= {measure: f"JSD at {measure[4:]}" for measure in there if measure.startswith("jsd@")}
    return {measure: head for measure, head in named.items() if measure in there}


def _levels(seeds: Sequence[Result]) -> str:
    """Each model's numbers."""
    named = _measures(seeds)

    def cells(variant: str) -> list[str]:
        return [_told(_values(seeds, measure, variant)) for measure in named]

    return "Mean over seeds ± half of the 95 % t-interval:\n\n" + _lines(("model", *named.values()), VARIANTS, cells)


def _gains(seeds: Sequence[Result]) -> str:
    """Each objective's differences from the base, seed by seed."""
    named = {m: head for m, head in _measures(seeds).items() if m != "information_shuffled"}

    def cells(variant: str) -> list[str]:
        return [_compared(seeds, measure, variant) for measure in named]

    told = "Difference from the base of the same seed (seeds above : below; p of Student's t / of signed ranks):\n\n"
    return told + _lines(("model", *named.values()), VARIANTS[1:], cells)


def _compared(seeds: Sequence[Result], measure: str, variant: str) -> str:
    both = [(_values([seed], measure, variant), _values([seed], measure, "base")) for seed in seeds]
    gaps = [one[0] - base[0] for one, base in both if one and base]
    if not gaps:
        return "–"
    up, down = (sum(sign * gap > 0 for gap in gaps) for sign in (1, -1))
    student, ranks = (f"{p:.3f}" if np.isfinite(p) else "–" for p in p_values(gaps))
    return f"{_told(gaps, sign=True)} ({up} : {down}; {student} / {ranks})"


def _told(values: Sequence[float], sign: bool = False) -> str:
    if not values:
        return "–"
    mean, half = interval(values)
    shown = f"{mean:+.3f}" if sign else f"{mean:.3f}"
    return f"{shown} ± {half:.3f}" if np.isfinite(half) else shown


def _lines(head: Sequence[str], titles: Sequence[str], cells: Callable[[str], list[str]]) -> str:
    rows = [head, ["---"] * len(head), *([title, *cells(title)] for title in titles)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)
