"""Runs a callback on SIGINT and SIGTERM, before the server waits for open connections."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stopping(call: Callable[[], None]) -> Iterator[None]:
    """Context manager: SIGINT and SIGTERM also make this call; works in the main thread only."""
    handlers = {}
    if threading.current_thread() is threading.main_thread():
        handlers = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}

    def heard(number: int, frame: FrameType | None) -> None:
        call()
        handler = handlers[signal.Signals(number)]
        if callable(handler):
            handler(number, frame)

    changed = [each for each, handler in handlers.items() if callable(handler)]
    for each in changed:
        signal.signal(each, heard)
    try:
        yield
    finally:
        for each in changed:
            signal.signal(each, handlers[each])
