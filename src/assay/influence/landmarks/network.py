"""Landmark network: Nyström projection of similarities, and a feed-forward network above (Croce et al., 2018)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from assay.errors import AssayError, unknown
from assay.influence.landmarks.kernels.vectors import likeness, mean_vectors

ACTIVATIONS = {"relu": torch.relu, "tanh": torch.tanh}


@dataclass(frozen=True)
class Layers:
    """Options of the layers above the similarities; without biases, relevances of all landmarks sum to the logit."""

    hidden: tuple[int, ...] = (64,)  # none: the logits are linear in the space of the landmarks
    activation: str = "relu"
    bias: bool = False
    # differs from Croce et al. (2018), who take likenesses as they are: most of them is what all texts have in common.
    centred: bool = True  # what counts is how much more alike a text is than a training text is on average
    frozen: bool = False  # the way into the space of the landmarks is not trained
    dropout: float = 0.2

    def __post_init__(self) -> None:
        if self.activation not in ACTIVATIONS:
            raise unknown("activation", self.activation, ACTIVATIONS)
        if any(size < 1 for size in self.hidden) or not 0 <= self.dropout < 1:
            raise AssayError("Hidden layers have sizes from 1, and dropout is a share from 0 to below 1.")


class LandmarkNetwork(nn.Module):
    """Logits from similarities to one or several sets of landmarks, each with a Nyström layer of its own.

    `seen` are likenesses that are usual; without any, likenesses are taken as they are.
    """

    usual: Tensor
    scale: Tensor

    def __init__(
        self,
        projections: Sequence[Float[Tensor, "_ _"]],
        classes: int,
        layers: Layers,
        seen: Float[Tensor, "N M"] | None = None,
    ) -> None:
        super().__init__()
        self.layers, self.sizes = layers, [len(each) for each in projections]
        self.projections = nn.ParameterList(
            [nn.Parameter(each, requires_grad=not layers.frozen) for each in projections]
        )
        sizes = [sum(each.shape[1] for each in projections), *layers.hidden, classes]
        self.linear = nn.ModuleList([nn.Linear(a, b, bias=layers.bias) for a, b in pairwise(sizes)])
        none = projections[0].new_zeros(sum(self.sizes))
        self.register_buffer("usual", none if seen is None or not layers.centred else seen.mean(0))
        self.register_buffer("scale", none.new_ones(()))
        if seen is not None:  # layers start for numbers of about 1
            with torch.no_grad():
                self.scale = self.projected(seen).square().mean().clamp(min=1e-12).rsqrt()

    @property
    def weights(self) -> list[Float[Tensor, "_ _"]]:
        """The matrices of the layers above the space of the landmarks."""
        return [each.weight for each in self.linear if isinstance(each, nn.Linear)]

    def projected(self, likeness: Float[Tensor, "B M"]) -> Float[Tensor, "B K"]:
        """The texts in the Nyström space of the landmarks."""
        parts = (likeness - self.usual).split(self.sizes, dim=1)  # type: ignore[no-untyped-call]
        found = [part @ each for part, each in zip(parts, self.projections, strict=True)]
        return torch.cat(found, dim=1) * self.scale

    def forward(self, likeness: Float[Tensor, "B M"]) -> Float[Tensor, "B C"]:
        x = self.projected(likeness)
        for number, linear in enumerate(self.linear):
            if number:
                x = F.dropout(ACTIVATIONS[self.layers.activation](x), self.layers.dropout, self.training)
            x = linear(x)
        return x


class TrainedVectors(nn.Module):
    """Similarity of texts to landmarks by mean word vectors that are trained with the network above."""

    ids: Tensor
    mask: Tensor

    def __init__(
        self,
        table: Float[Tensor, "V D"],
        ids: Int[Tensor, "M T"],
        mask: Bool[Tensor, "M T"],
        shape: str = "cosine",
        width: float = 1.0,
    ) -> None:
        super().__init__()
        self.table, self.shape, self.width = nn.Parameter(table), shape, width
        self.register_buffer("ids", ids, persistent=False)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, ids: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B M"]:
        texts, landmarks = mean_vectors(self.table, ids, mask), mean_vectors(self.table, self.ids, self.mask)
        return likeness(texts, landmarks, self.shape, self.width)
