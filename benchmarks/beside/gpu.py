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
from dataclasses import replace
from importlib.metadata import version
from itertools import cycle, islice
from pathlib import Path

import torch

from benchmarks.__main__ import PAGE
from benchmarks.beside.making import made
from benchmarks.beside.rows import HEAD, ROWS, Pair, Row
from benchmarks.beside.turns import DEVICE, Found, Text, read
from studies.pages import put

SECONDS, FEWEST, MOST = 2.0, 2, 200  # of all turns of a way, and how many there are
FULL = 256  # texts that keep the GPU busy
FILLED = (
    "gradient",
    "input × gradient",
    "SmoothGrad, 16",
    "integrated gradients",
    "gradient under 10 moved embeddings",
)
ELSEWHERE = ("lifting",)  # ways with a network of their own, which stays on the processor

ABOUT = """Made by `python -m benchmarks.beside.gpu` on {date}: {machine}; torch {torch}, captum {captum}.

The same model and sentences as [beside the peers](#beside-the-peers), float32, on the GPU: milliseconds of the clock
for one text that is tokenised already, the fastest of {fewest} to {most} turns; the two of a row take turns. *Peak*:
memory of the GPU that a turn took beside the models. *Blanks*, *masked* and so many nodes are the same reads, 32 at
once for captum; else each library is as it comes.

{few}

{full} texts at once, for methods that read a text a few times:

{many}
"""


def compared(row: Row, folder: Path, texts: Sequence[Text]) -> Pair:
    """Both ways, in turns."""
    ways = [Timed(way, folder, texts) for way in (row.ours, row.theirs)]
    while any(way.wants for way in ways):
        for way in filter(lambda way: way.wants, ways):
            way.turn()
    mine, other = ways
    return Pair(row, (mine.milliseconds / row.texts, other.milliseconds / row.texts), (mine.found(), other.found()))


class Timed:
    """A way that is warm when this returns."""

    def __init__(self, way: str, folder: Path, texts: Sequence[Text]) -> None:
        module, _, name = way.partition(":")
        self.ways = importlib.import_module(f"benchmarks.beside.{module}")
        self.run, self.texts = self.ways.WAYS[name](folder), texts
        with self.ways.counted() as cost:
            self.scores = self.run(texts)
        self.forward, self.backward = cost.forward, cost.backward
        self.times: list[float] = []
        self.peak = 0.0

    @property
    def wants(self) -> bool:
        """Whether more turns are to be taken."""
        return len(self.times) < FEWEST or (len(self.times) < MOST and sum(self.times) < SECONDS)

    @property
    def milliseconds(self) -> float:
        return 1000 * min(self.times)

    def turn(self) -> None:
        torch.cuda.reset_peak_memory_stats()
        there = torch.cuda.memory_allocated()
        started = time.perf_counter()
        self.scores = self.run(self.texts)
        self.times.append(time.perf_counter() - started)
        self.peak = max(self.peak, (torch.cuda.max_memory_allocated() - there) / 2**20)

    def found(self) -> Found:
        return Found(self.scores, self.forward, self.backward, self.peak)


def table(rows: Sequence[Row], folder: Path, texts: Sequence[Text]) -> str:
    """The rows, each with as many texts as it asks for."""
    lines = list(HEAD)
    for row in rows:
        lines.append(compared(row, folder, [*islice(cycle(texts), row.texts)]).line())
        print(lines[-1], flush=True)
    return "\n".join(lines)


def main() -> None:
    usual = [row for row in ROWS if row.peer == "captum" and not row.ours.startswith(ELSEWHERE)]
    filled = [replace(row, texts=FULL) for row in usual if row.method in FILLED]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        made(folder)
        texts = read(folder)[1:]
        few, many = (table(rows, folder, texts) for rows in (usual, filled))
    machine = torch.cuda.get_device_name() if DEVICE == "cuda" else DEVICE
    numbers = {"torch": torch.__version__, "captum": version("captum"), "fewest": FEWEST, "most": MOST, "full": FULL}
    told = ABOUT.format(date=time.strftime("%Y-%m-%d"), machine=machine, few=few, many=many, **numbers)
    put(PAGE, told, "captum on a GPU")


if __name__ == "__main__":
    main()
