"""Trains a model for each projection, from uniform to nearly one-hot, and writes the tables and figures of README.md.

    ASSAY_DATA=folder python -m studies.meister [--device cuda] [--only imdb/lstm]

Results are kept in results/; what stands there is only read, and an interrupted run goes on.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from dataclasses import replace
from functools import partial
from pathlib import Path

from assay.data.corpora import corpus
from assay.data.examples import Corpus, thinned
from assay.models.recipes import Recipe, preset
from assay.records import Record
from assay.run.examination import AuditPlan
from studies.meister.tables import CORPORA, ENCODERS, STRENGTHS, page
from studies.pages import put
from studies.results import kept, run

HERE = Path(__file__).parent
TRAIN_LIMIT = {"imdb": 4000}  # of 25,000 reviews
LIMIT = {"imdb": 500}  # of as many
PLAN = AuditPlan(explainers=("attention", "random"), audits=(f"sparsity(strengths={STRENGTHS})",))


def given(name: str) -> Corpus:
    whole = corpus(name)
    return thinned(whole, TRAIN_LIMIT[name], 0) if name in TRAIN_LIMIT else whole


def recipe(name: str, encoder: str) -> Recipe:
    """The preset of Jain and Wallace, whose set-up the paper takes over, with additive or dot attention."""
    chosen = preset("jain-wallace", name)
    alignment = {"lstm": "additive", "transformer": "dot"}[encoder]
    return replace(chosen, architecture=replace(chosen.architecture, encoder=encoder, alignment=alignment))


def record(name: str, encoder: str, folder: Path, device: str) -> Record:
    return run(given(name), recipe(name, encoder), replace(PLAN, limit=LIMIT.get(name)), folder, device)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--runs", type=Path, default=Path("runs/meister"))
    parser.add_argument("--only", help="one cell, such as imdb/lstm; the page is not written")
    options = parser.parse_args()
    every = [(name, encoder) for name in CORPORA for encoder in ENCODERS]
    cells = [tuple(options.only.split("/"))] if options.only else every
    results = {}
    for name, encoder in cells:
        made = partial(record, name, encoder, options.runs / f"{name}-{encoder}", options.device)
        results[name, encoder] = kept(HERE / "results" / f"{name}-{encoder}.json", made)
    if not options.only:
        from studies.meister.figures import draw  # a machine that only runs cells need not be able to draw

        put(HERE / "README.md", page(results))
        draw(results, HERE / "figures")


if __name__ == "__main__":
    main()
