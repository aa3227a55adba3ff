"""Writes the part of docs/performance.md on captum beside ours on a GPU: python -m benchmarks.beside.gpu.

Both sides live in one process, so captum has to be installed beside assay there.
"""

from __future__ import annotations

import os

os.environ.setdefault("BESIDE_DEVICE", "cuda")

import importlib
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import torch

from benchmarks.__main__ import PAGE
from benchmarks.beside.making import made
from benchmarks.beside.rows import HEAD, ROWS, Pair, Row
from benchmarks.beside.turns import DEVICE, Found, Text, read
from studies.pages import put

TURNS = 2
ELSEWHERE = ("lifting",)  # ways with a network of their own, which stays on the processor

ABOUT = """Made by `python -m benchmarks.beside.gpu` on {date}: {machine}; torch {torch}, captum {captum}.

The same model and sentences as [beside the peers](#beside-the-peers), float32, on the GPU: milliseconds of the clock
for one text, the fastest of {turns} turns. *Peak*: memory of the GPU that was in use, the model's included. *Blanks*,
*masked* and so many nodes are the same reads, 32 at once for captum; else each library is as it comes.

{table}
"""


def compared(row: Row, folder: Path, texts: Sequence[Text]) -> Pair:
    """Both ways, one after the other."""
    times, found = [], []
    for way in (row.ours, row.theirs):
        milliseconds, side = measured(way, folder, texts)
        times.append(milliseconds / row.texts)
        found.append(side)
    return Pair(row, (times[0], times[1]), (found[0], found[1]))


def measured(way: str, folder: Path, texts: Sequence[Text]) -> tuple[float, Found]:
    """Milliseconds of the fastest turn after one to warm up, and what came of it; scores leave the GPU in each turn."""
    module, _, name = way.partition(":")
    ways = importlib.import_module(f"benchmarks.beside.{module}")
    run = ways.WAYS[name](folder)
    run(texts)
    torch.cuda.reset_peak_memory_stats()
    times = []
    for _ in range(TURNS):
        with ways.counted() as cost:
            started = time.perf_counter()
            scores = run(texts)
            times.append(time.perf_counter() - started)
    peak = torch.cuda.max_memory_allocated() / 2**20
    return 1000 * min(times), Found(scores, cost.forward, cost.backward, peak)


def main() -> None:
    lines = list(HEAD)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        made(folder)
        texts = read(folder)[1:]
        for row in ROWS:
            if row.peer == "captum" and not row.ours.startswith(ELSEWHERE):
                lines.append(compared(row, folder, texts[: row.texts]).line())
                print(lines[-1], flush=True)
    machine = torch.cuda.get_device_name() if DEVICE == "cuda" else DEVICE
    numbers = {"torch": torch.__version__, "captum": version("captum"), "turns": TURNS}
    told = ABOUT.format(date=time.strftime("%Y-%m-%d"), machine=machine, table="\n".join(lines), **numbers)
    put(PAGE, told, "captum on a GPU")


if __name__ == "__main__":
    main()
