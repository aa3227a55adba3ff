"""Logistic regression with an L2 penalty: a convex problem with one solution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy

STEPS = 200


@dataclass(frozen=True)
class Linear:
    """A linear classifier of standardised features."""

    mean: Float[Tensor, " F"]
    scale: Float[Tensor, " F"]
    weight: Float[Tensor, "F C"]
    bias: Float[Tensor, " C"]

    def __call__(self, features: Float[np.ndarray, "N F"]) -> Int[np.ndarray, " N"]:
        """The predicted class of each row."""
        return self.scores(features).argmax(1).numpy()

    def scores(self, features: Float[np.ndarray, "N F"]) -> Float[Tensor, "N C"]:
        return (torch.from_numpy(features).double() - self.mean) / self.scale @ self.weight + self.bias


def fit(
    features: Float[np.ndarray, "N F"],
    labels: Int[np.ndarray, " N"],
    classes: int,
    strength: float = 1.0,
    common: bool = False,
) -> Linear:
    """Minimises summed cross-entropy + `strength` / 2 · ‖weights‖², the bias unpenalised.

    Each feature has a variance of 1 before, or all have it together, with one scale in `common`.
    """
    given, wanted = torch.from_numpy(features).double(), torch.from_numpy(labels).long()
    mean, scale = given.mean(0), given.std(0, correction=0)
    if common:
        scale = scale.square().mean().sqrt().expand_as(scale)
    scale = torch.where(scale > 0, scale, 1)
    given = (given - mean) / scale
    weight, bias = (torch.zeros(*shape, dtype=torch.float64) for shape in ((given.shape[1], classes), (classes,)))
    found = [weight.requires_grad_(), bias.requires_grad_()]
    search = torch.optim.LBFGS(
        found,
        max_iter=STEPS,
        history_size=20,
        tolerance_grad=1e-6,
        tolerance_change=1e-10,
        line_search_fn="strong_wolfe",
    )

    def loss() -> Tensor:
        search.zero_grad()
        value = cross_entropy(given @ weight + bias, wanted) + strength / (2 * len(given)) * weight.square().sum()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    with torch.enable_grad():
        search.step(loss)  # type: ignore[no-untyped-call]
    return Linear(mean, scale, weight.detach(), bias.detach())
