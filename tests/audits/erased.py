"""What a model answers about one text at a time when the attention to some items is erased, by its own decoder."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from assay.explainers.baselines import Random
from assay.models.network import Network
from assay.types import Batch, attended
from tests import builders


@dataclass
class Text:
    """One text of n items, and what of it the decoder reads."""

    model: Network
    states: Tensor
    weights: Tensor
    numbers: list[float]  # random ones, an item each

    def __len__(self) -> int:
        return self.weights.shape[1]

    def output(self, erased: Collection[int] = ()) -> Tensor:
        """The probabilities without these items: zeroed, renormalised, decoded anew."""
        left = self.weights.clone()
        left[0, list(erased)] = 0
        left = left / left.sum() if left.sum() > 0 else left
        return self.model.decode(self.states, left)[0].softmax(-1).detach()

    def flips(self, erased: Collection[int]) -> bool:
        return bool(self.output(erased).argmax() != self.output().argmax())

    def rankings(self) -> dict[str, list[int]]:
        """The items in the order of each ranking."""
        weights, free = self.weights[0].tolist(), self.weights.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(self.model.decode(self.states, free).softmax(-1).max(), free)
        gradients, chosen = gradient[0].tolist(), self.output().argmax()
        drops = [float(self.output()[chosen] - self.output([item])[chosen]) for item in range(len(self))]
        scores = {
            "attention": weights,
            "gradient": gradients,
            "product": [one * other for one, other in zip(gradients, weights, strict=True)],
            "random": self.numbers,
            "leave_one_out": drops,
        }
        return {name: sorted(range(len(self)), key=lambda item: (-own[item], item)) for name, own in scores.items()}


def texts(model: Network, batch: Batch, seed: int = 0) -> Iterator[Text]:
    """Each text of the batch, read alone."""
    for row, length in enumerate(batch.lengths.tolist()):
        one = batch[row : row + 1]
        one = replace(one, ids=one.ids[:, :length], mask=one.mask[:, :length], sentences=one.sentences[:, :length])
        with torch.no_grad():
            states = model.states(model.embed(one), one)
            weights = model.attend(states, one)
        count = int(attended(model, one).sum())
        yield Text(model, states, weights, Random(seed)(model, one, one.labels)[0, :count].tolist())


def model(shape: str, classes: int, bias: float = 0.0) -> Network:
    """A small random model that leans to its first class when it reads nothing."""
    found = builders.model(shape=shape, classes=classes, encoder="conv", seed=1)
    with torch.no_grad():
        found.decoder.bias[0] += bias
    return found


def batch(lengths: tuple[int, ...] = (7, 1, 4, 10, 9, 2, 8, 5, 10, 6), width: int | None = None) -> Batch:
    """Texts with sentences and questions; some of a single word or a single sentence."""
    return builders.structured(builders.batch(lengths, width=width))
