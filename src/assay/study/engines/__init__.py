"""Engines: they run trials in processes of this machine or on a cluster. An engine is shaped like `map`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, runtime_checkable

from assay.study.attempts import Outcome
from assay.study.trials import Trial

ENGINES = ("local", "ray")


@runtime_checkable
class Engine(Protocol):
    """Takes trials as it has room for them, and gives an outcome for each, in any order.

    Outcomes with files are still to be kept in the folder `place`; others are there.
    Where it is a generator, closing it stops the work.
    """

    def __call__(self, trials: Iterator[Trial], place: Path) -> Iterator[Outcome]: ...
