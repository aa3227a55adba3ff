"""Influence functions: a second-order approximation of the effect of removing a training example."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay import progress
from assay.errors import AssayError, unknown
from assay.influence.curvature import CURVATURES, Flat, by_name, curvature_roots, flattened
from assay.influence.damping import damping_of_each
from assay.influence.neighbours import Vectors as Stored
from assay.influence.representations import DECODER, layers, representations
from assay.influence.setting import Indices, Influence, PerExample, Scores, Setting, Texts
from assay.influence.similarity import Vectors, query_gradients, train_products
from assay.influence.solvers import SOLVERS, Lissa, Solve, Solver
from assay.influence.stories import CHANGE
from assay.stories import with_story

AT_ONCE = 2**26  # numbers of the gradients that are solved for together
TOP = 10  # scores that the recall of FastIF is about

Inverse = Callable[[Setting, Vectors], Vectors]
"""Takes vectors; returns the inverse of the curvature of the training objective times each of them."""


@with_story("Influence functions", "Koh and Liang (2017), eq. 2; eq. 4 of the survey", like=CHANGE)
@dataclass(frozen=True)
class InfluenceFunctions:
    """∇f_qᵀ H⁻¹ ∇loss_i · weight_i / N over all parameters: Koh and Liang (2017), eq. 2; eq. 4 of the survey.

    With leverage, the removed example is missing in the curvature too: for two classes the score is divided by 1 − h_i,
    h_i = weight_i / N · a_iᵀ H⁻¹ a_i, Pregibon (1981); for more, by the block of the directions of the logits.
    """

    solver: str | Solver = "cg"
    curvature: str = "gauss_newton"
    damping: float | None = None  # none given: found from the training, for each parameter
    leverage: bool = False

    def __post_init__(self) -> None:
        if self.curvature not in CURVATURES:
            raise unknown("curvature", self.curvature, CURVATURES)
        if isinstance(self.solver, str) and self.solver not in SOLVERS:
            raise unknown("solver", self.solver, SOLVERS)

    @property
    def _solver(self) -> Solver:
        return SOLVERS[self.solver] if isinstance(self.solver, str) else self.solver

    def unfit(self, setting: Setting) -> str | None:
        """Too many parameters for the solver, or one that cannot solve for every training example."""
        if self.leverage and not self._solver.ready:
            return "is solved anew for each vector, too slow for the leverage of every example; use explicit or arnoldi"
        return self._solver.unfit(setting.size)

    def __call__(self, setting: Setting) -> Influence:
        solve, notes = self.prepared(setting)
        solved = solve(flattened(query_gradients(setting)))
        tries = np.stack([train_products(setting, by_name(each, setting)) for each in solved.tries])
        tries *= setting.shares
        if self.leverage:
            tries[0] += _corrections(setting, solve, solved.tries[0])
        errors = tries.std(0, ddof=1) / len(tries) ** 0.5 if len(tries) > 1 else None
        return Influence(tries.mean(0), errors=errors, notes=notes | dict(solved.notes))

    def own(self, setting: Setting) -> PerExample:
        """The predicted rise of each training example's own loss if it were removed."""
        solve, _ = self.prepared(setting)
        found = np.zeros(len(setting.train))
        for indices, part in _portions(setting):
            gradients = flattened(query_gradients(part))
            solved = torch.stack(solve(gradients).tries).mean(0)
            found[indices] = (gradients * solved).sum(1).double().cpu().numpy() * setting.shares[indices]
            if self.leverage:
                rows = np.arange(len(indices))
                found[indices] += _corrections(part, solve, solved, len(setting.train))[rows, rows]
        return found

    def inverse(self, setting: Setting, vectors: Vectors) -> dict[str, Tensor]:
        """The inverse of the curvature times the vectors."""
        solve, _ = self.prepared(setting)
        return by_name(torch.stack(solve(flattened(vectors)).tries).mean(0), setting)

    def prepared(self, setting: Setting) -> tuple[Solve, dict[str, Any]]:
        """The solver, made ready for this curvature."""
        if self.damping is None:
            damping = flattened({name: each[None] for name, each in damping_of_each(setting).items()})[0]
        else:
            some = next(iter(setting.parameters.values()))
            damping = torch.full((setting.size,), self.damping, dtype=some.dtype, device=some.device)
        notes = {"damping": float(damping.median()), "curvature": self.curvature}
        return self._solver.prepared(CURVATURES[self.curvature](setting), damping), notes


def _portions(setting: Setting) -> Iterator[tuple[np.ndarray, Setting]]:
    """Slices of the training examples, as queries about their own loss."""
    step = max(1, AT_ONCE // setting.size)
    with progress.bar() as shown:
        task = shown.add_task("training examples", total=len(setting.train))
        for indices in np.split(np.arange(len(setting.train)), range(step, len(setting.train), step)):
            rows = [setting.train[index] for index in indices]
            weights, labels = setting.weights[indices], setting.labels[indices]
            yield indices, replace(setting, train=rows, queries=rows, classes=labels, target="loss", weights=weights)
            shown.advance(task, len(indices))


def _corrections(setting: Setting, solve: Solve, vectors: Flat, count: int | None = None) -> Scores:
    """Leverage corrections of the scores, by the Woodbury identity."""
    count = len(setting.train) if count is None else count
    found = np.zeros((len(vectors), len(setting.train)))
    for indices, batch in setting.batches(setting.train, tokens=512):
        reading = setting.reader.read(batch)
        gradients = reading.gradients(setting.train_logit_gradients(batch, reading)).flat()
        roots = curvature_roots(reading)
        solved = solve(roots.flatten(0, 1)).tries[0].view_as(roots)
        shares = torch.from_numpy(setting.weights[indices] / count).to(roots)
        within = torch.einsum("bkp,blp->bkl", roots, solved) * shares[:, None, None]
        pull = torch.einsum("bkp,bp->bk", solved, gradients.to(solved)) * shares[:, None]
        missing = torch.eye(within.shape[1]).to(within) - within
        weights = torch.linalg.solve(missing, pull) * shares[:, None]
        found[:, indices] = (vectors @ (roots * weights[..., None]).sum(1).T).double().cpu().numpy()
    return found


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
    inverse: Inverse | None = None  # such as InfluenceFunctions("cg").inverse; none given: one LiSSA series
    compared: bool = False
    devices: tuple[str, ...] = ()  # more than one: each reads a part of the candidates
    folder: Path | None = None  # keeps representations

    def unfit(self, setting: Setting) -> str | None:
        return None if self.layer in layers(setting.network) else f"the model has no layer {self.layer!r}"

    def __call__(self, setting: Setting) -> Influence:
        started = time.perf_counter()
        near = self.near(setting)
        searched = time.perf_counter()
        vectors = (self.inverse or series)(setting, query_gradients(setting))
        solved = time.perf_counter()
        read, indices = np.unique(near, return_inverse=True)
        products = self._products(setting, vectors, [setting.train[index] for index in read])
        own = np.take_along_axis(products, indices.reshape(near.shape), 1) * setting.shares[near]
        scores = setting.zeros()
        np.put_along_axis(scores, near, own, 1)
        ended = time.perf_counter()
        notes: dict[str, Any] = {
            "candidates": near.shape[1],
            "read": len(read),
            "seconds": {"search": searched - started, "solve": solved - searched, "products": ended - solved},
        }
        if self.compared:
            whole = train_products(setting, vectors) * setting.shares
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

    def _products(self, setting: Setting, vectors: Vectors, rows: Texts) -> Float[np.ndarray, "Q n"]:
        """Products with the gradients of the candidates, split over several devices where there are any."""
        if len(self.devices) < 2:
            return train_products(setting, vectors, rows, "candidates")
        parts = [part for part in np.array_split(np.arange(len(rows)), len(self.devices)) if len(part)]

        def one(part: Indices, device: str) -> Float[np.ndarray, "Q n"]:
            there = replace(setting, network=deepcopy(setting.network).to(device))
            moved: dict[str, Tensor] = {name: each.to(device) for name, each in vectors.items()}
            return train_products(there, moved, [rows[index] for index in part], "candidates")

        with ThreadPoolExecutor(len(parts)) as threads:
            pairs = zip(parts, self.devices, strict=False)
            found = [threads.submit(copy_context().run, one, part, device) for part, device in pairs]
        return np.concatenate([each.result() for each in found], 1)


def series(setting: Setting, vectors: Vectors) -> Vectors:
    """The inverse by one LiSSA series of few examples a term; the damping says how long it must be.

    Guo et al. (2021), section 3.3: one long series is as good as several that are averaged.
    """
    return InfluenceFunctions(Lissa(batch=16, repeats=1, most=500)).inverse(setting, vectors)


def recall(whole: Scores, near: Int[np.ndarray, "Q k"], top: int = TOP) -> float:
    """The share of the largest scores of the full answer, whatever their sign, that are of candidates."""
    largest = np.argsort(-np.abs(whole), axis=1, kind="stable")[:, :top]
    chosen = np.zeros(whole.shape, bool)
    np.put_along_axis(chosen, near, True, 1)
    return float(np.take_along_axis(chosen, largest, 1).mean())
