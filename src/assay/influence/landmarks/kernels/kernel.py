"""What a kernel is: how alike two texts are, as an inner product in some space."""

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
    """A positive semidefinite function of two texts, 1 for a text and itself wherever there is anything to compare."""

    def fit(self, texts: Sequence[Passage]) -> Kernel:
        """The kernel with what it must know of the texts that are learnt from, such as which words are rare."""

    def __call__(self, left: Sequence[Passage], right: Sequence[Passage]) -> Gram: ...


def normalised(
    products: Gram, left: Float[np.ndarray, " N"], right: Float[np.ndarray, " M"]
) -> Float[np.ndarray, "N M"]:
    """Cosines from inner products and the squared norms of both sides; 0 where one side is nothing."""
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
    """The product of kernels: texts are alike where all of them say so."""

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
