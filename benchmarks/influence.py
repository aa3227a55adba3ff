"""Prints a table of how well methods of influence predict retraining, beside other packages; one run, one core.

python -m benchmarks.influence [--model lstm] [--subsets 40] [--folder DIR] > docs/influence.md
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from assay.audits.influence_checks import answered
from assay.data.batches import tokenise
from assay.data.corpora import corpus
from assay.data.text import Tokeniser
from assay.influence.dual import DualGaussNewton
from assay.influence.kronecker import Kronecker
from assay.influence.last_layer import Representer, TracInFast
from assay.influence.neighbours import Neighbours
from assay.influence.retraining import Retrained, subsets
from assay.influence.setting import Influence, Method, Setting
from assay.influence.similarity import GradientCosine, GradientDot
from assay.influence.tracin import TracIn, Trak
from assay.influence.training_run import TrainingRun
from assay.influence.turnover import TurnoverDropout
from assay.influence.unrolled import Unrolled
from assay.metrics.performance import Bounded, lds_interval
from assay.models.config import Architecture, Training
from assay.models.recipes import Recipe, initialise
from benchmarks import influence_peers
from benchmarks.__main__ import machine

SHARES = (0.5, 0.05)  # removed
SWEEP = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)  # times the damping that is chosen from the training
WRONG = 0.05  # of the labels
METHODS: dict[str, Method] = {
    "gradient dot": GradientDot(),
    "gradient cosine": GradientCosine(),
    "TracIn": TracIn(),
    "TracIn, last layer": TracInFast(),
    "TRAK, one model": Trak(),
    "representer points": Representer(),
    "EK-FAC, all parameters": Kronecker(),
    "dual Gauss-Newton": DualGaussNewton(),
    "dual Gauss-Newton, one damping for all": DualGaussNewton(metric="plain"),
    "dual Gauss-Newton, leverage": DualGaussNewton(leverage=True),
    "turn-over dropout": TurnoverDropout(),
    "nearest neighbours": Neighbours(),
}


@dataclass(frozen=True)
class Sizes:
    """How large all is."""

    train: int = 2000
    queries: int = 100
    unrolled: int = 20  # queries that training is unrolled for
    subsets: int = 40
    epochs: int = 20
    batch: int = 128
    rate: float = 3e-4  # faster, training is so rough that its derivative says nothing of removals
    corpus: str = "planted:keyword"


ARCHITECTURES = {
    "lstm": Architecture(encoder="lstm", embedding=16, hidden=16, alignment_size=16),
    "transformer": Architecture(encoder="transformer", embedding=16, hidden=8, alignment_size=16),
}
USUAL = {"lstm": Sizes(), "transformer": Sizes(epochs=12, rate=5e-4)}


def setting_of(architecture: Architecture, sizes: Sizes) -> tuple[Setting, float]:
    """A model that learnt texts of which some have wrong labels, test texts, and the seconds of its training."""
    texts = corpus(sizes.corpus)
    recipe = Recipe(
        architecture, training=Training(epochs=sizes.epochs, batch_size=sizes.batch, learning_rate=sizes.rate)
    )
    tokeniser = Tokeniser.fit([each.text for each in texts.train[: sizes.train]], recipe.text)
    rows, _ = tokenise(texts.train[: sizes.train], tokeniser, 1000)
    asked, _ = tokenise(texts.test[: sizes.queries], tokeniser, 1000)
    random = np.random.default_rng(0)
    for place in random.permutation(len(rows))[: round(WRONG * len(rows))]:
        rows[place] = replace(rows[place], label=1 - rows[place].label)
    network = initialise(recipe, tokeniser, 2)
    training_run = TrainingRun(network, rows, recipe.training, sizes.epochs)
    replace(training_run, epochs=1).learn()  # to warm up
    begun = time.perf_counter()
    trained = training_run.learn()
    seconds = time.perf_counter() - begun
    return Setting.of(trained, rows, asked, training_run=training_run), seconds


def unrolled(setting: Setting, count: int) -> tuple[Influence, float]:
    """The derivative through training, for the first queries only."""
    begun = time.perf_counter()
    few = replace(setting, queries=setting.queries[:count], classes=setting.classes[:count])
    return Unrolled()(few), time.perf_counter() - begun


def swept(setting: Setting, damping: float) -> dict[str, tuple[Influence, float]]:
    """The dual form with other dampings, to see what choosing one from the training is worth."""
    found = {}
    for factor in SWEEP:
        begun = time.perf_counter()
        answer = DualGaussNewton(damping * factor)(setting)
        found[f"dual Gauss-Newton, damping {factor:g}"] = answer, time.perf_counter() - begun
    return found


def table(name: str, sizes: Sizes, folder: Path | None) -> list[str]:
    """One model: a line for each method."""
    setting, trained = setting_of(ARCHITECTURES[name], sizes)
    right = np.mean(setting.classes == [row.label for row in setting.queries])
    found, left_out = answered(setting, METHODS)
    told = [f"{label} is left out: {reason}" for label, reason in left_out.items()]
    others, more = influence_peers.answers(setting)
    found |= others
    found |= swept(setting, found["dual Gauss-Newton"][0].notes["damping"])
    found[f"unrolled ({sizes.unrolled} queries)"] = unrolled(setting, sizes.unrolled)
    begun = time.perf_counter()
    removed = {share: subsets(sizes.subsets, len(setting.train), share) for share in SHARES}
    targets = {share: Retrained(setting, folder).targets(own) for share, own in removed.items()}
    retrained = time.perf_counter() - begun
    scores = {
        label: [lds_interval(each.scores, removed[share], targets[share][:, : len(each.scores)]) for share in SHARES]
        for label, (each, _) in found.items()
    }
    lines = [
        f"## {setting.network.facts['description']}",
        "",
        f"{setting.network.parameter_count:,} parameters, {len(setting.train):,} training texts with "
        f"{WRONG:.0%} wrong labels, {sizes.epochs} epochs ({trained:.1f} s), {len(setting.queries)} queries, of which "
        f"{right:.0%} are answered rightly; truth: "
        f"{sizes.subsets} trainings for each share that is removed ({retrained:.0f} s for all).",
        "",
        "| method | parameters | seconds | trainings | LDS, 50 % removed | LDS, 5 % removed |",
        "|---|---|---|---|---|---|",
    ]
    for label, (each, seconds) in _chosen(found, scores).items():
        cells = " | ".join(_cell(bounds) for bounds in scores[label])
        lines.append(f"| {label} | {each.covered:.1%} | {seconds:.1f} | {seconds / trained:.1f} | {cells} |")
    tried = {"kronfluence EK-FAC": influence_peers.DAMPINGS, "dual Gauss-Newton": SWEEP}
    for method, dampings in tried.items():
        best = [_best(scores, method, place) for place in range(len(SHARES))]
        if all(best):
            cells = " | ".join(
                f"{_cell(scores[label][place])} ({label.split()[-1]})" for place, label in enumerate(best)
            )
            each, seconds = found[best[0]]
            lines.append(
                f"| {method}, best of {len(dampings)} dampings | {each.covered:.1%} | "
                f"{seconds:.1f} | {seconds / trained:.1f} | {cells} |"
            )
    return [*lines, "", *told, *more, ""]


def _chosen(found: dict[str, Any], scores: dict[str, list[Bounded]]) -> dict[str, Any]:
    """Without the dampings, best last."""
    shown = [label for label in found if ", damping " not in label or label.startswith("dattri")]
    return {
        label: found[label] for label in sorted(shown, key=lambda label: np.nan_to_num(scores[label][0].mean, nan=-1))
    }


def _best(scores: dict[str, list[Bounded]], method: str, place: int) -> str:
    """The damping of a method that the truth itself likes best."""
    tried = [label for label in scores if label.startswith(f"{method}, damping ")]
    return max(tried, key=lambda label: np.nan_to_num(scores[label][place].mean, nan=-1), default="")


def _cell(found: Bounded) -> str:
    return f"{found.mean:.3f} ({found.low:.2f} to {found.high:.2f})"


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=list(ARCHITECTURES), action="append")
    parser.add_argument("--folder", type=Path, help="keeps what retraining showed")
    kinds = {"rate": float, "corpus": str}
    for field in fields(Sizes):
        parser.add_argument(f"--{field.name}", type=kinds.get(field.name, int))
    options = parser.parse_args(given)
    torch.set_num_threads(1)
    asked = {field.name: getattr(options, field.name) for field in fields(Sizes)}
    changes = {name: value for name, value in asked.items() if value is not None}
    print(f"# Influence\n\nMade by `python -m benchmarks.influence` on {time.strftime('%Y-%m-%d')}: {machine()}.\n")
    print(
        "LDS: rank correlation of predicted and retrained margins over random subsets, the mean over queries with its "
        "95 % interval over queries and subsets. Same final model for all; trainings: seconds over those of one "
        "training.\n"
    )
    for name in options.model or ARCHITECTURES:
        print("\n".join(table(name, replace(USUAL[name], **changes), options.folder)), flush=True)


if __name__ == "__main__":
    main()
