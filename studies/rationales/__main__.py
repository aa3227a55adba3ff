"""Every recipe of a selection on texts with the words that people marked: accuracy, size, plausibility, faithfulness.

    ASSAY_DATA=folder python -m studies.rationales [--device cuda] [--jobs 4] [--corpora hatexplain,movies]
        [--models bilstm,minilm] [--recipes lei,mcd] [--folder results] [--runs folder] [--again]

One JSON file a cell is kept: what stands there is only read, so that an interrupted run goes on; `--again` makes what
failed anew. With `--runs` the models are kept as well. Cells do not depend on one another, and `--jobs` of them are
made at a time. README.md is written anew from all cells that there are.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from assay import progress
from assay.rationales.recipes import RECIPES
from studies.pages import put
from studies.rationales.cells import CORPORA, MODELS, Cell, kept
from studies.rationales.tables import page
from studies.results import Result

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", default=",".join(CORPORA))
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--recipes", default=",".join(RECIPES))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--folder", type=Path, default=HERE / "results", help="where results are kept")
    parser.add_argument("--runs", type=Path, help="where models are kept; without it they are not")
    parser.add_argument("--limit", type=int, help="train on so many texts, for a trial; the page is not written")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--again", action="store_true", help="make what failed anew")
    options = parser.parse_args()
    names = (options.corpora.split(","), options.models.split(","), options.recipes.split(","))
    cells = [
        Cell(corpus, model, recipe, 0, options.limit)
        for corpus in names[0]
        for model in names[1]
        for recipe in names[2]
    ]
    make_all(cells, options.folder, options.device, options.jobs, options.again, options.runs)
    if options.limit is None:
        put(HERE / "README.md", page(gathered(options.folder)))


def make_all(
    cells: Sequence[Cell], folder: Path, device: str, jobs: int = 1, again: bool = False, runs: Path | None = None
) -> None:
    """Makes what is missing; with several jobs, in as many processes."""
    if jobs == 1:
        for cell in cells:
            _told(cell, kept(cell, folder, device, again, runs))
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool, progress.bar() as shown:
        task = shown.add_task("cells", total=len(cells))
        waiting = {pool.submit(kept, cell, folder, device, again, runs): cell for cell in cells}
        for done in as_completed(waiting):
            _told(waiting[done], done.result())
            shown.advance(task)


def gathered(folder: Path) -> dict[tuple[str, str], dict[str, Result]]:
    """All cells that there are, in the order of their names."""
    found: dict[tuple[str, str], dict[str, Result]] = {}
    for corpus in CORPORA:
        for model in MODELS:
            for recipe in RECIPES:
                path = folder / f"{Cell(corpus, model, recipe).name}.json"
                if path.exists():
                    found.setdefault((corpus, model), {})[recipe] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _told(cell: Cell, result: Result) -> None:
    measures = result.get("measures", {})
    told = ", ".join(f"{name} {measures[name]['mean']:.3f}" for name in ("accuracy", "token_f1") if name in measures)
    progress.console.print(f"{cell.name}: {result.get('failed') or told}", highlight=False)


if __name__ == "__main__":
    main()
