"""Example sentences with the attention of the heads that lead the table of relations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from assay.data.treebank import Sentence
from assay.models.hf_body import Body
from assay.models.hf_subwords import SubwordTokeniser
from assay.probes.alignment import aligned
from assay.probes.observation import maps

SENTENCES, HEADS = 4, 6
WORDS = (6, 14)  # as many as can be read in a drawing


def examples(
    network: Body, tokeniser: SubwordTokeniser, sentences: Sequence[Sentence], table: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """A few sentences with the first relations of the table, and the attention of the heads named there."""
    first: dict[tuple[int, int], dict[str, Any]] = {}
    for row in table:
        first.setdefault((row["layer"], row["head"]), row)
    shown = list(first.values())[:HEADS]
    wanted = {row["relation"] for row in shown}
    fit = [each for each in sentences if WORDS[0] <= len(each.words) <= WORDS[1]]
    chosen = sorted(fit, key=lambda each: -len(wanted & set(each.relations)))[:SENTENCES] if shown else []
    found = aligned([each.text for each in chosen], [each.spans for each in chosen], tokeniser)
    kept = [(each, row) for each, row in zip(chosen, found, strict=True) if row is not None]
    drawn: dict[int, dict[str, Any]] = {}
    for group, seen in maps(network, [row for _, row in kept], "Examples"):
        for index, weights in zip(group, seen.cpu().numpy(), strict=True):
            drawn[int(index)] = _drawn(kept[index][0], weights, shown)
    return [drawn[index] for index in sorted(drawn)]


def _drawn(sentence: Sentence, weights: np.ndarray, shown: Sequence[dict[str, Any]]) -> dict[str, Any]:
    count = len(sentence.words)
    heads = [
        {
            "layer": row["layer"],
            "head": row["head"],
            "title": f"{row['relation']}, {row['direction']}",
            "weights": np.round(weights[row["layer"], row["head"], :count, :count].astype(np.float64), 4).tolist(),
        }
        for row in shown
    ]
    return {
        "words": list(sentence.words),
        "governors": list(sentence.governors),
        "relations": list(sentence.relations),
        "heads": heads,
    }
