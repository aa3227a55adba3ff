"""What every classifier here has in common, whoever made it."""

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
    """A classifier that can be explained, audited, copied, and drawn anew part by part."""

    cascade: tuple[str, ...]
    """The parts from the output downward."""

    embedding: nn.Module
    """The table of embeddings."""

    @property
    @abstractmethod
    def classes(self) -> int:
        """How many classes it tells apart."""

    @property
    @abstractmethod
    def paired(self) -> bool:
        """Whether it can read a question beside a text."""

    @property
    @abstractmethod
    def ordinary(self) -> int:
        """The first id that stands for a word; those before it are special."""

    @property
    @abstractmethod
    def facts(self) -> dict[str, str]:
        """For a report: its "description", its "shape", and the "items" that are attended to."""

    @abstractmethod
    def embed(self, batch: Batch) -> Float[Tensor, "B T D"]:
        """The embeddings of a batch."""

    @abstractmethod
    def forward(self, x: Float[Tensor, "B T D"], batch: Batch, edit: Edit | None = None) -> Output:
        """The answer for embeddings, with the attention edited."""

    @abstractmethod
    def part(self, name: str) -> nn.Module:
        """The part with this name in the cascade."""

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    @property
    def parameter_count(self) -> int:
        """The number of parameters."""
        return sum(parameter.numel() for parameter in self.parameters())

    def counted(self, output: Output) -> Output:
        """The output; where somebody counts passes, this one is counted, and so is a way back through it."""
        if (cost := costs.current()) is not None:
            rows = len(output.logits)
            cost.forward += rows
            if output.logits.requires_grad:
                hook: Any = output.logits.register_hook
                hook(partial(_back, cost, rows))  # on a GPU, called by another thread: it must know whose count it is
        return output


def _back(cost: costs.Cost, rows: int, gradient: object) -> None:
    """Counts a way back through that many texts."""
    cost.backward += rows
