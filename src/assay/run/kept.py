"""Finished parts of a probe as JSON: an interrupted one goes on where it stopped."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.errors import AssayError
from assay.files import write_text
from assay.run.parts import IDENTITY, PARTS, stored


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
