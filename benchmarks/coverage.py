"""Whether 95 % intervals hold the truth in 95 of 100 samples, and tests err in 5: python -m benchmarks.coverage.

Coverage of intervals of shares, of their differences and of means, how often any of several equal explainers is called
worse, and how often a mean gain of nothing is called one; beside each figure that of a percentile bootstrap or a
signed-rank test, in brackets. The tables are put into docs/statistics.md.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from scipy.stats import binom, multinomial, wilcoxon

from assay.metrics import comparisons as paired
from assay.metrics.intervals import means, share, share_differences
from studies.pages import put

PAGE = Path("docs/statistics.md")
SAMPLES, FAMILIES, RESAMPLES, AT_ONCE = 20_000, 5000, 2000, 2000
RATES, TEXTS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5), (20, 50, 100, 200, 500)
PAIRS = ((0.01, 0.01), (0.02, 0.01), (0.05, 0.05), (0.1, 0.02), (0.2, 0.1))
"""How many texts are right by the first of two models alone, and by the second alone."""

Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]
VALUES, CHANCES = (0.0, 0.25, 0.5, 1.0), (0.5, 0.3, 0.15, 0.05)


def spiked(share: float, height: float) -> Draw:
    """A small spread around 0, and in some texts an exponential of that mean; less its own mean."""

    def draw(random: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
        far = random.random(size) < share
        return np.where(far, random.exponential(height, size), random.normal(0, 0.3, size)) - share * height

    return draw


LAWS: dict[str, Draw] = {
    "normal": lambda random, size: random.normal(size=size),
    "uniform": lambda random, size: random.random(size) - 0.5,
    "exponential": lambda random, size: random.exponential(size=size) - 1,
    "few values (0, ¼, ½, 1)": lambda random, size: random.choice(VALUES, size, p=CHANCES) - np.dot(VALUES, CHANCES),
    "two heaps, 3 in 10 texts far from the others": lambda random, size: (
        np.where(random.random(size) < 0.3, random.normal(3, 1.5, size), random.normal(0, 1, size)) - 0.9
    ),
}
HARD: dict[str, Draw] = {
    "half the texts exponential, the others near 0": spiked(0.5, 1),
    "log-normal": lambda random, size: random.lognormal(size=size) - np.exp(0.5),
    "1 in 10 texts exponential and ten times as far, the others near 0": spiked(0.1, 3),
    "t with 3 degrees of freedom": lambda random, size: random.standard_t(3, size=size),
}
"""Numbers of which few texts do not show how far they reach."""
FEW = "Where few texts do not show how far the numbers reach:"


@cache
def resampled(n: int) -> np.ndarray:
    """How much each of n numbers weighs in each resample."""
    draws = np.random.default_rng(0).integers(n, size=(RESAMPLES, n)) + n * np.arange(RESAMPLES)[:, None]
    return np.bincount(draws.ravel(), minlength=RESAMPLES * n).reshape(RESAMPLES, n) / n


def percentile(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The ends of the percentile bootstrap (Efron, 1979) of the mean of each column."""
    low, high = np.quantile(resampled(len(samples)) @ samples, [0.025, 0.975], axis=0)
    return low, high


def held(low: np.ndarray, high: np.ndarray, truth: float) -> np.ndarray:
    return (low - 1e-12 <= truth) & (truth <= high + 1e-12)


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    return ["| " + " | ".join(each) + " |" for each in (head, ["---"] * len(head), *rows)]


def both(new: float, old: float) -> str:
    return f"{new:.3f} ({old:.3f})"


def of_shares() -> list[str]:
    """Exact coverage: the chance of every count whose interval holds the rate."""
    rows, outside = [], []
    for rate in RATES:
        row = [f"{rate:g}"]
        for n in TEXTS:
            counts = np.arange(n + 1)
            chance, ends = binom.pmf(counts, n, rate), share(counts, np.full(n + 1, n))
            new = chance[held(*ends, rate)].sum()
            old = [binom.ppf(end, n, counts / n) / n for end in (0.025, 0.975)]
            row.append(both(new, chance[held(*old, rate)].sum()))
            if not 0.93 <= round(new, 3) <= 0.97:
                outside.append([f"{rate:g}", f"{n}", f"{new:.3f}", *(f"{each:.3f}" for each in attainable(chance))])
        rows.append(row)
    head = ["rate", "n", "coverage", "next below .95 that any can have", "next from .95 on"]
    lead = "**Shares of rare events**, exact sums: coverage by rate and number of texts."
    more = (
        "Outside .93 to .97, and what is attainable there by any interval at all (a count holds the rate or it does "
        "not, and counts that do are neighbours):"
    )
    return [lead, "", *table(["rate", *(f"n = {n}" for n in TEXTS)], rows), "", more, "", *table(head, outside)]


def attainable(chance: np.ndarray) -> tuple[float, float]:
    """The coverages nearest to .95, below and above, of all sets of neighbouring counts."""
    sums = np.concatenate([[0], chance.cumsum()])
    every = (sums[None] - sums[:, None])[np.triu_indices(len(sums), 1)]
    return float(every[every < 0.95].max()), float(every[every >= 0.95].min())


def of_differences() -> list[str]:
    """Coverage of the difference of two shares over the same texts."""
    random, rows = np.random.default_rng(1), []
    for more, less in PAIRS:
        row = [f"{more:g}, {less:g}"]
        for n in TEXTS:
            counts = multinomial(n, [more, less, 1 - more - less]).rvs(SAMPLES, random_state=random)
            every, times = np.unique(counts, axis=0, return_counts=True)
            values = np.stack([np.repeat([1.0, -1.0, 0.0], each) for each in every], axis=1)
            found = share_differences(values)
            new, old = held(found.low, found.high, more - less), held(*percentile(values), more - less)
            row.append(both(new @ times / SAMPLES, old @ times / SAMPLES))
        rows.append(row)
    lead = (
        f"**Differences of two shares** over the same texts, {SAMPLES:,} samples: coverage by the share of texts that"
    )
    head = ["first alone, second alone", *(f"n = {n}" for n in TEXTS)]
    return [f"{lead} are right by one model alone.", "", *table(head, rows)]


def of_means() -> list[str]:
    sizes = (10, 20, 50, 100, 500)

    def row(name: str, draw: Draw) -> list[str]:
        random, cells = np.random.default_rng(2), []
        for n in sizes:
            new = old = 0.0
            for _ in range(SAMPLES // AT_ONCE):
                samples = draw(random, (n, AT_ONCE))
                found = means(samples)
                new += held(found.low, found.high, 0).sum() / SAMPLES
                old += held(*percentile(samples), 0).sum() / SAMPLES
            cells.append(both(new, old))
        return [name, *cells]

    lead = f"**Means**, {SAMPLES:,} samples: coverage by the law of the numbers and how many there are."
    return [lead, "", *of_laws(["numbers", *(f"n = {n}" for n in sizes)], row)]


def of_laws(head: list[str], row: Callable[[str, Draw], list[str]]) -> list[str]:
    """A table of the usual laws, and one of the hard ones."""
    usual, hard = (table(head, [row(*each) for each in laws.items()]) for laws in (LAWS, HARD))
    return [*usual, "", FEW, "", *hard]


def related(random: np.random.Generator, n: int, k: int) -> np.ndarray:
    """Equally good explainers: texts differ more than explainers, and the second half are relatives of one another."""
    own = random.normal(size=(n, k))
    own[:, k // 2 :] = 0.8 * own[:, [k // 2]] + 0.6 * own[:, k // 2 :]
    return random.normal(0, 2, (n, 1)) + own


FAMILY: dict[str, Callable[[np.random.Generator, int, int], np.ndarray]] = {
    "normal, half of them relatives": related,
    "exponential": lambda random, n, k: random.normal(size=(n, 1)) + random.exponential(size=(n, k)),
    "few values": lambda random, n, k: random.choice(VALUES, (n, k), p=CHANCES),
}


def of_families() -> list[str]:
    rows, sizes = [], (3, 6, 12)
    paired.DRAWS = RESAMPLES  # a fifth of the usual; the limit is drawn anew for each family
    for name, draw in FAMILY.items():
        for n in (50, 200):
            random, row = np.random.default_rng(3), [name, f"{n}"]
            for k in sizes:
                new = old = 0
                for _ in range(FAMILIES):
                    values = draw(random, n, k)
                    best = int(values.mean(0).argmax())
                    new += not paired.tied(values, best).all()
                    old += bool((percentile(values - values[:, [best]])[1] < 0).any())
                row.append(both(new / FAMILIES, old / FAMILIES))
            rows.append(row)
    lead = f"**≈ on a leaderboard**, {FAMILIES:,} families: how often any of several equal explainers is called worse."
    return [lead, "", *table(["numbers", "n", *(f"{k} explainers" for k in sizes)], rows)]


def of_gains() -> list[str]:
    sizes = (20, 100, 500)

    def row(name: str, draw: Draw) -> list[str]:
        random, cells = np.random.default_rng(4), []
        for n in sizes:
            samples = draw(random, (n, SAMPLES))
            ranks = np.concatenate([wilcoxon(part, axis=0).pvalue for part in np.array_split(samples, 20, axis=1)])
            cells.append(both(np.mean(means(samples).p <= 0.05), np.mean(ranks <= 0.05)))
        return [name, *cells]

    lead = f"**“Beats chance”**, {SAMPLES:,} samples: how often a gain of 0 on average has p ≤ .05."
    return [lead, "", *of_laws(["gains", *(f"n = {n}" for n in sizes)], row)]


def main() -> None:
    start, lines = time.perf_counter(), []
    for part in (of_shares, of_differences, of_means, of_families, of_gains):
        found = part()
        print("\n".join([*found, ""]), flush=True)
        lines += ["", *found]
    took = f"{time.perf_counter() - start:.0f} seconds"
    made = f"`python -m benchmarks.coverage`, one core of an x86-64 CPU, {time.strftime('%Y-%m-%d')}, {took}."
    put(PAGE, "\n".join([made, *lines, ""]))


if __name__ == "__main__":
    main()
