"""Caches: finished parts of unfinished work in a folder, and values in memory by least recent use."""

from __future__ import annotations

import contextlib
import json
import math
import shutil
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import pyarrow as pa

from assay.errors import AssayError, Damaged
from assay.files import write_text
from assay.records import read_table, write_table

IDENTITY, PARTS = "plan.json", "parts"


@dataclass(frozen=True)
class FinishedParts:
    """Finished parts of one piece of work, in a folder that no other may write to, so that it goes on after a stop.

    Without a folder nothing is stored, and every part is made.
    """

    folder: Path | None

    def claim(self, identity: Any, other: str) -> bool:
        """Takes the folder for this work; True where it was taken before.

        Where it holds the work of another identity, the error says that it holds the `other`.
        """
        if self.folder is None:
            return False
        place = self.folder / IDENTITY
        if not place.exists():
            write_text(place, json.dumps(identity, indent=2) + "\n")
            return False
        if _stored(place) != _plain(identity):
            raise AssayError(f"{self.folder} holds {other}; choose another --out.")
        return True

    def table(self, name: str, make: Callable[[], pa.Table]) -> pa.Table:
        """The part of this name, which says what it holds: as it is stored, or made and stored."""
        if self.folder is None:
            return make()
        place = self.folder / PARTS / f"{name}.parquet"
        if place.exists():
            with contextlib.suppress(OSError, ValueError, pa.ArrowException):  # what is damaged is made again
                return read_table(place)
        write_table(make(), place)
        return read_table(place)

    def answer(self, name: str, question: Any, make: Callable[[], Any]) -> dict[str, Any]:
        """The "answer" of this name with the "seconds" that it took: as stored for the same question, or made."""
        place = None if self.folder is None else self.folder / PARTS / f"{name}.json"
        if place is not None and place.exists():
            found: dict[str, Any] = _stored(place)
            if found.get("asked") == _plain(question):
                return found
        started = time.monotonic()
        part = {"asked": _plain(question), "answer": finite(make()), "seconds": round(time.monotonic() - started, 3)}
        if place is not None:
            write_text(place, json.dumps(part, ensure_ascii=False, allow_nan=False) + "\n")
        return part

    def clear(self) -> None:
        """Removes the parts once the whole stands."""
        if self.folder is not None:
            shutil.rmtree(self.folder / PARTS, ignore_errors=True)


def finite(value: Any) -> Any:
    """The same, with None for what is no number: JSON has no other word for it."""
    if isinstance(value, dict):
        return {name: finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _stored(place: Path) -> Any:
    try:
        return json.loads(place.read_text(encoding="utf-8"))
    except ValueError as fault:
        raise Damaged(f"{place} is damaged, so this work cannot go on; choose another --out.") from fault


def _plain(value: Any) -> Any:
    """As it is read back."""
    return json.loads(json.dumps(value))


Value = TypeVar("Value")


class LruCache(Generic[Value]):
    """Least-recently-used cache by total size; values are made one at a time, on a miss; the last one always stays."""

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
