"""Random scores: the baseline for every explainer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.types import Batch, Model


@dataclass(frozen=True)
class Random:
    """Uniform scores that depend on the text and the seed alone, not on the batch or the device."""

    class_free: ClassVar[bool] = True

    seed: int = 0

    def __call__(self, model: Model, batch: Batch, target: Int[Tensor, " B"]) -> Float[Tensor, "B T"]:
        positions = torch.arange(batch.ids.shape[1], device=batch.ids.device)
        text = mixed(text_numbers(batch)[:, None] + self.seed)
        bits = mixed(text + mixed(positions + 1)) & ((1 << 24) - 1)
        return (bits + 1).float() / (1 << 24) * batch.mask


def text_numbers(batch: Batch) -> Int[Tensor, " B"]:
    """A hash of each text's words and their order: the seed of everything drawn for that text."""
    return (mixed(batch.ids + _places(batch.ids.shape[1], batch.ids.device)) * batch.mask).sum(-1)


@lru_cache(maxsize=256)
def _places(count: int, device: torch.device) -> Int[Tensor, " T"]:
    """A hash of each position."""
    with torch.inference_mode(False):
        return mixed(torch.arange(1, count + 1, device=device))


def mixed(numbers: Int[Tensor, "*N"]) -> Int[Tensor, "*N"]:
    """The finaliser of splitmix64, an integer hash (Steele et al., 2014)."""
    numbers = numbers * -7046029254386353131
    numbers = (numbers ^ ((numbers >> 30) & ((1 << 34) - 1))) * -4658895280553007687
    numbers = (numbers ^ ((numbers >> 27) & ((1 << 37) - 1))) * -7723592293110705685
    return numbers ^ ((numbers >> 31) & ((1 << 33) - 1))
