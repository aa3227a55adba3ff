"""How time grows with size: the clock and the slope."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

ROUNDS, ENOUGH, LONGEST = 2, 0.3, 6.0  # seconds: above the second one run is enough, above the third none follows


@dataclass(frozen=True)
class Series:
    """A number for each of some growing sizes, mostly milliseconds; where they took too long, not for the last."""

    sizes: Sequence[int]
    times: Sequence[float]

    @property
    def growth(self) -> float:
        """The slope of log time in log size: 1 is linear, 2 is quadratic; nan of one size alone, and of nothing."""
        known = len(self.sizes) > 1 and min(self.times) > 0
        return float(np.polyfit(np.log(self.sizes), np.log(self.times), 1)[0]) if known else math.nan

    def at(self, size: int) -> float:
        return self.times[list(self.sizes).index(size)]


def measured(runs: Mapping[int, Callable[[], object]], gpu: bool = False, longest: float = LONGEST) -> Series:
    """Each size in turn, the smallest first, until one takes more than `longest` seconds."""
    times: list[float] = []
    for run in runs.values():
        times.append(1000 * seconds(run, gpu))
        if times[-1] > 1000 * longest:
            break
    return Series(list(runs)[: len(times)], times)


def seconds(run: Callable[[], object], gpu: bool = False) -> float:
    """The fastest of some rounds after one to warm up: processor time, or on a GPU the time until it is idle."""
    clock = time.perf_counter if gpu else time.process_time
    best = math.inf
    for turn in range(ROUNDS + 1):
        started = clock()
        run()
        if gpu:
            torch.cuda.synchronize()
        spent = clock() - started
        if spent > ENOUGH and not (gpu and turn == 0):
            return min(best, spent)
        best = best if turn == 0 else min(best, spent)
    return best
