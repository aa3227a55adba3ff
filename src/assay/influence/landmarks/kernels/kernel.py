"""The kernel protocol, and sums and products of kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from assay.errors import AssayError
from assay.influence.landmarks.kernels.passages import Passage

Gram = Float[np.ndarray, "N M"]


@runtime_checkable
class Kernel(Protocol):
    """A positive semidefinite similarity of two texts, 1 for a text and itself unless it is empty."""

    def fit(self, texts: Sequence[Passage]) -> Kernel:
        """The kernel with statistics of the training texts, such as document frequencies."""

    def __call__(self, left: Sequence[Passage], right: Sequence[Passage]) -> Gram: ...


def normalised(
    products: Gram, left: Float[np.ndarray, " N"], right: Float[np.ndarray, " M"]
) -> Float[np.ndarray, "N M"]:
    """Cosines from inner products and the squared norms of both sides; 0 where a norm is 0."""
    norms = np.sqrt(np.outer(left, right))
    found = np.zeros_like(products)
    np.divide(products, norms, out=found, where=norms > 0)
    return found


@dataclass(frozen=True)
class Sum:
    """The weighted mean of kernels, all alike where no weights are given."""

    parts: tuple[Kernel, ...]
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not self.parts or (self.weights and len(self.weights) != len(self.parts)):
            raise AssayError("A sum of kernels needs at least one kernel, and either no weights or one for each.")
        if any(weight < 0 for weight in self.weights) or (self.weights and not sum(self.weights)):
            raise AssayError("The weights of kernels are numbers from 0, and not all of them 0.")

    def fit(self, texts: Sequence[Passage]) -> Sum:
        return replace(self, parts=tuple(part.fit(texts) for part in self.parts))

    def __call__(self, left: Sequence[Passage], right: Sequence[Passage]) -> Gram:
        weights = self.weights or (1.0,) * len(self.parts)
        found = np.zeros((len(left), len(right)))
        for weight, part in zip(weights, self.parts, strict=True):
            found += weight / sum(weights) * part(left, right)
        return found


@dataclass(frozen=True)
class Product:
    """The product of kernels: similar where all of them are."""

    parts: tuple[Kernel, ...]

    def __post_init__(self) -> None:
        if not self.parts:
            raise AssayError("A product of kernels needs at least one kernel.")

    def fit(self, texts: Sequence[Passage]) -> Product:
        return replace(self, parts=tuple(part.fit(texts) for part in self.parts))

    def __call__(self, left: Sequence[Passage], right: Sequence[Passage]) -> Gram:
        found = np.ones((len(left), len(right)))
        for part in self.parts:
            found *= part(left, right)
        return found
