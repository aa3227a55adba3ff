"""Options of `assay attend` as an act on attention."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import TypeVar

from assay.cli.options import ActOptions, TransformerOptions
from assay.errors import AssayError
from assay.intervene.edits import Act

Number = TypeVar("Number", int, float)
FOR = {"weights": "set", "items": "erase", "target": "likeliest", "seed": "permute", "epsilon": "furthest"}
"""The act that each option belongs to."""


def chosen_act(options: ActOptions) -> Act:
    """The act that the options name; what does not fit together is said in one sentence."""
    usual = ActOptions()
    for name, kind in FOR.items():
        if getattr(options, name) != getattr(usual, name) and options.act != kind:
            raise AssayError(f"--{name} is for --act {kind}; leave it out, or choose that act.")
    if options.act == "set" and not options.weights.strip():
        raise AssayError("Say which weights to set, such as --weights 3=0.5,7=0.2; items are counted from 0.")
    if options.act == "erase" and not options.items.strip():
        raise AssayError("Say which items to erase, such as --items 3,7; they are counted from 0.")
    return Act(
        kind=options.act,
        weights=_weights(options.weights),
        items=tuple(_number(int, each, "--items", "3,7") for each in _parts(options.items)),
        target=options.target,
        seed=options.seed,
        epsilon=options.epsilon,
        layer=options.layer,
        head=options.head,
        place=options.position,
    )


def _weights(text: str) -> dict[int, float]:
    """Items and their weights, from 3=0.5,7=0.2."""
    found: dict[int, float] = {}
    for each in _parts(text):
        item, _, weight = each.partition("=")
        number = _number(int, item, "--weights", "3=0.5,7=0.2")
        if number in found:
            raise AssayError(f"--weights names the item {number} twice; give it one weight.")
        found[number] = _number(float, weight, "--weights", "3=0.5,7=0.2")
    return found


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _number(kind: Callable[[str], Number], text: str, option: str, like: str) -> Number:
    try:
        return kind(text)
    except ValueError:
        raise AssayError(f"{option} is written like {like}, and {text.strip()!r} is no number.") from None


def reading_options(device: str, reading: TransformerOptions) -> tuple[str, ...]:
    """How a model is read, as it is written on the command line."""
    usual = TransformerOptions()
    told = [] if device == "cpu" else ["--device", device]
    for each in fields(reading):
        value = getattr(reading, each.name)
        if value != getattr(usual, each.name):
            told += [f"--{each.name}", *([] if value is True else [value])]
    return tuple(told)
