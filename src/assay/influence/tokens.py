"""Influence of single tokens of training examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay import progress
from assay.data.batches import Tokenised
from assay.influence import targets
from assay.influence.products import Vectors, train_products
from assay.influence.setting import Setting
from assay.models.walk import UnfusedOps
from assay.types import Batch

OfTokens = Callable[[Setting, Vectors, Sequence[int]], list[Float[np.ndarray, "Q T"]]]
"""Takes vectors and indices of training examples; returns a number for each vector and token of each of these."""


def deletion(setting: Setting, vectors: Vectors, indices: Sequence[int]) -> list[Float[np.ndarray, "Q T"]]:
    """By deletion: v · (g(z) − g(z without t)) w_z/N, the example with one token removed.

    The only token of an example is the example. The numbers of an example need not add up to that of the whole.
    """
    # differs from the survey, eq. 31: as printed it is 0; meant is I(z) − I(z without t), the opposite of eq. 30
    rows = [setting.train[index] for index in indices]
    whole = train_products(setting, vectors, rows)
    shorter = [without(row, token) for row in rows for token in range(len(row.ids)) if len(row.ids) > 1]
    rest = train_products(setting, vectors, shorter, "training tokens") if shorter else np.zeros((len(whole), 0))
    found, start = [], 0
    for number, (index, row) in enumerate(zip(indices, rows, strict=True)):
        stop = start + (len(row.ids) if len(row.ids) > 1 else 0)
        left = rest[:, start:stop] if stop > start else 0.0
        found.append((whole[:, number, None] - left) * _share(setting, index))
        start = stop
    return found


def gradient(setting: Setting, vectors: Vectors, indices: Sequence[int]) -> list[Float[np.ndarray, "Q T"]]:
    """By gradient: x_t · ∂(v · g(z))/∂x_t w_z/N, a first-order approximation of the embedding set to 0."""
    rows = [setting.train[index] for index in indices]
    found: list[Float[np.ndarray, "Q T"]] = [np.zeros((0, 0))] * len(rows)
    with progress.bar() as shown:
        task = shown.add_task("training tokens", total=len(rows))
        for numbers, batch in setting.batches(rows):
            products = _input_x_gradient(setting, vectors, batch).double().cpu().numpy()
            for row, number in enumerate(numbers):
                own = products[:, row, : len(rows[number].ids)]
                found[number] = own * _share(setting, indices[number])
            shown.advance(task, len(numbers))
    return found


OF_TOKENS: dict[str, OfTokens] = {"deletion": deletion, "gradient": gradient}


def without(row: Tokenised, token: int) -> Tokenised:
    """The example without one token."""
    kept = torch.arange(len(row.ids)) != token
    return replace(
        row,
        ids=row.ids[kept],
        spans=row.spans[kept],
        sentences=row.sentences[kept],
        truth=None if row.truth is None else row.truth[kept],
        subwords=None if row.subwords is None else row.subwords[kept],
    )


def _input_x_gradient(setting: Setting, vectors: Vectors, batch: Batch) -> Float[Tensor, "Q B T"]:
    parameters = {name: each for name, each in setting.parameters.items() if name in vectors}
    with torch.enable_grad():
        x = setting.network.embed(batch)
        nudge = torch.zeros_like(x, requires_grad=True)
        with UnfusedOps():
            logits = setting.network(x + nudge, batch).logits
        loss = targets.loss(logits, batch.labels).sum()
        gradients = torch.autograd.grad(loss, list(parameters.values()), create_graph=True, allow_unused=True)
        used = [
            (gradient, vectors[name])
            for name, gradient in zip(parameters, gradients, strict=True)
            if gradient is not None
        ]
        outputs, directions = [gradient for gradient, _ in used], [vector.to(gradient) for gradient, vector in used]
        (found,) = torch.autograd.grad(outputs, nudge, directions, is_grads_batched=True)
    products: Tensor = (found * x.detach()).sum(-1) * batch.mask
    return products


def _share(setting: Setting, index: int) -> float:
    return float(setting.weights[index]) / len(setting.train)
