"""Conformity: how far the nearest training examples support each class (deep k-nearest neighbours)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Int

from assay.data.batches import Tokenised
from assay.errors import AssayError
from assay.influence.nearest import Vectors
from assay.influence.representations import DECODER, representations
from assay.models.textmodel import TextModel

NEVER = 0.0
"""A threshold below which no confidence falls: the model is always believed."""


@dataclass(frozen=True)
class Conformity:
    """The share of the nearest training examples that have each class, over one or more layers.

    Papernot and McDaniel (2018), with Wallace et al. (2018): a text conforms to a class as far as its neighbours have
    it, 1 where all do. With a temperature T an example at the distance d counts exp(-d / T), as in Rajani et al.
    (2020), else all count the same.
    """

    layers: tuple[str, ...] = (DECODER,)
    k: int = 20
    distance: str = "euclidean"
    temperature: float | None = None
    approximate: bool = False
    folder: Path | None = None  # keeps representations

    def fit(self, network: TextModel, rows: Sequence[Tokenised]) -> LayerNeighbours:
        """Stores the representations of the training examples."""
        found = representations(network, rows, self.layers, self.folder)
        device = str(network.device)
        vectors = {name: Vectors(each, self.distance, self.approximate, device) for name, each in found.items()}
        return LayerNeighbours(self, network, vectors, np.array([row.label for row in rows]))


@dataclass(frozen=True)
class LayerNeighbours:
    """The representations of training examples in some layers of a network, with their labels."""

    options: Conformity
    network: TextModel
    vectors: dict[str, Vectors]
    labels: Int[np.ndarray, " N"]

    def __call__(self, rows: Sequence[Tokenised]) -> Float[np.ndarray, "Q C"]:
        """The conformity of texts to each class."""
        asked = representations(self.network, rows, self.options.layers, self.options.folder)
        return self._asked(asked, None)

    def own(self) -> Float[np.ndarray, "N C"]:
        """The conformity of the training examples themselves, none of which is its own neighbour."""
        return self._asked({name: vectors.given for name, vectors in self.vectors.items()}, np.arange(len(self.labels)))

    def _asked(
        self, asked: dict[str, Float[np.ndarray, "Q D"]], without: Int[np.ndarray, " Q"] | None
    ) -> Float[np.ndarray, "Q C"]:
        shares = []
        for name, vectors in self.vectors.items():
            found = vectors.nearest(asked[name], self.options.k, without)
            weights = weighed(found.distances, self.options.temperature)
            shares.append(votes(self.labels[found.indices], weights, self.network.classes))
        mean: Float[np.ndarray, "Q C"] = np.mean(shares, axis=0)
        return mean


def weighed(distances: Float[np.ndarray, "Q k"], temperature: float | None) -> Float[np.ndarray, "Q k"]:
    """The weight of each neighbour by its distance."""
    if temperature is None:
        return np.ones(distances.shape)
    if temperature <= 0:
        raise AssayError(f"The temperature of neighbours must be above 0, got {temperature}.")
    return np.asarray(np.exp((distances.min(1, keepdims=True) - distances) / temperature))


def votes(labels: Int[np.ndarray, "Q k"], weights: Float[np.ndarray, "Q k"], classes: int) -> Float[np.ndarray, "Q C"]:
    """The share of the neighbours of each class."""
    indices = labels + classes * np.arange(len(labels))[:, None]
    summed = np.bincount(indices.ravel(), weights.ravel(), minlength=classes * len(labels)).reshape(-1, classes)
    return np.asarray(summed / summed.sum(1, keepdims=True))


def p_values(
    conformity: Float[np.ndarray, "Q C"], calibration: Float[np.ndarray, " M"], seed: int | None = None
) -> Float[np.ndarray, "Q C"]:
    """The share of calibration examples that conform to their own label no better than the text to each class.

    Papernot and McDaniel (2018), algorithm 1. Conformity takes few values, so that many are tied: with a seed, a
    random part of the ties counts, and for texts that are like those of the calibration the p-value of the right
    class is then uniform (Vovk et al., 2005).
    """
    ordered = np.sort(calibration)
    below = np.searchsorted(ordered, conformity - 1e-9, "left")  # sums of shares differ by rounding
    upto = np.searchsorted(ordered, conformity + 1e-9, "right")
    part = 1.0 if seed is None else np.random.default_rng(seed).random(conformity.shape)
    return np.asarray((below + part * (upto - below)) / len(ordered))


def credibility(p: Float[np.ndarray, "Q C"]) -> Float[np.ndarray, " Q"]:
    """The highest p-value: how far any class is supported."""
    return np.asarray(p.max(1))


def confidence(p: Float[np.ndarray, "Q C"]) -> Float[np.ndarray, " Q"]:
    """1 less the second highest p-value: how far all other classes are ruled out."""
    return np.asarray(1 - np.sort(p, axis=1)[:, -2])


def decided(
    probabilities: Float[np.ndarray, "Q C"], conformity: Float[np.ndarray, "Q C"], threshold: float
) -> tuple[Int[np.ndarray, " Q"], Bool[np.ndarray, " Q"]]:
    """The class of each text, and where it is that of the neighbours because the model is less sure than that."""
    unsure = probabilities.max(1) < threshold
    return np.where(unsure, conformity.argmax(1), probabilities.argmax(1)), unsure


def threshold(
    probabilities: Float[np.ndarray, "Q C"], conformity: Float[np.ndarray, "Q C"], labels: Int[np.ndarray, " Q"]
) -> float:
    """The confidence below which neighbours decide, so that most texts are right; of equal ones the lowest.

    Rajani et al. (2020), section 3.2; the texts must not be those that the model learnt from.
    """
    sure = probabilities.max(1)
    gains = (conformity.argmax(1) == labels) * 1 - (probabilities.argmax(1) == labels)
    values, indices = np.unique(sure, return_inverse=True)
    gained = np.bincount(indices, gains, minlength=len(values)).cumsum()  # where all up to a value are overridden
    best = int(gained.argmax())
    if gained[best] <= 0:
        return NEVER
    return (
        float(values[best] + values[best + 1]) / 2 if best + 1 < len(values) else float(np.nextafter(values[best], 2))
    )
