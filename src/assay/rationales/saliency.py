"""Saliency of words for a teacher, without gradient."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from assay.errors import AssayError
from assay.explainers import EXPLAINERS
from assay.rationales.players import Players, Reader
from assay.types import Batch


@torch.no_grad()
def saliency(name: str, players: Players, x: Float[Tensor, "B T D"], batch: Batch) -> Float[Tensor, "B T"]:
    """Scores of an explainer for the class that the teacher predicts from these embeddings; labels are not used."""
    numbered = replace(batch, labels=torch.arange(len(batch), device=x.device))  # explainers ask for some of the rows
    teacher = given(players.reader("teacher"), players.predictor, x.detach(), numbered)
    guess = teacher(x, batch).logits.argmax(-1)
    return EXPLAINERS[name](teacher, numbered, guess).detach().to(x.dtype)


def given(reader: Reader, owner: Reader, x: Float[Tensor, "B T D"], numbered: Batch) -> Reader:
    """The reader as a model whose embeddings are those given for the batch.

    The labels of the batch are the numbers of its rows.
    """

    def embed(asked: Batch) -> Tensor:
        width = asked.ids.shape[1]
        if not torch.equal(asked.ids, numbered.ids[asked.labels, :width]):
            raise AssayError("An explainer that writes other texts cannot select words; choose another saliency.")
        return x[asked.labels, :width]

    model = copy(reader)  # of the same kind, with the same weights
    model.__dict__ |= {"embed": embed, "blank": owner.blank}
    return model
