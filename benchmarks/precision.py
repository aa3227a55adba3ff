"""How far the ranks of words depend on the precision of the model: ASSAY_DATA=folder python -m benchmarks.precision.

Kendall's τ between the ranks that each explainer gives in float32 and in float64, for the same weights and texts, of
networks trained with the preset `jain-wallace`. Its table is put into docs/precision.md. [--device cuda]
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import platform
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from assay.data.batches import by_tokens, collate, tokenise
from assay.data.corpora import corpus
from assay.data.examples import thinned
from assay.errors import AssayError
from assay.explainers import EXPLAINERS
from assay.explainers.needs import unfit
from assay.metrics.agreement import kendall
from assay.models.recipes import preset, train
from assay.models.store import Trained
from assay.models.textmodel import doubled
from assay.types import Batch
from studies.pages import put

PAGE = Path("docs/precision.md")
CORPORA, ENCODERS = ("sst", "newsgroups", "agnews", "imdb"), ("lstm", "average")
LEARNT, TEXTS, LONGEST = 4000, 40, 100
"""Training texts, texts explained, and the words that the longest of these may have."""


def network(name: str, encoder: str, device: str) -> tuple[Trained, list[Batch]]:
    """A trained network, and batches of test texts."""
    texts = thinned(corpus(name), LEARNT, 0)
    recipe = preset("jain-wallace", name)
    recipe = replace(recipe, architecture=replace(recipe.architecture, encoder=encoder))
    model = train(texts, recipe, device=device)
    rows, _ = tokenise(texts.test, model.tokeniser, LONGEST)
    rows = rows[:: max(1, len(rows) // TEXTS)][:TEXTS]
    groups = by_tokens(np.array([len(row.ids) for row in rows]), 2048)
    return model, [collate([rows[place] for place in group], len(model.classes)).to(device) for group in groups]


def taus(model: Trained, batches: Sequence[Batch]) -> dict[str, np.ndarray]:
    """For each explainer that fits, τ of every text between ranks in float32 and in float64."""
    single, double = model.network, doubled(model.network)
    found = {}
    for name, explainer in EXPLAINERS.items():
        if unfit(explainer, single) is not None:
            continue
        values = []
        for batch in batches:
            target = double(double.embed(batch), batch).probabilities.argmax(-1)
            try:
                one, other = (explainer(each, batch, target).abs().double().cpu().numpy() for each in (single, double))
            except AssayError:  # one that wants something fitted first
                break
            values.append(kendall(one, other, batch.mask.cpu().numpy()).tau)
        if values:
            found[name] = np.concatenate(values)
    return found


def lines(found: dict[tuple[str, str], dict[str, np.ndarray]]) -> list[str]:
    """The table: mean and lowest τ of each explainer over the texts of each corpus, both networks beside each other."""
    head = ["explainer", *(f"{name} · {encoder}" for name, encoder in found)]
    names = [name for name in EXPLAINERS if any(name in each for each in found.values())]
    rows = []
    for name in names:
        cells = [each.get(name, np.array([np.nan])) for each in found.values()]
        shown = ["–" if np.isnan(c).all() else f"{np.nanmean(c):.5f} ({np.nanmin(c):.3f})" for c in cells]
        rows.append(f"| {name} | " + " | ".join(shown) + " |")
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    device = parser.parse_args().device
    found = {}
    for name in CORPORA:
        for encoder in ENCODERS:
            model, batches = network(name, encoder, device)
            found[name, encoder] = taus(model, batches)
            print(name, encoder, sum(map(len, batches)), "texts", flush=True)
    where = torch.cuda.get_device_name() if device == "cuda" else f"one core of an {platform.machine()} CPU"
    option = "" if device == "cpu" else f" --device {device}"
    said = f"`python -m benchmarks.precision{option}`, {where}, torch {torch.__version__}, {time.strftime('%Y-%m-%d')}."
    put(PAGE, "\n".join([said, "", *lines(found), ""]))


if __name__ == "__main__":
    main()
