"""Nearest-neighbour search over vectors: exact, or in a navigable small-world graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.errors import AssayError, unknown

DISTANCES = ("cosine", "euclidean")
AT_ONCE = 2**25  # distances held at a time
BREADTH, LINKS, BUILT = 400, 32, 400  # of a walk, of an index in the graph, of its building


@dataclass(frozen=True)
class NearestVectors:
    """Indices of the nearest vectors to each query, nearest first, and their distances."""

    indices: Int[np.ndarray, "Q k"]
    distances: Float[np.ndarray, "Q k"]


@dataclass(frozen=True)
class Vectors:
    """An index of vectors that can be searched by one of the DISTANCES.

    "cosine" is 1 less the cosine, from 0 to 2. "euclidean" divides each dimension by its standard deviation over the
    vectors, and the distance by the root of twice the number of dimensions: of two vectors drawn from them, the mean
    square is 1.
    """

    given: Float[np.ndarray, "N D"]
    distance: str = "cosine"
    approximate: bool = False
    device: str = "cpu"
    breadth: int = field(default=BREADTH)  # of the walk, where it is one: more find more

    def __post_init__(self) -> None:
        if self.distance not in DISTANCES:
            raise unknown("distance", self.distance, DISTANCES)

    @cached_property
    def scale(self) -> Float[np.ndarray, " D"]:
        """The divisor of each dimension."""
        spread = self.given.std(0, dtype=np.float64) * np.sqrt(2 * self.given.shape[1])
        return np.where(spread > 0, spread, np.inf).astype(np.float32)  # one that never varies tells nothing apart

    def ready(self, vectors: Float[np.ndarray, "Q D"]) -> Float[Tensor, "Q D"]:
        """The vectors transformed so that plain Euclidean distance applies; half its square is the cosine's."""
        if self.distance == "euclidean":
            scaled = vectors / self.scale
        else:
            scaled = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-30)
        return torch.from_numpy(np.ascontiguousarray(scaled, np.float32)).to(self.device)

    @cached_property
    def stored(self) -> Float[Tensor, "N D"]:
        return self.ready(self.given)

    def nearest(
        self, queries: Float[np.ndarray, "Q D"], k: int, without: Int[np.ndarray, " Q"] | None = None
    ) -> NearestVectors:
        """The k nearest to each query; `without` is one index for each query to leave out, such as its own."""
        most = len(self.given) - (without is not None)
        if not 1 <= k <= most:
            raise AssayError(f"The number of neighbours must be from 1 to {most}, got {k}.")
        asked = self.ready(queries)
        search = self._walked if self.approximate else self._compared
        indices = [
            search(part, k, None if without is None else without[start : start + len(part)])
            for start, part in self._parts(asked)
        ]
        return self._measured(asked, np.concatenate(indices))

    def _parts(self, asked: Float[Tensor, "Q D"]) -> list[tuple[int, Float[Tensor, "q D"]]]:
        step = max(1, AT_ONCE // len(self.given))
        return [(start, asked[start : start + step]) for start in range(0, len(asked), step)]

    def _compared(
        self, asked: Float[Tensor, "q D"], k: int, without: Int[np.ndarray, " q"] | None
    ) -> Int[np.ndarray, "q k"]:
        """By all distances."""
        near = asked @ self.stored.T - self.stored.square().sum(1) / 2
        if without is not None:
            near[torch.arange(len(asked)), torch.from_numpy(without).to(near.device)] = -torch.inf
        return near.topk(k, dim=1).indices.cpu().numpy()

    def _walked(
        self, asked: Float[Tensor, "q D"], k: int, without: Int[np.ndarray, " q"] | None
    ) -> Int[np.ndarray, "q k"]:
        """By graph search."""
        more = k + (without is not None)
        indices = self.graph.search(asked.cpu().numpy(), more, threads=1).keys.astype(np.int64).reshape(-1, more)
        if without is None:
            return np.asarray(indices)
        last = (indices == without[:, None]).argsort(1, kind="stable")  # the one that does not count, or the farthest
        return np.asarray(np.take_along_axis(indices, last, 1)[:, :k])

    @cached_property
    def graph(self) -> Any:
        """The navigable small world (Malkov and Yashunin, 2016), built deterministically."""
        try:
            library = import_module("usearch.index")
        except ImportError as lacking:
            raise AssayError(
                "An approximate search needs the package usearch; install assay with the extra 'ann'."
            ) from lacking
        graph = library.Index(
            ndim=self.given.shape[1],
            metric="l2sq",
            dtype="f32",
            connectivity=LINKS,
            expansion_add=BUILT,
            expansion_search=self.breadth,
        )
        graph.add(np.arange(len(self.given)), self.stored.cpu().numpy(), threads=1)
        return graph

    def _measured(self, asked: Float[Tensor, "Q D"], indices: Int[np.ndarray, "Q k"]) -> NearestVectors:
        """Exact distances by differences, which keep precision for near vectors, and the indices in their order."""
        distances = np.zeros(indices.shape)
        step = max(1, AT_ONCE // (indices.shape[1] * asked.shape[1]))
        for start in range(0, len(asked), step):
            part = slice(start, start + step)
            apart = asked[part, None] - self.stored[torch.from_numpy(indices[part]).to(asked.device)]
            distances[part] = apart.double().square().sum(-1).cpu().numpy()
        distances = distances / 2 if self.distance == "cosine" else np.sqrt(distances)
        order = np.lexsort((indices, distances))  # of equal ones the earlier first
        return NearestVectors(np.take_along_axis(indices, order, 1), np.take_along_axis(distances, order, 1))
