"""Writes the part of docs/performance.md on the peers: every explainer, measure and method that one of them has too.

`make bench-peers` sets both environments up and runs it; `--only ferret,SmoothGrad` prints the rows of these peers or
methods and leaves the page alone, which holds one whole run.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import subprocess
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from benchmarks.__main__ import PAGE, machine
from benchmarks.beside.making import made
from benchmarks.beside.rows import EXPLAINED, FERRET, HEAD, INFLUENCE, JUDGED, PEERS, Pair, Row
from benchmarks.beside.turns import Worker
from studies.pages import put

LEAST, LONG, MOST = 2, 3.0, 10  # turns at least; seconds of ours that are enough; turns at most
LIBRARIES = ("captum", "shap", "lime", "inseq", "quantus", "kronfluence", "dattri", "transformers")


def compared(row: Row, folder: Path) -> Pair:
    """Both ways in turn; the fastest turn of each counts."""
    workers = [Worker(PEERS, row.ours, folder, row.texts), Worker(row.python, row.theirs, folder, row.texts)]
    try:
        for worker in workers:
            worker.ready()
        turns: list[list[float]] = []
        while len(turns) < LEAST or (len(turns) < MOST and sum(mine for mine, _ in turns) < LONG):
            turns.append([worker.turn() for worker in workers])
        found = [worker.end() for worker in workers]
    finally:
        for worker in workers:
            worker.stop()
    shares = [row.texts * (len(side.scores[0]) if row.networks else 1) for side in found]
    mine, theirs = (1000 * min(times) / share for times, share in zip(zip(*turns, strict=True), shares, strict=True))
    return Pair(row, (mine, theirs), (found[0], found[1]))


def table(rows: Sequence[Row], folder: Path, chosen: Sequence[str]) -> list[str]:
    """The lines of some rows; one that fails says so."""
    lines = list(HEAD)
    for row in rows:
        if chosen and not any(name == row.peer or name in row.method for name in chosen):
            continue
        try:
            line = compared(row, folder).line()
        except RuntimeError as fault:
            line = f"{row.begins} {row.floor} | failed: {str(fault)[:120]} | | | | | |"
        print(line, flush=True)
        lines.append(line)
    return lines


def versions() -> str:
    asked = [FERRET, "-c", "from importlib.metadata import version as v; print(v('ferret-xai'), v('transformers'))"]
    ferret, other = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()
    ours = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return f"{ours}; ferret {ferret} with transformers {other}"


def block(parts: Sequence[list[str]]) -> str:
    explained, judged, influence = ("\n".join(lines) for lines in parts)
    return TEXT.format(
        date=time.strftime("%Y-%m-%d"),
        machine=machine(),
        versions=versions(),
        explained=explained,
        judged=judged,
        influence=influence,
    )


TEXT = """Made by `make bench-peers` on {date}: {machine}; {versions}.

MiniLM (6 layers, 384 wide) with a classifier that has learnt a little, sentences of 30 words, each word one piece.
Every way has a process of its own, and the two of a row take turns; processor milliseconds for one text, the fastest
turn, tokenising included. Peers read 32 versions of a text at once where they can be told, all texts at once where they
can; *as they come*, captum reads one version at a time, and ours deletes words. Models that an audit makes once for all
texts are not counted. *Floor*: the different texts that any way has to read forward, and backward, to get this number,
if it keeps all it read; – where that is open. *Read*: what was read forward. *Peak*: of the whole process, libraries
included. *Difference*: the largest, in parts of the largest score, where both mean the same number; else Spearman's ρ,
for draws or definitions differ.

{explained}

{judged}

1,000 training texts and 50 queries on a BiLSTM, milliseconds for all scores. The peers' processes hold ours too, which
hands them the model; kronfluence and dattri's EK-FAC read only part of the parameters ([influence](influence.md)).

{influence}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="peers or parts of methods' names, with commas between them")
    chosen = [name for name in parser.parse_args().only.split(",") if name]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        made(folder)
        parts = [table(rows, folder, chosen) for rows in (EXPLAINED, JUDGED, INFLUENCE)]
    if not chosen:
        put(PAGE, block(parts), "the peers")


if __name__ == "__main__":
    main()
