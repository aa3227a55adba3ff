"""FastIF: influence functions of each query's nearest training examples alone."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor

from assay.data.batches import Tokenised
from assay.errors import AssayError
from assay.influence.functions import InfluenceFunctions
from assay.influence.inverses import Inverse, ThroughSolver
from assay.influence.nearest import Vectors as Stored
from assay.influence.products import Vectors, query_gradients, train_products
from assay.influence.representations import DECODER, layers, representations
from assay.influence.setting import Influence, Setting
from assay.influence.solvers import Lissa
from assay.influence.stories import CHANGE
from assay.stories import with_story

TOP = 10


def series() -> Inverse:
    """A LiSSA solver with one series of few examples a term.

    Guo et al. (2021), section 3.3: one long series is as good as several that are averaged; how long it must be comes
    from the damping.
    """
    return ThroughSolver(InfluenceFunctions(Lissa(batch=16, repeats=1, most=500)))


@with_story("FastIF", "Guo et al. (2021)", like=CHANGE)
@dataclass(frozen=True)
class FastIF:
    """∇f H⁻¹ g for the nearest examples to each query in one layer, 0 for all others; Guo et al. (2021).

    What is lost can be much: examples that matter need not be near. With `compared`, the full answer is found as well,
    and the notes say how many of its TOP largest scores stand among the candidates ("recall"), and how many times
    longer it took ("speed-up"). Candidates are a share of all examples, or from 1 on their number.
    """

    candidates: float | int = 0.1
    layer: str = DECODER
    distance: str = "euclidean"
    inverse: Inverse = field(default_factory=series)
    compared: bool = False
    devices: tuple[str, ...] = ()  # more than one: each reads a part of the candidates
    folder: Path | None = None  # keeps representations

    def unfit(self, setting: Setting) -> str | None:
        return None if self.layer in layers(setting.network) else f"the model has no layer {self.layer!r}"

    def __call__(self, setting: Setting) -> Influence:
        started = time.perf_counter()
        near = self.near(setting)
        searched = time.perf_counter()
        vectors = self.inverse(setting, query_gradients(setting))
        solved = time.perf_counter()
        read, indices = np.unique(near, return_inverse=True)
        products = self._products(setting, vectors, [setting.train[index] for index in read])
        scores = np.zeros((len(near), len(setting.train)))
        own = np.take_along_axis(products, indices.reshape(near.shape), 1) * setting.weights[near]
        np.put_along_axis(scores, near, own / len(setting.train), 1)
        ended = time.perf_counter()
        notes: dict[str, Any] = {
            "candidates": near.shape[1],
            "read": len(read),
            "seconds": {"search": searched - started, "solve": solved - searched, "products": ended - solved},
        }
        if self.compared:
            whole = train_products(setting, vectors) * setting.weights / len(setting.train)
            full = time.perf_counter() - ended + solved - searched
            notes |= {"recall": recall(whole, near), "speed-up": full / (ended - started)}
        return Influence(scores, notes=notes)

    def near(self, setting: Setting) -> Int[np.ndarray, "Q k"]:
        """The candidates of each query, nearest first."""
        total = len(setting.train)
        k = round(self.candidates * total) if self.candidates < 1 else round(self.candidates)
        if not 1 <= k <= total:
            raise AssayError(
                f"Candidates must be a share of the training examples, or 1 to {total}, got {self.candidates}."
            )
        rows = (setting.train, setting.queries)
        stored, asked = (representations(setting.network, each, [self.layer], self.folder)[self.layer] for each in rows)
        return Stored(stored, self.distance, device=str(setting.network.device)).nearest(asked, k).indices

    def _products(self, setting: Setting, vectors: Vectors, rows: Sequence[Tokenised]) -> Float[np.ndarray, "Q n"]:
        """Products with the gradients of the candidates, split over several devices where there are any."""
        if len(self.devices) < 2:
            return train_products(setting, vectors, rows, "candidates")
        parts = [part for part in np.array_split(np.arange(len(rows)), len(self.devices)) if len(part)]

        def one(part: Int[np.ndarray, " n"], device: str) -> Float[np.ndarray, "Q n"]:
            there = replace(setting, network=deepcopy(setting.network).to(device))
            moved: dict[str, Tensor] = {name: each.to(device) for name, each in vectors.items()}
            return train_products(there, moved, [rows[index] for index in part], "candidates")

        with ThreadPoolExecutor(len(parts)) as threads:
            pairs = zip(parts, self.devices, strict=False)
            found = [threads.submit(copy_context().run, one, part, device) for part, device in pairs]
        return np.concatenate([each.result() for each in found], 1)


def recall(whole: Float[np.ndarray, "Q N"], near: Int[np.ndarray, "Q k"], top: int = TOP) -> float:
    """The share of the largest scores of the full answer, whatever their sign, that are of candidates."""
    largest = np.argsort(-np.abs(whole), axis=1, kind="stable")[:, :top]
    chosen = np.zeros(whole.shape, bool)
    np.put_along_axis(chosen, near, True, 1)
    return float(np.take_along_axis(chosen, largest, 1).mean())
