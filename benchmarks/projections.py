"""Prints the speed of sparse projections, forward and backward, beside the package entmax: same scores, one run."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import time
from collections.abc import Callable
from importlib.metadata import version

import entmax
import torch
from torch import Tensor

from assay.models.projections import projection
from benchmarks.__main__ import machine

PEERS: dict[str, Callable[[Tensor], Tensor]] = {
    "sparsemax": lambda scores: entmax.sparsemax(scores, dim=-1),
    "entmax(1.5)": lambda scores: entmax.entmax15(scores, dim=-1),
    "entmax(1.3)": lambda scores: entmax.entmax_bisect(scores, 1.3, dim=-1),
}
SHAPES = ((32, 20), (32, 200), (1024, 50))  # rows of so many scores: of short texts, of long ones, of inner attention
SECONDS, TURNS = 0.3, 5


def milliseconds(run: Callable[[], object]) -> float:
    """Processor time of one call: the fastest of some turns."""
    run()
    start = time.process_time()
    run()
    calls = max(1, int(SECONDS / TURNS / max(time.process_time() - start, 1e-6)))
    turns = []
    for _ in range(TURNS):
        start = time.process_time()
        for _ in range(calls):
            run()
        turns.append((time.process_time() - start) / calls)
    return 1000 * min(turns)


def compared(name: str, rows: int, items: int) -> str:
    """One line: both ways of making the weights and the gradients, and how far apart the weights are."""
    torch.manual_seed(0)
    scores, side = torch.randn(rows, items, requires_grad=True), torch.randn(rows, items)
    mask, ours = torch.ones(rows, items, dtype=torch.bool), projection(name)
    ways = (lambda: ours(scores, mask), lambda: PEERS[name](scores))
    mine, theirs = (milliseconds(lambda way=way: torch.autograd.grad(way(), scores, side)) for way in ways)  # type: ignore[misc]
    apart = (ways[0]() - ways[1]()).abs().max()
    return f"| {name} | {rows} × {items} | {mine:.3f} | {theirs:.3f} | {theirs / mine:.1f}× | {apart:.0e} |"


def main() -> None:
    torch.set_num_threads(1)
    print(f"{time.strftime('%Y-%m-%d')}: {machine()}, entmax {version('entmax')}\n")
    print("| projection | scores | ours, ms | entmax, ms | ratio | difference |\n|---|---|---|---|---|---|")
    for name in PEERS:
        for rows, items in SHAPES:
            print(compared(name, rows, items), flush=True)


if __name__ == "__main__":
    main()
