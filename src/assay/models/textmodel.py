"""The base class of all classifiers, their batched predictions, and their copies in float64."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import nn

from assay import costs
from assay.data.batches import Tokenised, by_tokens, collate
from assay.metrics.performance import accuracy, auc
from assay.models import budget
from assay.types import Batch, Edit, Embeddings, Model, Output, TokenIds, TokenWeights


class TextModel(nn.Module, ABC):
    """A classifier that can be explained, audited, copied, and re-initialised part by part."""

    cascade: tuple[str, ...]
    """The parts from the output downward."""

    embedding: nn.Module
    """The table of embeddings."""

    pretrained: ClassVar[bool] = False
    """Whether it is a transformer of the library, which stays in its own precision."""

    @property
    @abstractmethod
    def classes(self) -> int:
        """The number of classes."""

    @property
    @abstractmethod
    def paired(self) -> bool:
        """Whether it takes a question beside a text."""

    @property
    @abstractmethod
    def ordinary(self) -> int:
        """The first id of an ordinary word; those before it are special tokens."""

    @property
    @abstractmethod
    def facts(self) -> dict[str, str]:
        """For a report: its "description", its "shape", and the "items" that are attended to."""

    @abstractmethod
    def embed(self, batch: Batch) -> Embeddings:
        """The embeddings of a batch."""

    @abstractmethod
    def forward(self, x: Embeddings, batch: Batch, edit: Edit | None = None) -> Output:
        """The output for embeddings, with the attention edited."""

    @abstractmethod
    def part(self, name: str) -> nn.Module:
        """The module with this name in the cascade."""

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    @property
    def parameter_count(self) -> int:
        """The number of parameters."""
        return sum(parameter.numel() for parameter in self.parameters())

    def counted(self, output: Output) -> Output:
        """Adds this pass, and a backward pass through it, to the current cost counter; returns the output."""
        if (cost := costs.current()) is not None:
            rows = len(output.logits)
            cost.forward += rows
            if output.logits.requires_grad:
                hook: Any = output.logits.register_hook
                hook(partial(_back, cost, rows))  # on a GPU, called by another thread: it must know whose count it is
        return output


class WordItems:
    """What a model that pools words, not sentences, says of its items: each is a word."""

    def items(self, batch: Batch) -> TokenIds:
        return torch.arange(batch.ids.shape[1], device=batch.ids.device).expand_as(batch.ids)

    def within(self, x: Embeddings, batch: Batch) -> TokenWeights:
        return batch.mask.to(x.dtype)


def _back(cost: costs.Cost, rows: int, gradient: object) -> None:
    """Counts a backward pass of that many texts."""
    cost.backward += rows


@contextmanager
def evaluating(network: nn.Module) -> Iterator[None]:
    """Context manager: the network is in evaluation mode, and afterwards in the mode it was in."""
    was_training = network.training
    network.eval()
    try:
        yield
    finally:
        network.train(was_training)


def groups(network: TextModel, rows: Sequence[Tokenised]) -> Iterator[tuple[Int[np.ndarray, " n"], Batch]]:
    """Batches of like length on the network's device, with the indices of their rows."""
    device = network.device
    lengths = np.array([len(row.ids) for row in rows])
    for group in by_tokens(lengths, budget.room(device, "prediction")):
        yield np.asarray(group), collate([rows[index] for index in group], network.classes).to(device)


@torch.no_grad()
def predict(
    network: TextModel, rows: Sequence[Tokenised], lead: Callable[[Batch], Edit] | None = None
) -> Float[np.ndarray, "N C"]:
    """The class probabilities of each row, in the order given; `lead` makes an attention edit for each batch."""
    answer = np.zeros((len(rows), network.classes))
    with evaluating(network):
        for group, batch in groups(network, rows):
            output = network(network.embed(batch), batch, None if lead is None else lead(batch))
            answer[group] = output.probabilities.double().cpu().numpy()
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


WITHOUT_DOUBLE = ("mps",)


def doubled(network: TextModel) -> TextModel:
    """A copy of the network in float64; a pretrained transformer, or a network in half precision, unchanged.

    In float32 an effect below the rounding of the answer has any rank (docs/precision.md).
    """
    pretrained = any(getattr(part, "pretrained", False) for part in network.modules())
    single = all(weight.dtype == torch.float32 for weight in network.parameters())
    if pretrained or not single or network.device.type in WITHOUT_DOUBLE:
        return network
    return deepcopy(network).double()


def in_double(model: Model) -> bool:
    """Whether all weights are in float64; a model without weights depends on its own code."""
    weights = model.parameters() if isinstance(model, nn.Module) else ()
    return all(weight.dtype == torch.float64 for weight in weights)
