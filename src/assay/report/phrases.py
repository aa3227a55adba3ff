"""The hierarchies of phrases that an audit left, ready to be shown."""

from __future__ import annotations

from dataclasses import dataclass

from assay.records import Record
from assay.report.trees import drawn
from assay.trees import Tree


@dataclass(frozen=True)
class Divided:
    """One text that falls apart into phrases: its number, what the model said, and pictures as HTML."""

    number: int
    predicted: str
    label: str
    pictures: tuple[tuple[str, str], ...]  # the name of the tree, and the tree


def divided(record: Record) -> list[Divided]:
    """What is shown; nothing where no trees were asked for."""
    return [
        Divided(
            each["example"],
            each["predicted"],
            each["label"],
            tuple((tree["name"], drawn(Tree.of(tree), each["words"])) for tree in each["trees"]),
        )
        for each in record.summary.get("trees", ())
    ]
