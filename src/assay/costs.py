"""Counts the forward and backward passes of an explanation, in texts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass
class Cost:
    """Texts passed forward and backward so far; a pass over a part of a text counts as that fraction."""

    forward: float = 0.0
    backward: float = 0.0


_current: ContextVar[Cost | None] = ContextVar("cost", default=None)


@contextmanager
def measured() -> Iterator[Cost]:
    """Context manager: counts the passes of all models within the block."""
    cost = Cost()
    token = _current.set(cost)
    try:
        yield cost
    finally:
        _current.reset(token)


def current() -> Cost | None:
    """The counter of this context, or None; hand it over to add from another thread."""
    return _current.get()


def add(forward: int | float = 0, backward: int | float = 0) -> None:
    """Adds passes to the current counter, if there is one; called by models."""
    cost = _current.get()
    if cost is not None:
        cost.forward += forward
        cost.backward += backward
