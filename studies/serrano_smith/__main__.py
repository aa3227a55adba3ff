"""Trains the six networks on each corpus, erases their attention, and writes the tables of README.md.

    ASSAY_DATA=folder python -m studies.serrano_smith [--device cuda] [--ratings reviews.csv] [--only imdb/han-rnn]

`--ratings` is a file with the columns text, rating and split. Results are kept in results/; those there are only read.
`--results` stops before page and figures, for a machine that cannot draw: the same command makes them where results/
is copied to. `python -m studies.serrano_smith.tables` prints the table of the project's README.md from them.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from assay.data.corpora import corpus
from assay.data.examples import Corpus
from assay.models.recipes import preset
from assay.records import Record
from assay.run.examination import AuditPlan
from studies.pages import put
from studies.results import Result, kept, run
from studies.serrano_smith.tables import page, spread

HERE = Path(__file__).parent
MODELS = ("han-rnn", "han-conv", "han-none", "flan-rnn", "flan-conv", "flan-none")
PLAN = AuditPlan(explainers=("attention", "random"), audits=("single_weight", "minimal_set"))


def rated(file: Path) -> Corpus:
    """The reviews of a user's file, in as many classes as there are ratings."""
    return replace(corpus(str(file), label_column="rating", split_column="split"), name="imdb10")


def record(load: Callable[[], Corpus], model: str, folder: Path, device: str) -> Record:
    given = load()
    return run(given, preset(model, given.name), PLAN, folder, device)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--ratings", type=Path)
    parser.add_argument("--runs", type=Path, default=Path("runs/serrano-smith"))
    parser.add_argument("--only", help="one cell, such as imdb/han-rnn; the page is not written")
    parser.add_argument("--results", action="store_true", help="neither page nor figures are written")
    options = parser.parse_args()
    corpora: dict[str, Callable[[], Corpus]] = {"imdb": partial(corpus, "imdb")}
    corpora |= {"imdb10": partial(rated, options.ratings), "yahoo": partial(corpus, "yahoo")}
    cells = [options.only.split("/")] if options.only else [(name, model) for name in corpora for model in MODELS]
    results: dict[tuple[str, str], Result] = {}
    for name, model in cells:
        made = partial(record, corpora[name], model, options.runs / f"{name}-{model}", options.device)
        results[name, model] = kept(HERE / "results" / f"{name}-{model}.json", made, spread)
    if not (options.only or options.results):
        from studies.serrano_smith.figures import draw

        put(HERE / "README.md", page(results))
        draw(results, HERE / "figures")


if __name__ == "__main__":
    main()
