"""Adam as PyTorch computes it, and the backward pass through one of its steps, for many targets at once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

SLACK = 1e-6  # that PyTorch adds to the norm of a gradient before it clips


@dataclass(frozen=True)
class Moments:
    """A parameter with Adam's running means: of gradients, of their squares, and the largest of the latter (amsgrad).

    Gradients of targets with respect to these (adjoints) have the same form, with one more axis in front.

    Adjoints by all of these have the same form, with one more axis in front.
    """

    value: Tensor
    mean: Tensor
    square: Tensor
    highest: Tensor
    steps: int = 0


@dataclass(frozen=True)
class Rule:
    """Adam (Kingma and Ba, 2015) with amsgrad (Reddi et al., 2018): its options for one parameter."""

    rate: float
    betas: tuple[float, float]
    smallest: float  # is added to the root of the squares
    decay: float

    @classmethod
    def of(cls, group: Mapping[str, Any]) -> Rule:
        """From a parameter group of PyTorch's optimiser."""
        return cls(group["lr"], tuple(group["betas"]), group["eps"], group["weight_decay"])

    def step(self, before: Moments, gradient: Tensor) -> Moments:
        """Parameter and moments after one step; `gradient` is clipped, and without weight decay."""
        decayed = gradient + self.decay * before.value
        mean = before.mean.lerp(decayed, 1 - self.betas[0])
        square = self.betas[1] * before.square + (1 - self.betas[1]) * decayed.square()
        highest = torch.maximum(before.highest, square)
        length, root = self._corrections(before.steps + 1)
        value = before.value - length * mean / (highest.sqrt() / root + self.smallest)
        return Moments(value, mean, square, highest, before.steps + 1)

    def backward(self, before: Moments, after: Moments, gradient: Tensor, adjoints: Moments) -> tuple[Moments, Tensor]:
        """Backward pass of one step: adjoints before it, but for the path through the gradient, and the gradient's."""
        length, root = self._corrections(after.steps)
        deviation = after.highest.sqrt()
        spread = deviation / root + self.smallest
        moved = length * adjoints.value / spread
        mean = adjoints.mean - moved
        # a square of 0 belongs to what never had a gradient, so nothing goes through its root
        steep = torch.where(after.highest > 0, 0.5 / (root * deviation), 0.0)
        highest = adjoints.highest + moved * (after.mean / spread * steep)
        risen = after.highest > before.highest
        square = adjoints.square + highest * risen
        decayed = gradient + self.decay * before.value
        by_gradient = (1 - self.betas[0]) * mean + 2 * (1 - self.betas[1]) * decayed * square
        value = adjoints.value + self.decay * by_gradient
        return Moments(value, self.betas[0] * mean, self.betas[1] * square, highest * ~risen), by_gradient

    def _corrections(self, steps: int) -> tuple[float, float]:
        """Bias corrections after so many steps: the step length, and the factor of the square root."""
        return self.rate / (1 - self.betas[0] ** steps), math.sqrt(1 - self.betas[1] ** steps)


Tensors = Mapping[str, Tensor]


def shrinkage(gradients: Tensors, limit: float | None) -> Float[Tensor, S] | float:
    """Gradient clipping: the factor of each of S networks' gradients [S, ...], 1 where within the limit."""
    return 1.0 if limit is None else (limit / (norms(gradients) + SLACK)).clamp(max=1.0)


def norms(gradients: Tensors) -> Float[Tensor, S]:
    """The norm of all gradients together, for each network."""
    found: Tensor = torch.stack([each.flatten(1).norm(dim=1) for each in gradients.values()]).norm(dim=0)
    return found


def clipping_backward(gradients: Tensors, adjoints: Tensors, limit: float | None) -> dict[str, Tensor]:
    """Backward pass of gradient clipping: adjoints [Q, ...] of raw gradients, from those of clipped ones."""
    if limit is None:
        return dict(adjoints)
    norm = norms({name: each[None] for name, each in gradients.items()})[0]
    share = limit / (norm + SLACK)
    if share >= 1:
        return dict(adjoints)
    along = torch.stack([adjoints[name].flatten(1) @ each.flatten() for name, each in gradients.items()]).sum(0)
    pull = along * share / ((norm + SLACK) * norm)
    return {name: share * adjoints[name] - pull.view(-1, *[1] * each.dim()) * each for name, each in gradients.items()}
