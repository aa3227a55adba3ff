"""What was costly to make, kept as long as there is room."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Kept(Generic[Value]):
    """Values by key, made one at a time; those that were not asked for the longest go first."""

    def __init__(self, room: int, weigh: Callable[[Value], int]) -> None:
        self._room, self._weigh = room, weigh
        self._values: OrderedDict[Hashable, Value] = OrderedDict()
        self._lock = threading.RLock()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of this key, made if it is not there."""
        with self._lock:
            if key not in self._values:
                self._values[key] = make()
            self._values.move_to_end(key)
            value = self._values[key]
            while len(self._values) > 1 and sum(map(self._weigh, self._values.values())) > self._room:
                self._values.popitem(last=False)
            return value
