"""Serialises calls to a model; raises Busy (503) when full."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Answer = TypeVar("Answer")


class Busy(Exception):
    """The queue of a model is full."""


class ModelQueue:
    """One worker thread for all calls to models; more threads would only compete for the same cores."""

    def __init__(self, waiting: int) -> None:
        self._room = waiting
        self._taken = 0
        self._worker = ThreadPoolExecutor(1, "model")

    async def run(self, call: Callable[[], Answer]) -> Answer:
        """Waits for earlier calls, runs this one, and returns its result."""
        if self._taken >= self._room:
            raise Busy
        self._taken += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._worker, call)
        finally:
            self._taken -= 1

    def close(self) -> None:
        self._worker.shutdown(cancel_futures=True)
