"""What an explanation costs, in texts that a model reads forward and backward."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass
class Cost:
    """Texts read so far; a pass over part of a text counts as that part."""

    forward: float = 0.0
    backward: float = 0.0


_current: ContextVar[Cost | None] = ContextVar("cost", default=None)


@contextmanager
def measured() -> Iterator[Cost]:
    """Counts what models do inside the block."""
    cost = Cost()
    token = _current.set(cost)
    try:
        yield cost
    finally:
        _current.reset(token)


def current() -> Cost | None:
    """The count that goes on, if anybody counts; who adds to it from another thread takes it along."""
    return _current.get()


def add(forward: int | float = 0, backward: int | float = 0) -> None:
    """Adds to the count, if anybody counts; models and what reads them piecewise call it."""
    cost = _current.get()
    if cost is not None:
        cost.forward += forward
        cost.backward += backward
