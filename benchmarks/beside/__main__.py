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

import torch

from benchmarks.__main__ import PAGE, machine
from benchmarks.beside import errors
from benchmarks.beside.making import made
from benchmarks.beside.rows import ALIKE, FERRET, HEAD, INFLUENCE, JUDGED, PEERS, USUAL, Pair, Row
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
    mine, theirs = (1000 * min(times) / row.texts for times in zip(*turns, strict=True))
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
    usual, alike, errors, judged, influence = ("\n".join(lines) for lines in parts)
    return TEXT.format(
        date=time.strftime("%Y-%m-%d"),
        machine=machine(),
        versions=versions(),
        usual=usual,
        alike=alike,
        errors=errors,
        judged=judged,
        influence=influence,
    )


TEXT = """Made by `make bench-peers` on {date}: {machine}; {versions}.

MiniLM (6 layers, 384 wide) with a classifier that has learnt a little, sentences of 30 words, each one subword.
Every way has a process of its own, and the two of a row take turns; processor milliseconds for one text, the fastest
turn, tokenising included. *Floor*: the different texts that any way has to read forward, and backward, to get this
number, if it keeps all it read; – where that is open. *Read*: what was read forward. *Peak*: of the whole process,
libraries included. *Difference*: the largest, in parts of the largest score, where both mean the same number; else
Spearman's ρ, for draws or definitions differ.

### As they come

Each library as it is called without options, but for the number of samples: captum reads one version of a text at a
time, lime, shap and ferret as many as they choose and words masked; ours reads many together and words left out.

{usual}

### The same reads

The same versions of a text, peers told to read 32 at once where they can be told, all texts at once where they can.

{alike}

### To the same error

The first 12 words of four sentences, blanks, so that Shapley values are known exactly from all 4,096 parts. *Error*:
the distance from them in parts of their length, the mean over texts and two draws, after so many reads of ours; beside
it the first of 128, 256, … 4,096 reads after which captum, 32 at once, is no further away.

{errors}

### Measures and audits

Models that an audit makes once for all texts are not counted.

{judged}

### Influence

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
        usual, alike, judged, influence = (table(rows, folder, chosen) for rows in (USUAL, ALIKE, JUDGED, INFLUENCE))
        if chosen:
            return
        torch.set_num_threads(1)
        parts = [usual, alike, errors.table(folder), judged, influence]
        put(PAGE, block(parts), "the peers")


if __name__ == "__main__":
    main()
