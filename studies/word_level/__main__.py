"""Trains each model without and with a word-level objective, from several seeds, and writes the tables of README.md.

    ASSAY_DATA=folder python -m studies.word_level [--device cuda] [--only keyword/3] [--page]

A cell is a corpus and a seed. Results are kept in results/; what stands there is only read, and an interrupted run goes
on. With `--page` nothing is run: the tables are written from the results that are there.
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
from assay.errors import AssayError, unknown
from assay.models.recipes import Recipe, preset
from assay.records import Record
from assay.run.examination import AuditPlan
from studies.pages import put
from studies.planted.curriculum import LESSONS
from studies.results import Result, kept, run
from studies.word_level.tables import page

HERE = Path(__file__).parent
SEEDS = {"keyword": 8, "negation": 8, "sst": 5, "imdb": 5, "newsgroups": 5}
"""By corpus; of five seeds no signed-rank test can give a p-value below 0.06."""

TEXTS = 2000  # audited of a test split, at most
TRAIN_LIMIT = {"imdb": 4000}  # of 25,000 reviews
Cell = tuple[str, int]


def planted(name: str) -> bool:
    return f"planted:{name}" in LESSONS


def given(name: str) -> Corpus:
    """The corpus; planted ones with the texts that make their evidence what decides."""
    if planted(name):
        return LESSONS[f"planted:{name}"].corpus(f"planted:{name}")
    whole = corpus(name)
    return thinned(whole, TRAIN_LIMIT[name], 0) if name in TRAIN_LIMIT else whole


def recipe(name: str, seed: int) -> Recipe:
    """The usual one for the corpus, with states as large as embeddings."""
    usual = LESSONS[f"planted:{name}"].recipe if planted(name) else preset("jain-wallace", name)
    parts = replace(usual.architecture, hidden=usual.architecture.embedding // 2)
    return replace(usual, architecture=parts, training=replace(usual.training, seed=seed))


def record(cell: Cell, folder: Path, device: str) -> Record:
    name, seed = cell
    plan = AuditPlan(explainers=("attention",), audits=("word_level",), seed=seed, limit=TEXTS)
    return run(given(name), recipe(name, seed), plan, folder, device)


def place(cell: Cell) -> Path:
    name, seed = cell
    return HERE / "results" / f"{name}-{seed}.json"


def parsed(text: str) -> Cell:
    name, _, seed = text.partition("/")
    if name not in SEEDS:
        raise unknown("corpus of this study", name, SEEDS)
    if not seed.isdigit():
        raise AssayError(f"A cell is a corpus and a seed, as in keyword/3, not {text!r}.")
    return name, int(seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--runs", type=Path, default=Path("runs/word-level"))
    parser.add_argument("--only", help="one cell, such as keyword/3; the page is not written")
    parser.add_argument("--page", action="store_true", help="run nothing, and write the page from what is there")
    options = parser.parse_args()
    every = [(name, seed) for name, count in SEEDS.items() for seed in range(count)]
    cells = [parsed(options.only)] if options.only else every
    results: dict[Cell, Result] = {}
    for cell in cells:
        if place(cell).exists() or not options.page:
            made = partial(record, cell, options.runs / place(cell).stem, options.device)
            results[cell] = kept(place(cell), made)
    if not options.only:
        put(HERE / "README.md", page(results))


if __name__ == "__main__":
    main()
