"""Explanations as sentences, trained from nothing: how right, how close to people's, and do they matter?

    ASSAY_DATA=folder python -m studies.explanations [--device cuda] [--only esnli] [--scale small] [--jobs 5]

Results are kept in results/, part by part: what stands there is only read, so that an interrupted run goes on. With
`--jobs`, so many modes are made at a time. With `--page` nothing is made: README.md is written from what is there.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

from assay.data.annotated import explained
from assay.files import write_text
from studies.explanations.cells import ROWS, SCALES, TOGETHER, Cell
from studies.explanations.tables import page
from studies.pages import put
from studies.results import Result

HERE = Path(__file__).parent
CORPORA = ("esnli", "cose")


def result(cell: Cell, path: Path, jobs: int = 1) -> Result:
    """What is known of one corpus; each part is written as soon as it is made."""
    found: Result = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def part(name: str, make: Callable[[], Result]) -> None:
        if name not in found:
            found[name] = make()
            write_text(path, json.dumps(found, indent=1, allow_nan=False, ensure_ascii=False) + "\n")
            print(f"{path.stem}: {name} is known", flush=True)

    part("about", cell.about)
    if jobs == 1:
        for name in ROWS:
            part(name, lambda name=name: cell.row(name))
        return found
    missing = [names for group in TOGETHER if (names := [name for name in group if name not in found])]
    if missing:
        cell.school.reader()  # what all rows read by is there before they part
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(replace(cell).rows, names) for names in missing]  # without what it holds on a device
        for done in as_completed(waiting):
            for name, row in done.result().items():
                part(name, lambda row=row: row)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--runs", type=Path, default=Path("runs/explanations"))
    parser.add_argument("--results", type=Path, default=HERE / "results")
    parser.add_argument("--only", choices=CORPORA, help="one corpus; the page is not written")
    parser.add_argument("--scale", choices=SCALES, default="full", help="small: part of the data, for a CPU")
    parser.add_argument("--jobs", type=int, default=1, help="so many modes at a time")
    parser.add_argument("--page", action="store_true", help="make nothing, and write the page from what there is")
    options = parser.parse_args()
    results = {}
    for name in (options.only,) if options.only else CORPORA:
        path = options.results / f"{name}-{options.scale}.json"
        if options.page:
            results[name] = json.loads(path.read_text(encoding="utf-8"))
            continue
        cell = Cell(SCALES[options.scale].of(explained(name)), options.runs / path.stem, options.device, options.scale)
        results[name] = result(cell, path, options.jobs)
    if not options.only and options.scale != "trial":
        put(HERE / "README.md", page(results))


if __name__ == "__main__":
    main()
