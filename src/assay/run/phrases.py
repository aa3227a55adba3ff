"""How phrases of some audited texts work together, for the page of an audit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from assay import progress
from assay.data.batches import Tokenised, collate
from assay.errors import AssayError
from assay.explainers.hierarchies import tree_builders
from assay.explainers.hierarchies.scorers import TreeBuilder
from assay.models.store import Opened
from assay.records import Record
from assay.report.examples import choose
from assay.run.languages import Home, with_language

MOST, LONGEST = 6, 40
"""Texts that are divided into phrases, and the words of the longest: more cannot be drawn, and cost much."""


def fitting_trees(
    model: Opened, trees: str | None, scorer: str | None, home: Home | None = None
) -> dict[str, TreeBuilder]:
    """The builders that are named, all of which can serve the model; `home` is where to learn what they need."""
    builders = with_language(tree_builders(trees, scorer), model, home or Home())
    for name, builder in builders.items():
        if (reason := builder.unfit(model.network)) is not None:
            raise AssayError(f"The tree {name!r} cannot be built for this model: {reason}.")
    return builders


def divided(
    model: Opened, rows: Sequence[Tokenised], record: Record, builders: dict[str, TreeBuilder]
) -> list[dict[str, Any]]:
    """For some of the texts that the page shows, the trees of the decision."""
    order = [place for choice in choose(record) for place in choice.rows]
    places = [place for place in order if len(rows[place].ids) <= LONGEST][:MOST]
    found = []
    with progress.bar() as shown:
        for place in shown.track(places, description="phrases"):
            row, told = rows[place], record.examples.slice(place, 1).to_pylist()[0]
            batch = collate([row], len(model.classes)).to(model.device)
            with torch.no_grad():
                target = model.network(model.network.embed(batch), batch).logits.argmax(-1)
            trees = [{"name": name} | build(model.network, batch, target)[0].json() for name, build in builders.items()]
            words = [told["text"][start:end] for start, end in zip(told["starts"], told["ends"], strict=True)]
            found.append(
                {
                    "example": told["example"],
                    "words": words,
                    "predicted": model.classes[int(target)],
                    "label": model.classes[row.label],
                    "trees": trees,
                }
            )
    return found
