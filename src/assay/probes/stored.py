"""What a probe of attention heads left on disk, read back and put in order."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from assay.errors import AssayError

FORMAT, FILE, PAGE = "assay-probe-2", "probe.json", "probe.html"
EARLIER = "assay-probe-1"
"""The same, but for layers and heads, which it counts from 1."""
ANY = "any"
"""Stands for all relations but punctuation, taken together."""

Probe = Mapping[str, Any]
Cells = Sequence[Sequence[float | None]]
"""A number for each layer and head, None where there is none."""

Answers = dict[int, frozenset[int]]
"""The words that are asked about, and the right answers of each."""

MARKS = "punct"
"""The relation of punctuation, which is not counted among any."""


@dataclass(frozen=True)
class Relation:
    """The head that was chosen for one relation in one direction, and what it is held against."""

    relation: str
    direction: str
    n: int
    n_dev: int
    layer: int
    head: int
    accuracy: float
    low: float
    high: float
    dev_accuracy: float
    offset: int
    offset_accuracy: float
    control_accuracy: float
    control_low: float
    control_high: float
    chance: float
    every: Cells

    @property
    def title(self) -> str:
        return "any relation" if self.relation == ANY else self.relation

    @property
    def name(self) -> str:
        return f"{self.title}, {self.direction}"

    @property
    def lead(self) -> float:
        """How much more often the head is surely right than the best fixed offset: by the lower end of its interval."""
        return self.low - self.offset_accuracy

    @property
    def beats_offset(self) -> bool:
        """Whether the whole interval lies above what the best fixed offset reaches."""
        return self.low > self.offset_accuracy

    @property
    def beats_control(self) -> bool:
        """Whether the whole interval lies above the whole interval of the control."""
        return self.low > self.control_high

    @property
    def beats_both(self) -> bool:
        return self.beats_offset and self.beats_control


def read(path: Path) -> Probe:
    """The probe in a file."""
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except OSError as fault:
        raise AssayError(f"There is no {path}; make it with 'assay probe'.") from fault
    except ValueError as fault:
        raise AssayError(f"{path} is damaged ({fault}); probe the model again.") from fault
    if isinstance(held, dict) and held.get("format") == EARLIER:
        return dict(_from_zero(held), format=FORMAT)
    if not isinstance(held, dict) or held.get("format") != FORMAT:
        raise AssayError(f"{path} is not a probe of heads as this version writes it; probe the model again.")
    return held


def _from_zero(held: Any) -> Any:
    """A probe of the earlier format with layers and heads counted from 0; a list of "heads" holds drawings."""
    if isinstance(held, list):
        return [_from_zero(each) for each in held]
    if not isinstance(held, dict):
        return held
    named = {"layer", "head"} <= held.keys()
    return {key: each - 1 if named and key in ("layer", "head") else _from_zero(each) for key, each in held.items()}


def relations(probe: Probe) -> list[Relation]:
    """Every relation in every direction, those with the surest lead over the fixed offset first."""
    found = [_relation(each) for each in probe["sections"].get("relations") or ()]
    return sorted(found, key=lambda each: (-known(each.lead, -math.inf), each.relation, each.direction))


def single(found: Sequence[Relation]) -> list[Relation]:
    """Those that are one relation, not all together."""
    return [each for each in found if each.relation != ANY]


def best_directions(found: Sequence[Relation]) -> list[Relation]:
    """Of each relation the direction in which its head leads most surely, in the order given."""
    first: dict[str, Relation] = {}
    for each in found:
        first.setdefault(each.relation, each)
    return list(first.values())


def real(value: Any) -> float:
    """A number, nan where there is none."""
    return math.nan if value is None else float(value)


def known(value: float, otherwise: float) -> float:
    return otherwise if math.isnan(value) else value


def _relation(held: Mapping[str, Any]) -> Relation:
    kept = ("relation", "direction", "every")
    whole = ("n", "n_dev", "layer", "head", "offset")
    values: dict[str, Any] = {}
    for field in fields(Relation):
        value = held.get(field.name)
        if field.name in whole:
            values[field.name] = int(value or 0)
        else:
            values[field.name] = value if field.name in kept else real(value)
    return Relation(**values)


def answers(example: Mapping[str, Any], title: str) -> Answers:
    """What is asked of a head with this title, such as "obj, to governor"; of any other, both ways of all relations."""
    relation, _, direction = title.partition(", ")
    arcs = [
        (place, governor)
        for place, governor in enumerate(example["governors"])
        if governor >= 0 and _meant(relation, example["relations"][place], direction)
    ]
    if direction != "to dependent":
        found = {place: frozenset([governor]) for place, governor in arcs}
        if direction == "to governor":
            return found
    back = {governor: frozenset(one for one, other in arcs if other == governor) for _, governor in arcs}
    if direction == "to dependent":
        return back
    return {place: found.get(place, frozenset()) | back.get(place, frozenset()) for place in {*found, *back}}


def _meant(relation: str, found: str, direction: str) -> bool:
    if not direction.startswith("to "):
        return True
    return found == relation or (relation == ANY and found != MARKS)


def known_weight(weight: float | None) -> float:
    """The weight, 0 where it is unknown."""
    found = real(weight)
    return 0.0 if math.isnan(found) else found


def strongest(weights: Cells, place: int) -> int | None:
    """The word that a word attends to most, itself left out; None where it has no other."""
    row = [(known_weight(weight), -other) for other, weight in enumerate(weights[place]) if other != place]
    return -max(row)[1] if row and max(row)[0] > 0 else None


def hit(asked: Answers, weights: Cells, place: int) -> bool:
    """Whether a word attends most to a right answer."""
    return strongest(weights, place) in asked.get(place, ())
