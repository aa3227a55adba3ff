"""Influence functions: a second-order approximation of the effect of removing a training example."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay import progress
from assay.errors import unknown
from assay.influence.curvature import by_name, curvature_of, curvature_roots, flattened
from assay.influence.damping import damping_of_each
from assay.influence.products import query_gradients, train_products
from assay.influence.setting import Influence, Setting
from assay.influence.solvers import SOLVERS, Solve, Solver
from assay.influence.stories import CHANGE
from assay.stories import with_story

CURVATURES = ("gauss_newton", "hessian")
AT_ONCE = 2**26  # numbers of the gradients that are solved for together


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
        return self._solver.unfit(sum(each.numel() for each in setting.parameters.values()))

    def __call__(self, setting: Setting) -> Influence:
        solve, notes = self.prepared(setting)
        solved = solve(flattened(query_gradients(setting)))
        tries = np.stack([train_products(setting, by_name(each, setting)) for each in solved.tries])
        tries *= setting.weights / len(setting.train)
        if self.leverage:
            tries[0] += _corrections(setting, solve, solved.tries[0])
        errors = tries.std(0, ddof=1) / len(tries) ** 0.5 if len(tries) > 1 else None
        return Influence(tries.mean(0), errors=errors, notes=notes | dict(solved.notes))

    def own(self, setting: Setting) -> Float[np.ndarray, " N"]:
        """The predicted rise of each training example's own loss if it were removed."""
        solve, _ = self.prepared(setting)
        found = np.zeros(len(setting.train))
        for indices, part in _portions(setting):
            gradients = flattened(query_gradients(part))
            solved = torch.stack(solve(gradients).tries).mean(0)
            found[indices] = (gradients * solved).sum(1).double().cpu().numpy() * part.weights / len(setting.train)
            if self.leverage:
                rows = np.arange(len(indices))
                found[indices] += _corrections(part, solve, solved, len(setting.train))[rows, rows]
        return found

    def prepared(self, setting: Setting) -> tuple[Solve, dict[str, Any]]:
        """The solver, made ready for this curvature."""
        if self.damping is None:
            damping = flattened({name: each[None] for name, each in damping_of_each(setting).items()})[0]
        else:
            some = next(iter(setting.parameters.values()))
            size = sum(each.numel() for each in setting.parameters.values())
            damping = torch.full((size,), self.damping, dtype=some.dtype, device=some.device)
        notes = {"damping": float(damping.median()), "curvature": self.curvature}
        return self._solver.prepared(curvature_of(self.curvature, setting), damping), notes


def _portions(setting: Setting) -> Iterator[tuple[np.ndarray, Setting]]:
    """Slices of the training examples, as queries about their own loss."""
    size = sum(each.numel() for each in setting.parameters.values())
    step = max(1, AT_ONCE // size)
    with progress.bar() as shown:
        task = shown.add_task("training examples", total=len(setting.train))
        for start in range(0, len(setting.train), step):
            indices = np.arange(len(setting.train))[start : start + step]
            rows = [setting.train[index] for index in indices]
            labels = np.array([row.label for row in rows])
            weights = setting.weights[indices]
            yield indices, replace(setting, train=rows, queries=rows, classes=labels, target="loss", weights=weights)
            shown.advance(task, len(indices))


def _corrections(
    setting: Setting, solve: Solve, vectors: Float[Tensor, "Q P"], count: int | None = None
) -> Float[np.ndarray, "Q N"]:
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
