"""Least-recently-used cache with a limit on the total size of its values."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class LruCache(Generic[Value]):
    """Least-recently-used cache by total size; values are made one at a time, on a miss."""

    def __init__(self, room: int, weigh: Callable[[Value], int]) -> None:
        self._room, self._weigh = room, weigh
        self._values: OrderedDict[Hashable, Value] = OrderedDict()
        self._lock = threading.RLock()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The cached value of this key, made on a miss."""
        with self._lock:
            if key not in self._values:
                self._values[key] = make()
            self._values.move_to_end(key)
            value = self._values[key]
            while len(self._values) > 1 and sum(map(self._weigh, self._values.values())) > self._room:
                self._values.popitem(last=False)
            return value
