"""Nyström method: which training texts are landmarks, and the space they span (Williams and Seeger, 2001)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int

from assay.errors import AssayError, unknown

Column = Callable[[int], Float[np.ndarray, " N"]]
"""How alike all texts are to one of them."""


def uniform(labels: Int[np.ndarray, " N"], count: int, seed: int, column: Column) -> Int[np.ndarray, " M"]:
    """Texts drawn uniformly."""
    return np.random.default_rng(seed).permutation(len(labels))[:count]


def balanced(labels: Int[np.ndarray, " N"], count: int, seed: int, column: Column) -> Int[np.ndarray, " M"]:
    """As many texts of each class as possible."""
    order = np.random.default_rng(seed).permutation(len(labels))
    rank = np.empty(len(labels), dtype=np.int64)  # of a text among those of its class
    for label in np.unique(labels):
        own = order[labels[order] == label]
        rank[own] = np.arange(len(own))
    return order[np.argsort(rank[order], kind="stable")][:count]


def spread(labels: Int[np.ndarray, " N"], count: int, seed: int, column: Column) -> Int[np.ndarray, " M"]:
    """Texts far from one another: each drawn by its squared distance to the nearest before (k-means++).

    For kernels that are 1 for a text and itself, the squared distance is 2 − 2 K (Arthur and Vassilvitskii, 2007).
    """
    random = np.random.default_rng(seed)
    chosen = [int(random.integers(len(labels)))]
    nearest = np.full(len(labels), np.inf)
    while len(chosen) < count:
        nearest = np.minimum(nearest, np.maximum(0.0, 2 - 2 * column(chosen[-1])))
        nearest[chosen] = 0.0
        if nearest.sum() < 1e-12:  # only copies are left
            left = np.setdiff1d(np.arange(len(labels)), chosen)
            chosen += random.permutation(left)[: count - len(chosen)].tolist()
        else:
            chosen.append(int(random.choice(len(labels), p=nearest / nearest.sum())))
    return np.array(chosen)


CHOICES: dict[str, Callable[[Int[np.ndarray, " N"], int, int, Column], Int[np.ndarray, " M"]]] = {
    each.__name__: each for each in (uniform, balanced, spread)
}


def chosen(name: str, labels: Int[np.ndarray, " N"], count: int, seed: int, column: Column) -> Int[np.ndarray, " M"]:
    """Indices of `count` landmarks, or of all texts where there are fewer, in ascending order."""
    if name not in CHOICES:
        raise unknown("choice of landmarks", name, CHOICES)
    if count < 1 or not len(labels):
        raise AssayError("At least one landmark is needed, and a text that it can be.")
    return np.sort(CHOICES[name](labels, min(count, len(labels)), seed, column))


def projection(gram: Float[np.ndarray, "M M"], cutoff: float = 1e-10) -> Float[np.ndarray, "M K"]:
    """U S^-½ of K = U S Uᵀ: inner products of K(x, L) U S^-½ come nearest to the kernel.

    Directions with less than `cutoff` times the largest eigenvalue are left out; strongest first. The weaker the
    directions that are kept, the larger are the parts of landmarks that cancel each other.
    """
    values, vectors = np.linalg.eigh((gram + gram.T) / 2)
    kept = np.flatnonzero(values > cutoff * max(values[-1], 0.0))[::-1]
    if not len(kept):
        raise AssayError(
            "The landmarks have nothing in common with one another or with themselves; take another kernel."
        )
    found: Float[np.ndarray, "M K"] = vectors[:, kept] / np.sqrt(values[kept])
    return found
