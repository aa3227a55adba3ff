"""Which training examples have wrong labels, which made the model decide so, and what does a shortcut lose?

    ASSAY_DATA=folder python -m studies.influence [--device cuda] [--only minilm] [--methods loss,dual] [--again]

SST, of which 5 % of the training labels are flipped; a BiLSTM and MiniLM. Results are kept in results/, part by part:
what stands there is only read, so that an interrupted run goes on; `--again` makes what failed anew.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from assay.data.corpora import corpus
from assay.files import write_text
from studies.influence.cells import Cell
from studies.influence.methods import NAMES
from studies.influence.tables import page
from studies.pages import put
from studies.results import Result

HERE = Path(__file__).parent
CELLS = ("bilstm", "minilm")
SHOWN = {"bilstm": ("dual", "projected", "kronecker"), "minilm": ("projected", "kronecker", "dual")}
"""Methods that may answer for single texts; the first that can does."""

SLOW = ("tracin", "dual")
"""What is asked last, where time may be short."""


def result(cell: Cell, path: Path, names: Sequence[str], again: bool = False) -> Result:
    """What is known of one model; each part is written as soon as it is made."""
    found: Result = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def part(place: Result, name: str, make: Callable[[], Result]) -> Result:
        if name not in place or (again and "failed" in place[name]):
            place[name] = make()
            write_text(path, json.dumps(found, indent=1, allow_nan=False) + "\n")
        made: Result = place[name]
        return made

    part(found, "model", cell.about)
    signals, texts = found.setdefault("signals", {}), found.setdefault("shown", {})
    for name in (name for name in names if name not in SLOW):
        part(signals, name, lambda name=name: cell.signal(name))
    shown: Result = {}
    for name in SHOWN[cell.name]:
        if name in names and "texts" not in shown:
            shown = part(texts, name, lambda name=name: cell.shown(name))
    part(found, "fastif", lambda: cell.fast([text["largest"] for text in shown.get("texts", ())]))
    for name in (name for name in names if name in SLOW):
        part(signals, name, lambda name=name: cell.signal(name))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32", help="the precision in which MiniLM is trained")
    parser.add_argument("--runs", type=Path, default=Path("runs/influence"))
    parser.add_argument("--results", type=Path, default=HERE / "results")
    parser.add_argument("--only", choices=CELLS, help="one model; the page is not written")
    parser.add_argument("--methods", default=",".join(NAMES))
    parser.add_argument("--again", action="store_true", help="make what failed anew")
    options = parser.parse_args()
    given, results = corpus("sst"), {}
    for name in (options.only,) if options.only else CELLS:
        cell = Cell(name, given, options.runs / name, options.device, options.dtype)
        results[name] = result(cell, options.results / f"{name}.json", options.methods.split(","), options.again)
    if not options.only:
        put(HERE / "README.md", page(results, given))


if __name__ == "__main__":
    main()
