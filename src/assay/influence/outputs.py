"""Gradient and curvature of the loss at the logits for each training example, in an orthonormal basis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.influence.setting import Setting


def directions(classes: int) -> Float[Tensor, "C K"]:
    """Orthonormal basis of logit changes that sum to 0 (softmax ignores a constant), one less than classes."""
    basis = torch.zeros(classes, classes - 1, dtype=torch.float64)
    for index in range(1, classes):
        basis[:index, index - 1] = 1 / (index * (index + 1)) ** 0.5
        basis[index, index - 1] = -index / (index * (index + 1)) ** 0.5
    return basis


@dataclass(frozen=True)
class Outputs:
    """Gradient, curvature and its root by the logits for each of N training examples, in K directions."""

    gradients: Float[Tensor, "N K"]  # of the loss, without its weight
    curvature: Float[Tensor, "N K K"]  # of the loss, times its weight / N
    roots: Float[Tensor, "N K K"]  # of that, symmetric
    shares: Float[Tensor, " N"]  # weight / N

    @classmethod
    def of(
        cls, logits: Float[Tensor, "N C"], labels: Int[np.ndarray, " N"], shares: Float[np.ndarray, " N"]
    ) -> Outputs:
        """From logits and labels; the shares are weights / the number of all training examples."""
        device, basis = logits.device, directions(logits.shape[1])
        probabilities = logits.double().cpu().softmax(-1)
        gradients = probabilities - torch.nn.functional.one_hot(torch.from_numpy(labels), logits.shape[1])
        share = torch.from_numpy(np.asarray(shares, dtype=np.float64))
        whole = torch.diag_embed(probabilities) - probabilities[:, :, None] * probabilities[:, None]
        curvature = share[:, None, None] * (basis.T @ whole @ basis)
        sizes, axes = torch.linalg.eigh(curvature)
        roots = axes * sizes.clamp(min=0).sqrt()[:, None] @ axes.mT
        return cls(*(each.to(device) for each in (gradients @ basis, curvature, roots, share)))

    @classmethod
    def train(cls, setting: Setting) -> Outputs:
        """Of all training examples, by a forward pass over them."""
        labels = np.array([row.label for row in setting.train])
        return cls.of(train_logits(setting), labels, setting.weights / len(setting.train))


def train_logits(setting: Setting) -> Float[Tensor, "N C"]:
    """The logits of all training examples."""
    network = setting.network
    found = torch.zeros(len(setting.train), network.classes, dtype=torch.float64, device=network.device)
    with torch.no_grad():
        for indices, batch in setting.batches(setting.train):
            logits = network(network.embed(batch), batch).logits
            found[torch.from_numpy(indices).to(found.device)] = logits.double()
    return found
