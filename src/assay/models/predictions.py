"""Batched predictions of a network, and their quality."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int

from assay.data.batches import Tokenised, by_tokens, collate
from assay.metrics.performance import accuracy, auc
from assay.models.textmodel import TextModel
from assay.types import Batch, Edit

EVALUATION_TOKENS = {"cpu": 16_384, "cuda": 32_768}  # read at once, whatever the number of texts


def groups(network: TextModel, rows: Sequence[Tokenised]) -> Iterator[tuple[Int[np.ndarray, " n"], Batch]]:
    """Batches of like length on the network's device, with the indices of their rows."""
    device = network.device
    lengths = np.array([len(row.ids) for row in rows])
    for group in by_tokens(lengths, EVALUATION_TOKENS.get(device.type, 16_384)):
        yield np.asarray(group), collate([rows[index] for index in group], network.classes).to(device)


@torch.no_grad()
def predict(
    network: TextModel, rows: Sequence[Tokenised], lead: Callable[[Batch], Edit] | None = None
) -> Float[np.ndarray, "N C"]:
    """The class probabilities of each row, in the order given; `lead` makes an attention edit for each batch."""
    was_training = network.training
    network.eval()
    answer = np.zeros((len(rows), network.classes))
    for group, batch in groups(network, rows):
        output = network(network.embed(batch), batch, None if lead is None else lead(batch))
        answer[group] = output.probabilities.double().cpu().numpy()
    network.train(was_training)
    return answer


def graded(
    network: TextModel, rows: Sequence[Tokenised], lead: Callable[[Batch], Edit] | None = None
) -> tuple[float, float]:
    """The AUC (averaged over classes), or the accuracy where only one class occurs; and the cross-entropy."""
    labels = np.array([row.label for row in rows])
    probabilities = predict(network, rows, lead)
    score = auc(labels, probabilities)
    if not np.isfinite(score):
        score = accuracy(labels, probabilities.argmax(-1))
    chosen = probabilities[np.arange(len(labels)), labels]
    return score, float(-np.log(np.maximum(chosen, 1e-12)).mean())
