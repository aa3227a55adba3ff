"""Attention by hand on the command line: what is asked for, and what came of it."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

from rich.console import Console, Group
from rich.text import Text

from assay.cli.options import ActOptions, TransformerOptions
from assay.errors import AssayError
from assay.intervene.acts import Act

if TYPE_CHECKING:
    from assay.models.store import Opened

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
        head=options.attention_head,
        place=options.place,
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


def show(opened: Opened, text: str, query: str | None, act: Act, json_output: bool, console: Console) -> None:
    """Prints the answer before and after, how far it moved, and the weights of each word."""
    from assay.run.workbench import Workbench

    found = Workbench(opened, "").attend(text, query, act)
    found["command"] = shlex.join(["assay", *sys.argv[1:]])
    if json_output:
        print(json.dumps(found, ensure_ascii=False))
    elif console.is_terminal:
        console.print(_coloured(found, text))
    else:
        print(_plain(found))


def _head(found: dict[str, Any]) -> list[str]:
    """The answer before and after, the distances, and the note."""
    old, new = (f"{found[name]}  {found[part][found[name]]:.1%}" for name, part in _SIDES)
    most = "" if found["jsd_upper"] is None else f", at most {found['jsd_upper']:.4f}"
    lines = [
        f"{old}  →  {new}",
        f"answer moved by {found['tvd']:.4f} (TVD), attention by {found['jsd']:.4f} (JSD{most}), {found['kind']}",
        found["note"],
    ]
    if "reach" in found:
        reach = ", ".join(f"{name} {share:.1%}" for name, share in found["reach"].items())
        lines.append(f"likeliest by attention alone: {reach}")
    return lines


_SIDES = (("predicted_before", "before"), ("predicted_after", "after"))


def _elsewhere(found: dict[str, Any]) -> list[str]:
    if max(found["elsewhere"], found["elsewhere_after"]) < 5e-5:
        return []
    return [f"on markers and question: {found['elsewhere']:.1%} before, {found['elsewhere_after']:.1%} after"]


def _coloured(found: dict[str, Any], text: str) -> Group:
    """The text twice, with its weights as colours."""
    from assay.report.heatmaps import terminal

    starts, ends = zip(*found["spans"], strict=True)
    first, *others = _head(found)
    lines: list[Text] = [Text(first, style="bold"), *(Text(line) for line in others)]
    for title, weights in (("before", found["observed"]), ("after", found["weights"])):
        shown = [weights[item] for item in found["item_of"]]
        lines += [Text(f"\n{title}", style="dim"), terminal(text, starts, ends, shown)]
    return Group(*lines, *(Text(f"\n{line}", style="dim") for line in _elsewhere(found)))


def _plain(found: dict[str, Any]) -> str:
    """The same as a table with a row for each item."""
    labels = [f"{number}  {' '.join(label.split())}" for number, label in enumerate(found["items"])]
    labels = [label if len(label) <= 48 else f"{label[:47]}…" for label in labels]
    width = max(map(len, labels))
    rows = [
        f"{label.ljust(width)}  {old:8.4f}  {new:8.4f}"
        for label, old, new in zip(labels, found["observed"], found["weights"], strict=True)
    ]
    return "\n".join([*_head(found), f"{' ' * width}    before     after", *rows, *_elsewhere(found)])
