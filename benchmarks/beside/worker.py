"""One way in this process: python -m benchmarks.beside.worker MODULE:WAY FOLDER TEXTS; benchmarks.beside starts it."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from benchmarks.beside.turns import read, serve


def main(way: str, folder: str, count: str) -> None:
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    module, _, name = way.partition(":")
    ways = importlib.import_module(f"benchmarks.beside.{module}")
    serve(ways.WAYS[name](Path(folder)), read(Path(folder))[: int(count) + 1], getattr(ways, "counted", None))


if __name__ == "__main__":
    main(*sys.argv[1:])
