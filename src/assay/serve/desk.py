"""One model, many askers: calls are answered one by one, and too many at once are sent away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Answer = TypeVar("Answer")


class Busy(Exception):
    """More wait than there is room for."""


class Desk:
    """A worker for all calls to models: torch would only share the same processors among several."""

    def __init__(self, waiting: int) -> None:
        self._room = waiting
        self._taken = 0
        self._worker = ThreadPoolExecutor(1, "model")

    async def ask(self, call: Callable[[], Answer]) -> Answer:
        """What the call returns, once those before it are done."""
        if self._taken >= self._room:
            raise Busy
        self._taken += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._worker, call)
        finally:
            self._taken -= 1

    def close(self) -> None:
        self._worker.shutdown(cancel_futures=True)
