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
from assay.records import SUMMARY, read_table, write_table

# Checkpoints of unfinished work: an interrupted audit or probe goes on where it stopped.


IDENTITY, PARTS = "plan.json", "parts"


@dataclass(frozen=True)
class Parts:
    """The parts of one audit in memory, or in a folder that no other audit may write to."""

    folder: Path | None

    def claim(self, identity: dict[str, Any]) -> bool:
        """Takes the folder for this audit; True when the audit was finished here before."""
        if self.folder is None:
            return False
        place = self.folder / IDENTITY
        if place.exists():
            if stored(place) != json.loads(json.dumps(identity)):
                raise AssayError(
                    f"{self.folder} holds an audit with other options, model or data; choose another --out."
                )
            return (self.folder / SUMMARY).exists()
        write_text(place, json.dumps(identity, indent=2) + "\n")
        return False

    def get(self, name: str, make: Callable[[], pa.Table]) -> pa.Table:
        """The part with this name, which says which examples it holds: as found, or made now and kept."""
        if self.folder is None:
            return make()
        place = self.folder / PARTS / f"{name}.parquet"
        if place.exists():
            with contextlib.suppress(OSError, ValueError, pa.ArrowException):  # what is damaged is made again
                return read_table(place)
        write_table(make(), place)
        return read_table(place)

    def clear(self) -> None:
        """Removes the parts once the whole record stands."""
        if self.folder is not None:
            shutil.rmtree(self.folder / PARTS, ignore_errors=True)


def stored(place: Path) -> Any:
    """What a file of finished work holds."""
    try:
        return json.loads(place.read_text(encoding="utf-8"))
    except ValueError as fault:
        raise Damaged(f"{place} is damaged, so this work cannot go on; choose another --out.") from fault


@dataclass(frozen=True)
class Kept:
    """The parts in a folder that no other probe may write to."""

    folder: Path

    def claim(self, identity: dict[str, Any]) -> None:
        """Takes the folder for probes of this identity."""
        place = self.folder / IDENTITY
        if not place.exists():
            write_text(place, json.dumps(identity, indent=2) + "\n")
        elif stored(place) != _plain(identity):
            raise AssayError(
                f"{self.folder} holds a probe of another model, limit or seed, or something else; choose another --out."
            )

    def get(self, name: str, asked: Any, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The part with this name: as found where the same was asked, or made now and kept.

        It has the "answer", and the "seconds" that it took.
        """
        place = self.folder / PARTS / f"{name}.json"
        if place.exists():
            found: dict[str, Any] = stored(place)
            if found.get("asked") == _plain(asked):
                return found
        started = time.monotonic()
        answer = make()
        held = {"asked": _plain(asked), "answer": finite(answer), "seconds": round(time.monotonic() - started, 3)}
        write_text(place, json.dumps(held, ensure_ascii=False, allow_nan=False) + "\n")
        return held


def finite(value: Any) -> Any:
    """The same, with None for what is no number: JSON has no other word for it."""
    if isinstance(value, dict):
        return {name: finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _plain(value: Any) -> Any:
    """As it is read back."""
    return json.loads(json.dumps(value))


# Least-recently-used cache with a limit on the total size of its values.


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
