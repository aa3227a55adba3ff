"""What is done at once when the server is asked to stop, before it waits for those who still listen."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stopping(call: Callable[[], None]) -> Iterator[None]:
    """Within the block, the signals that stop the server also make this call; only the main thread hears them."""
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
