"""The base class of all classifiers: networks defined here and transformers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from assay import costs
from assay.types import Batch, Edit, Output


class TextModel(nn.Module, ABC):
    """A classifier that can be explained, audited, copied, and re-initialised part by part."""

    cascade: tuple[str, ...]
    """The parts from the output downward."""

    embedding: nn.Module
    """The table of embeddings."""

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
    def embed(self, batch: Batch) -> Float[Tensor, "B T D"]:
        """The embeddings of a batch."""

    @abstractmethod
    def forward(self, x: Float[Tensor, "B T D"], batch: Batch, edit: Edit | None = None) -> Output:
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


def _back(cost: costs.Cost, rows: int, gradient: object) -> None:
    """Counts a backward pass of that many texts."""
    cost.backward += rows
