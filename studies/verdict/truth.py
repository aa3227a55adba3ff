"""Which texts have a truth that is true to the model: found out by intervention, before it judges anybody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Bool

from assay.audits.deciding import drawn
from assay.data.batches import Tokenised, by_tokens, collate
from assay.models.erasure import Pool, redrawn_probabilities
from assay.models.store import Opened
from assay.models.textmodel import predict
from assay.run.examination import TOKENS
from assay.types import Batch

DRAWS, ENOUGH = 8, 7
"""The decision has to stay, and to go, in so many of so many draws."""


def natural(rows: Sequence[Tokenised]) -> Pool:
    """The words of these texts that are no evidence of theirs."""
    plain = [torch.ones_like(row.ids, dtype=torch.bool) if row.truth is None else ~row.truth for row in rows]
    return Pool.of(
        [
            replace(
                row,
                ids=row.ids[kept],
                spans=row.spans[kept],
                sentences=row.sentences[kept],
                truth=None,
                subwords=None if row.subwords is None else row.subwords[kept],
            )
            for row, kept in zip(rows, plain, strict=True)
        ]
    )


def constructed(model: Opened, rows: Sequence[Tokenised]) -> Bool[np.ndarray, " N"]:
    """Which texts have evidence, and the label that the model gives them: all it takes where truth is constructed."""
    right = predict(model.network, rows).argmax(-1) == np.array([row.label for row in rows])
    return right & np.array([row.truth is not None and bool(row.truth.any()) for row in rows])


@torch.no_grad()
def verified(model: Opened, rows: Sequence[Tokenised], pool: Pool) -> Bool[np.ndarray, " N"]:
    """Which texts are decided by their evidence alone, as far as draws of words from other texts can tell.

    The model is right; with all other words drawn the decision stays, and with the evidence drawn it goes, each in
    `ENOUGH` of `DRAWS` draws. A class that is told by the absence of another's words fails the second: there the
    decision stays whatever stands in the place of its own. Texts without evidence have no truth.
    """
    held = np.zeros(len(rows), dtype=bool)
    for group in by_tokens(np.array([len(row.ids) for row in rows]), TOKENS):
        batch = collate([rows[place] for place in group], len(model.classes)).to(model.device)
        if batch.truth is not None:
            held[group] = _verified(model, batch, batch.truth, pool.to(model.device)).cpu().numpy()
    return held


def _verified(model: Opened, batch: Batch, truth: Bool[torch.Tensor, "B T"], pool: Pool) -> Bool[torch.Tensor, " B"]:
    predicted = model.network(model.network.embed(batch), batch).logits.argmax(-1)
    example = torch.arange(len(batch), device=truth.device).repeat_interleave(DRAWS)
    words = drawn(batch, pool, DRAWS, 1).flatten(0, 1)
    stays, left = (
        (
            redrawn_probabilities(model.network, batch, pool, example, kept[example], words).argmax(-1)
            == predicted[example]
        )
        .reshape(-1, DRAWS)
        .sum(-1)
        for kept in (truth, ~truth)
    )
    some = truth.any(-1) & (truth | ~batch.mask).logical_not().any(-1)
    return some & (predicted == batch.labels) & (stays >= ENOUGH) & (DRAWS - left >= ENOUGH)
