"""What the sentences under the tables rest on, from the results that are kept.

python -m studies.rationales.findings [--folder results]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
from scipy.stats import kendalltau

from studies.rationales.kept import gathered
from studies.rationales.tables import SENTENCES, Seeds, Table, at_chance, learnt, spread, values, worked
from studies.results import Result

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=HERE / "results")
    for (corpus, model, units), recipes in gathered(parser.parse_args().folder).items():
        good = {name: made for name, seeds in recipes.items() if (made := worked(seeds))}
        print(f"\n{corpus}, {model}, {units}s", *said(good, units), sep="\n  ")


def said(results: Table, units: str) -> list[str]:
    """Sentences with the numbers of one table."""
    shown = {name: seeds for name, seeds in results.items() if learnt(seeds)}
    names = ["accuracy", "token_f1", "iou_f1", "auprc", "comprehensiveness", "sufficiency"]
    names += SENTENCES if units == "sentence" else []
    lines = [ranged(shown, name) for name in names]
    lines += [
        f"{name}, by how far seeds and recipes lie apart: {apart(shown, name)}" for name in ("accuracy", "token_f1")
    ]
    lines += poor(results)
    return lines


def ranged(shown: Table, name: str) -> str:
    """From which recipe to which a measure goes, in the order of their means."""
    means = {recipe: float(np.mean(found)) for recipe, seeds in shown.items() if (found := values(seeds, name))}
    order = sorted(means, key=means.__getitem__)
    return f"{name}: " + ", ".join(f"{recipe} {spread(values(shown[recipe], name))}" for recipe in order)


def apart(shown: Table, name: str) -> str:
    """The standard deviation between seeds of a recipe and between recipes, and how alike seeds rank recipes.

    Both are those of an analysis of variance with one factor, over recipes with as many seeds as any.
    """
    most = max(map(len, shown.values()))
    if most == 1:
        return "one seed"
    found = np.array([values(seeds, name) for seeds in shown.values() if len(seeds) == most])
    if len(found) < 3:
        return f"only {len(found)} recipes have {most} seeds"
    within = found.var(axis=1, ddof=1).mean()
    between = max(0.0, found.mean(axis=1).var(ddof=1) - within / most)
    ranks = [kendalltau(one, other).statistic for one, other in combinations(found.T, 2)]
    return (
        f"sd of seeds {within**0.5:.3f}, of recipes {between**0.5:.3f} ({len(found)} recipes, {most} seeds); "
        f"Kendall's tau of recipes between two seeds {np.mean(ranks):.2f} ({min(ranks):.2f} to {max(ranks):.2f})"
    )


def poor(results: Table) -> list[str]:
    """Which recipes decide at chance, with how many seeds, and whether they tell dev texts apart all the same."""
    lines = []
    for name, seeds in results.items():
        if bad := {seed: result for seed, result in seeds.items() if at_chance(result)}:
            dev, shares = (_each(bad, of) for of in (lambda r: r["best_dev"], lambda r: r["shares"][-1]))
            lines.append(
                f"at chance: {name}, {len(bad)} of {len(seeds)} seeds, accuracy {spread(values(bad, 'accuracy'))}, "
                f"AUC on dev texts {dev}, share drawn in the last epoch {shares}"
            )
    return lines


def _each(seeds: Seeds, of: Callable[[Result], float]) -> str:
    return spread([float(of(result["training"])) for result in seeds.values()])


if __name__ == "__main__":
    main()
