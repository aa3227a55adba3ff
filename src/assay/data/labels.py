"""Parses labels and maps them to classes."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from assay.data.cloze import is_cloze
from assay.errors import AssayError

MOST_CLASSES = 100
LONGEST = 200  # characters of the name of a class
NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")


class Label(NamedTuple):
    """A parsed label; sorting by its fields gives the natural order."""

    kind: str
    number: int
    name: str


def classes_of(values: Sequence[object], where: str, least: int = 2) -> tuple[list[int], tuple[str, ...]]:
    """The class index of each value, and at least `least` class names; `where` opens error messages."""
    labels = [parse(value, where) for value in values]
    present = sorted(set(labels))
    check(present, where, least)
    numbers = {label: number for number, label in enumerate(present)}
    return [numbers[label] for label in labels], tuple(label.name for label in present)


def missing(value: object) -> bool:
    """Whether a cell is empty: None, blank, or NaN."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, float) and math.isnan(value))


def parse(value: object, where: str) -> Label:
    """Parses one label: a word, a whole number or a truth value."""
    if isinstance(value, bool):
        return Label("truth values", int(value), str(value).lower())
    if isinstance(value, str) and (len(value.strip()) > LONGEST or not NUMBER.fullmatch(value.strip())):
        return Label("words", 0, value.strip())
    if not isinstance(value, (str, int, float)):
        raise AssayError(f"{where} holds {value!r:.40}, which is no label; use words or whole numbers.")
    number = whole_number(value)
    if number is None:
        raise AssayError(f"{where} holds the rating {value}; turn ratings into a few classes first.")
    return Label("numbers", number, str(number))


def whole_number(value: str | int | float) -> int | None:
    """The whole number that `value` stands for, or None."""
    if isinstance(value, str) and "." in value:
        value = float(value)
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return int(value)


def check(present: Sequence[Label], where: str, least: int = 2) -> None:
    """Raises an error for labels of several kinds, and for too few or too many classes."""
    kinds = {label.kind: label.name for label in present}
    if len(kinds) > 1:
        mixed = " and ".join(f"{kind} (such as {name!r:.40})" for kind, name in kinds.items())
        raise AssayError(f"{where} mixes {mixed}; use one kind throughout.")
    if not present:
        raise AssayError(f"{where} holds no label in any row that has a text; fill it in or name another column.")
    if (longest := max(present, key=lambda label: len(label.name)).name)[LONGEST:]:
        raise AssayError(
            f"{where} holds a label of {len(longest):,} characters, {longest!r:.40}…; at most {LONGEST} make sense: "
            "is it the right column?"
        )
    if len(present) < least:
        raise AssayError(f"{where} holds one class alone, {present[0].name!r:.40}; at least two are needed.")
    if len(present) > MOST_CLASSES and not is_cloze([label.name for label in present]):
        many = f"{len(present):,} different values"
        raise AssayError(f"{where} holds {many}; at most {MOST_CLASSES} classes make sense: is it the right column?")
