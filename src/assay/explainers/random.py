"""Scores that mean nothing: what every other explainer must beat."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.types import Batch, Model


@dataclass(frozen=True)
class Random:
    """Uniform scores that depend on the text and the seed alone, not on the batch or the device."""

    seed: int = 0

    def __call__(self, model: Model, batch: Batch, target: Int[Tensor, " B"]) -> Float[Tensor, "B T"]:
        places = torch.arange(batch.ids.shape[1], device=batch.ids.device)
        words = mixed(batch.ids + mixed(places + 1)) * batch.mask
        text = mixed(words.sum(-1, keepdim=True) + self.seed)
        bits = mixed(text + mixed(places + 1)) & ((1 << 24) - 1)
        return (bits + 1).float() / (1 << 24) * batch.mask


def mixed(numbers: Int[Tensor, "*N"]) -> Int[Tensor, "*N"]:
    """Each integer turned into another that looks random (the finaliser of splitmix64; Steele et al., 2014)."""
    numbers = numbers * -7046029254386353131
    numbers = (numbers ^ ((numbers >> 30) & ((1 << 34) - 1))) * -4658895280553007687
    numbers = (numbers ^ ((numbers >> 27) & ((1 << 37) - 1))) * -7723592293110705685
    return numbers ^ ((numbers >> 31) & ((1 << 33) - 1))
