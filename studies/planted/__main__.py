"""Teaches models planted corpora, chooses by dev texts, audits the chosen ones on test texts, and writes a page.

    python -m studies.planted [--device cuda] [--jobs 15] [--only lessons/keyword,cnn] [--seeds 11,12,13]
        [--results results.json] [--runs runs/planted] [--page]

What is finished is kept in one file, and models and parts of audits in the folder for runs, so that an interrupted run
goes on. Only the widest models are trained on the device; everything else takes one core for each job. README.md, and a
table of docs/choosing.md, are written anew from all cells that there are; `--page` does only that.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path

from assay import progress
from assay.errors import AssayError
from assay.files import write_text
from studies.pages import put
from studies.planted import subjects
from studies.planted.cells import Audited, Taught
from studies.planted.choosing import ready
from studies.planted.subjects import Subject
from studies.planted.tables import advice, page
from studies.results import Result

HERE = Path(__file__).parent
CHOOSING = HERE.parent.parent / "docs" / "choosing.md"
SEEDS = (11, 12, 13)  # none was used before the settings were written down
Cell = Taught | Audited


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="", help="subjects, or how they begin, as in lessons/keyword,cnn")
    parser.add_argument("--seeds", default=",".join(map(str, SEEDS)))
    parser.add_argument("--results", type=Path, default=HERE / "results.json")
    parser.add_argument("--runs", type=Path, default=Path("runs/planted"))
    parser.add_argument("--page", action="store_true", help="write the page from what there is, and nothing else")
    options = parser.parse_args()
    seeds = tuple(map(int, options.seeds.split(",")))
    if not options.page:
        make(chosen(options.only), seeds, options.results, options.runs, options.device, options.jobs)
    found = (tuple(subjects.SUBJECTS.values()), seeds, kept(options.results))
    if seeds == SEEDS:
        put(HERE / "README.md", page(*found))
        put(CHOOSING, advice(*found), "planted")


def chosen(only: str) -> list[Subject]:
    """The subjects whose name, up to a slash, is one of those given; without any, all."""
    wanted = [part for part in only.split(",") if part]
    found = [
        subject
        for name, subject in subjects.SUBJECTS.items()
        if not wanted or any(f"{name}/".startswith(f"{part}/") for part in wanted)
    ]
    if not found:
        raise AssayError(f"No subject is called {only!r}; there are: {', '.join(subjects.SUBJECTS)}.")
    return found


def kept(path: Path) -> dict[str, Result]:
    """The finished cells by name."""
    found: dict[str, Result] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def make(
    wanted: Sequence[Subject], seeds: Sequence[int], path: Path, runs: Path, device: str = "cpu", jobs: int = 1
) -> None:
    """Makes what is missing, as soon as what it needs is there, and writes the file after each cell."""
    done = kept(path)
    for cell, result in made(wanted, seeds, done, runs, device, jobs):
        done[cell.name] = result
        write_text(path, json.dumps(dict(sorted(done.items())), indent=1, allow_nan=False) + "\n")
        score = f"dev {result['dev']:.3f}" if "dev" in result else f"test {result['test']:.3f}"
        progress.console.print(f"{cell.name}: {score}, {result['seconds']:.0f} s", highlight=False)


def made(
    wanted: Sequence[Subject], seeds: Sequence[int], done: dict[str, Result], runs: Path, device: str, jobs: int
) -> Iterator[tuple[Cell, Result]]:
    """Each missing cell with its result; who takes them puts them into `done`. One job runs in this process."""
    if jobs == 1:
        while cells := upcoming(wanted, seeds, done):
            yield cells[0], cells[0].made(runs, device)
        return
    waiting: dict[Future[Result], Cell] = {}
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        while cells := upcoming(wanted, seeds, done):
            fresh = (cell for cell in cells if cell not in waiting.values())
            waiting |= {pool.submit(cell.made, runs, device): cell for cell in fresh}
            finished, _ = wait(waiting, return_when=FIRST_COMPLETED)
            yield from ((waiting.pop(future), future.result()) for future in finished)


def upcoming(wanted: Iterable[Subject], seeds: Sequence[int], done: dict[str, Result]) -> list[Cell]:
    """What can be made now."""
    return [cell for subject in wanted for cell in ready(subject, seeds, done)]


if __name__ == "__main__":
    main()
