"""Makes the bank of known reasons, fits the rule of the verdict to it, and writes table, figures and page.

    ASSAY_DATA=folder python -m studies.verdict [--device cuda] [--jobs 2] [--only keyword,built] [--small] [--page]

A finished cell stays in the folder for runs and is only read, so that an interrupted run goes on. `--small` makes a few
cells of every family and shows what they give, without a page. `--page` writes everything anew from results/.
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
from assay.errors import AssayError
from studies.verdict.bank import Cell, cells
from studies.verdict.cells import made


def make(wanted: Sequence[Cell], runs: Path, device: str, jobs: int) -> None:
    """Makes all cells, several side by side; one that fails is told of and left out."""
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(made, cell, runs, device): cell for cell in wanted}
        for done in as_completed(waiting):
            try:
                progress.console.print(done.result(), highlight=False)
            except (AssayError, RuntimeError) as fault:
                progress.console.print(f"{waiting[done].name}: {fault}", highlight=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="", help="cells, or how their names begin, as in keyword,built")
    parser.add_argument("--runs", type=Path, default=Path("runs/verdict"))
    parser.add_argument("--small", action="store_true", help="a few cells of every family")
    parser.add_argument("--page", action="store_true", help="write the page from what there is, and nothing else")
    options = parser.parse_args()
    starts = tuple(part for part in options.only.split(",") if part)
    wanted = [cell for cell in cells() if not starts or cell.name.startswith(starts)]
    make(wanted, options.runs, options.device, options.jobs)


if __name__ == "__main__":
    main()
