"""Every recipe of a selection on texts with the words that people marked: accuracy, size, plausibility, faithfulness.

    ASSAY_DATA=folder python -m studies.rationales [--device cuda] [--jobs 4] [--corpora hatexplain,movies]
        [--models bilstm,minilm] [--recipes lei,mcd] [--units word,sentence] [--seeds 0,1,2] [--folder results]
        [--runs folder] [--again] [--page]

One JSON file a table is kept, with a line for each recipe, kind of units and seed. It is written anew whenever a cell
is done, and what stands there is only read, so that an interrupted run goes on; `--again` makes what failed anew. With
`--runs` the models are kept as well. Cells do not depend on one another, and `--jobs` of them are made at a time, those
that take longest first; two commands at a time must not make cells of one table. README.md is written anew from all
cells that there are; with `--page` that is all that is done.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from assay import progress
from assay.rationales.recipes import RECIPES
from studies import pages
from studies.rationales import sentences
from studies.rationales.cells import CORPORA, MODELS, UNITS, Cell
from studies.rationales.kept import gathered, missing, put
from studies.rationales.tables import page
from studies.results import Result

HERE = Path(__file__).parent
SEEDS = (0, 1, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", default=",".join(CORPORA))
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--recipes", default=",".join(RECIPES))
    parser.add_argument("--units", default="word,sentence", help="what is selected at once; sentences only of reviews")
    parser.add_argument("--seeds", default=",".join(map(str, SEEDS)))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--folder", type=Path, default=HERE / "results", help="where results are kept")
    parser.add_argument("--runs", type=Path, help="where models are kept; without it they are not")
    parser.add_argument("--limit", type=int, help="train on so many texts, for a trial; the page is not written")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--again", action="store_true", help="make what failed anew")
    parser.add_argument("--page", action="store_true", help="make nothing, and write the page from what there is")
    options = parser.parse_args()
    asked = {name: getattr(options, name).split(",") for name in ("corpora", "models", "recipes", "units", "seeds")}
    if not options.page:
        make_all(cells(asked, options.limit), options.folder, options.device, options.jobs, options.again, options.runs)
    if options.limit is None:
        pages.put(HERE / "README.md", page(gathered(options.folder), sentences.kept(options.folder)))


def cells(asked: dict[str, list[str]], limit: int | None = None) -> list[Cell]:
    """All that is asked for; sentences only where the study selects any."""
    return [
        Cell(corpus, model, recipe, int(seed), units, limit)
        for seed in asked["seeds"]
        for corpus in asked["corpora"]
        for units in asked["units"]
        if units in UNITS.get(corpus, ("word",))
        for model in asked["models"]
        for recipe in asked["recipes"]
    ]


def make_all(
    asked: Sequence[Cell], folder: Path, device: str, jobs: int = 1, again: bool = False, runs: Path | None = None
) -> None:
    """Makes what is missing; with several jobs, in as many processes. This one alone writes."""
    waiting = missing(asked, folder, again)
    if jobs == 1:
        for cell in waiting:
            _done(cell, cell.result(device, runs), folder)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool, progress.bar() as shown:
        task = shown.add_task("cells", total=len(waiting))
        running = {pool.submit(cell.result, device, runs): cell for cell in waiting}
        for done in as_completed(running):
            _done(running[done], done.result(), folder)
            shown.advance(task)


def _done(cell: Cell, result: Result, folder: Path) -> None:
    put(folder, cell, result)
    measures = result.get("measures", {})
    told = ", ".join(f"{name} {measures[name]['mean']:.3f}" for name in ("accuracy", "token_f1") if name in measures)
    progress.console.print(f"{cell.name}: {result.get('failed') or told}", highlight=False)


if __name__ == "__main__":
    main()
