"""Random numbers that depend on the text, the seed and their place alone, whatever the batch or the device."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from assay.explainers.baselines import mixed, text_numbers
from assay.types import Batch

BITS = 53  # of a float64 below 1


def uniform(batch: Batch, seed: int, *counts: int) -> Float[Tensor, " B *N"]:
    """Uniform numbers from [0, 1) for each text, as many as `counts` say along each further axis.

    A number is the same however many others are drawn, so draws can be taken in turn and texts padded.
    """
    numbers = mixed(text_numbers(batch) + mixed(torch.tensor(seed + 1, device=batch.ids.device)))
    for count in counts:
        numbers = extended(numbers, count)
    return fractions(numbers)


def extended(numbers: Tensor, count: int) -> Tensor:
    """Each of these integers turned into a row of `count` others."""
    return mixed(numbers[..., None] + mixed(torch.arange(1, count + 1, device=numbers.device)))


def fractions(numbers: Tensor) -> Tensor:
    """The integers as numbers from [0, 1) in float64."""
    return (numbers & ((1 << BITS) - 1)).double() / (1 << BITS)
