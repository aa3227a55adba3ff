"""Concept activation vectors: concepts as directions in a layer, and gradients along them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay import progress
from assay.data.batches import Tokenised
from assay.models import logistic
from assay.models.steering import steered
from assay.models.textmodel import TextModel, groups

HELD_OUT = 1 / 3  # of the examples, to see how well a direction tells them apart


@dataclass(frozen=True)
class Direction:
    """A concept as a unit vector in a layer, and its accuracy on held-out examples."""

    level: str
    vector: Float[Tensor, " M"]
    accuracy: float


def direction(
    inside: Float[np.ndarray, "N M"],
    outside: Float[np.ndarray, "O M"],
    level: str,
    strength: float,
    chance: np.random.Generator,
) -> Direction:
    """Logistic regression between vectors outside and inside the concept; a third is held out to test it."""
    features = np.concatenate([outside, inside])
    labels = np.repeat([0, 1], [len(outside), len(inside)])
    order = chance.permutation(len(labels))
    held, learnt = np.split(order, [int(HELD_OUT * len(labels))])
    if len(set(labels[learnt])) < 2:  # of very few examples
        learnt = order
    fitted = logistic.fit(features[learnt], labels[learnt], 2, strength, common=True)
    weight = fitted.weight[:, 1] - fitted.weight[:, 0]
    right = float((fitted(features[held]) == labels[held]).mean()) if len(held) else float("nan")
    return Direction(level, weight / weight.norm().clamp(min=1e-30), right)


def vectors(network: TextModel, rows: Sequence[Tokenised], level: str) -> Float[np.ndarray, "N M"]:
    """The mean hidden state of each text in a layer, in the order given."""
    return _read(network, rows, level, None)


def sensitivities(network: TextModel, rows: Sequence[Tokenised], level: str, target: int) -> Float[np.ndarray, "N M"]:
    """The gradient of the class's logit by a shift of the layer at all words of each text, in the order given.

    Its inner product with a vector is the directional derivative; Kim et al. (2018), equation 1.
    """
    return _read(network, rows, level, target)


def score(gradients: Float[np.ndarray, "N M"], towards: Direction) -> float:
    """TCAV score: the share of texts whose logit rises along the direction; Kim et al. (2018), equation 2."""
    return float((gradients @ towards.vector.numpy() > 0).mean())


def _read(network: TextModel, rows: Sequence[Tokenised], level: str, target: int | None) -> Float[np.ndarray, "N M"]:
    was_training = network.training
    network.eval()
    found: dict[int, np.ndarray] = {}
    with progress.bar() as shown:
        task = shown.add_task("concepts", total=len(rows))
        for indices, batch in groups(network, rows):
            at = steered(network, batch, level)
            part = at.mean
            if target is not None:
                (gradient,) = torch.autograd.grad(at.logits[:, target].sum(), at.shift)
                part = gradient.sum(1)
            found |= dict(zip(indices.tolist(), part.double().cpu().numpy(), strict=True))
            shown.advance(task, len(indices))
    network.train(was_training)
    return np.stack([found[index] for index in range(len(rows))])
