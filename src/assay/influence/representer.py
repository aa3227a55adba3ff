"""Representer points: logits as sums over training examples, by the last layer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from assay.errors import AssayError
from assay.influence.head import head, headless, read_by_head
from assay.influence.setting import Influence, Setting
from assay.influence.stories import CHANGE
from assay.influence.targets import logit_gradients
from assay.stories import with_story

STEPS = 100  # of Newton's method; about ten are needed


@with_story("Representer points", "Yeh et al. (2018), theorem 3.1", like=CHANGE)
@dataclass(frozen=True)
class Representer:
    """Refits the last layer with L2, so that each logit is Σ_i α_i k(x_i, x); Yeh et al. (2018), theorem 3.1.

    Without the example its term is gone, as if all other α stayed: the change of a logit is −α_i k(x_i, x), that of
    another target follows from its gradient. differs from the paper: the layer learns the labels, not the model's
    answers.
    """

    strength: float = 1e-3  # of L2, on bias and weights alike

    def __post_init__(self) -> None:
        if not self.strength > 0:
            raise AssayError(f"The strength of L2 must be above 0, got {self.strength:g}.")

    def unfit(self, setting: Setting) -> str | None:
        """Without a last linear layer."""
        return headless(setting)

    def __call__(self, setting: Setting) -> Influence:
        last, points = head(setting), self.points(setting)
        features, logits = read_by_head(setting, setting.queries, last.weight)
        kernel = points.kernel(features)
        refitted = kernel @ points.values
        asked = logit_gradients(setting.target, torch.from_numpy(refitted), torch.from_numpy(setting.classes)).numpy()
        read = sum(setting.parameters[name].numel() for name in last.names)
        covered = read / sum(each.numel() for each in setting.parameters.values())
        agreed = float((refitted.argmax(1) == logits.argmax(1)).mean())
        notes = {"parameters": f"of the last layer alone: {', '.join(last.names)}", "decisions kept": agreed}
        return Influence(-(asked @ points.values.T) * kernel, covered, notes=notes)

    def own(self, setting: Setting) -> Float[np.ndarray, " N"]:
        """The rise of each loss without the example's own term."""
        points = self.points(setting)
        return np.asarray(-(points.gradients * points.values).sum(1) * (points.features**2).sum(1))

    def points(self, setting: Setting) -> Points:
        """Refits the last layer and expresses it by training examples."""
        last = head(setting)
        read, _ = read_by_head(setting, setting.train, last.weight)
        features = torch.from_numpy(_extended(read))
        labels = torch.tensor([row.label for row in setting.train])
        weights = torch.from_numpy(np.asarray(setting.weights / len(setting.train)))
        layer = refit(features, labels, weights, self.strength, setting.network.classes)
        rest = (features @ layer.T).softmax(-1) - F.one_hot(labels, setting.network.classes)
        values = -rest * weights[:, None] / (2 * self.strength)
        return Points(features.numpy(), rest.numpy(), values.numpy(), layer.numpy())


@dataclass(frozen=True)
class Points:
    """The refitted layer with the features, loss gradients and representer values of each training example."""

    features: Float[np.ndarray, "N F"]  # a 1 at the end, for the bias
    gradients: Float[np.ndarray, "N C"]  # of the loss, by the logits
    values: Float[np.ndarray, "N C"]  # α
    layer: Float[np.ndarray, "C F"]

    def kernel(self, read: Float[np.ndarray, "Q G"]) -> Float[np.ndarray, "Q N"]:
        """k(x_i, x) for the last layer's inputs of some texts."""
        return np.asarray(_extended(read) @ self.features.T)


def _extended(read: Float[np.ndarray, "N G"]) -> Float[np.ndarray, "N F"]:
    return np.concatenate([read, np.ones((len(read), 1))], axis=1)


def refit(
    features: Float[Tensor, "N F"],
    labels: Int[Tensor, " N"],
    weights: Float[Tensor, " N"],
    strength: float,
    classes: int,
) -> Float[Tensor, "C F"]:
    """The layer that minimises Σ_i weights[i] loss_i + strength ‖layer‖², by Newton's method."""
    layer = features.new_zeros(classes, features.shape[1])

    def height(layer: Tensor) -> Tensor:
        losses = F.cross_entropy(features @ layer.T, labels, reduction="none")
        return weights @ losses + strength * layer.square().sum()

    for _ in range(STEPS):
        shares = (features @ layer.T).softmax(-1)
        gradient = ((shares - F.one_hot(labels, classes)) * weights[:, None]).T @ features + 2 * strength * layer
        if gradient.abs().max() < 1e-12:
            break
        step, length = _newton(features, shares, weights, strength, gradient), 1.0
        fall = (step * gradient).sum()
        while height(layer - length * step) > height(layer) - 1e-4 * length * fall and length > 1e-3 and fall > 1e-14:
            length /= 2
        layer = layer - length * step
    return layer


def _newton(
    features: Float[Tensor, "N F"],
    shares: Float[Tensor, "N C"],
    weights: Float[Tensor, " N"],
    strength: float,
    gradient: Float[Tensor, "C F"],
) -> Float[Tensor, "C F"]:
    """The Newton step: the gradient times the inverse curvature, by conjugate gradients."""
    found, left = torch.zeros_like(gradient), gradient.clone()
    along, size = left.clone(), left.square().sum()
    for _ in range(4 * gradient.numel()):
        moved = shares * (features @ along.T)
        moved = (moved - shares * moved.sum(1, keepdim=True)) * weights[:, None]
        bent = moved.T @ features + 2 * strength * along
        rate = size / (along * bent).sum()
        found, left = found + rate * along, left - rate * bent
        size, before = left.square().sum(), size
        if size < 1e-20 * gradient.square().sum():
            break
        along = left + size / before * along
    return found
