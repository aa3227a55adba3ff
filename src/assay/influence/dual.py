"""The Gauss–Newton curvature over all parameters, solved in the space of the training examples' outputs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay import progress
from assay.influence.kernels import ComputedGradients, GivenGradients, GradientSource, Roots, add_products
from assay.influence.metric import diagonal, mean_damping
from assay.influence.outputs import Outputs
from assay.influence.parameter_slices import ParameterSlice, grouped, sample_gradients, sample_rows, table_sizes
from assay.influence.products import Vectors
from assay.influence.setting import Influence, Setting
from assay.influence.stories import CHANGE
from assay.influence.woodbury import Solved
from assay.stories import with_story

GIGABYTE = 2**30
MATRICES = 5  # of one number for each pair of outputs, that are held at once


@with_story("Exact Gauss–Newton influence", "Koh and Liang (2017), eq. 2; Martens (2014)", like=CHANGE)
@dataclass(frozen=True)
class DualGaussNewton:
    """Influence by a Newton step with the Gauss–Newton curvature of all parameters, exact.

    Koh and Liang (2017), eq. 2, with the curvature of Martens (2014) in place of the Hessian. With leverage, the
    removed example is missing in the curvature too, as in Pregibon (1981), which is exact for least squares.
    """

    damping: float | None = None  # none given: chosen from the training
    metric: str = "adam"  # damped as each parameter was learnt; or "plain", all alike
    leverage: bool = False
    memory: int = 8 * GIGABYTE  # bytes for gradients and for products of all training examples with each other

    def unfit(self, setting: Setting) -> str | None:
        """Too many training examples, whose products with each other are held."""
        if self._products(setting) > self.memory:
            return (
                f"has {len(setting.train):,} training examples, whose products with each other take "
                f"{self._products(setting) / GIGABYTE:.0f} GB; give more memory, or use the projected form"
            )
        return None

    def __call__(self, setting: Setting) -> Influence:
        """The scores of all training examples for the targets of all queries."""
        work = self.work(setting, ComputedGradients.queries(setting))
        return Influence(work.scores(self.leverage), notes=work.notes)

    def solve(self, setting: Setting, vectors: Vectors) -> Float[np.ndarray, "Q N"]:
        """The scores for the given vectors in place of the gradients of targets."""
        return self.work(setting, GivenGradients(vectors)).scores(self.leverage)

    def own(self, setting: Setting) -> Float[np.ndarray, " N"]:
        """The predicted rise of each training example's own loss if it were removed."""
        return self.work(setting, None).solved.own(self.leverage).cpu().numpy()

    def work(self, setting: Setting, asked: GradientSource | None) -> DualSystem:
        """The dual system: inner products of all training gradients with each other and with those asked about."""
        added = diagonal(setting, self.metric, self.damping)
        roots = {name: each.rsqrt() for name, each in added.items()}
        groups = self._groups(setting)
        start = time.perf_counter()
        with progress.bar() as shown:
            task = shown.add_task("products of gradients", total=len(groups) * len(setting.train))
            train = ComputedGradients.train(setting, lambda rows: shown.advance(task, rows))
            kernel, cross = products(train, asked, groups, roots, setting.network.device)
        speed = len(setting.train) * len(groups) / (time.perf_counter() - start)
        damping = self.damping or mean_damping(setting, added)
        notes = {"damping": damping, "metric": self.metric, "passes": len(groups), "examples per second": round(speed)}
        return DualSystem(Solved(kernel, Outputs.train(setting)), cross, notes)

    def _groups(self, setting: Setting) -> list[list[ParameterSlice]]:
        """Parameter slices that each pass reads, as memory allows."""
        some = sample_rows(setting)
        outputs = len(setting.train) * (setting.network.classes - 1)
        words = sum(len(row.ids) for row in setting.train) / max(1, sum(len(row.ids) for row in some))
        times = words * (setting.network.classes - 1)
        tables = {
            name: int(looked * times) + 1 for name, looked in table_sizes(sample_gradients(setting, some)).items()
        }
        bytes_each = max(each.element_size() for each in setting.parameters.values())
        room = max(self.memory - self._products(setting), self.memory // MATRICES) // bytes_each
        return grouped(setting.reader.shapes, tables, outputs + len(setting.queries), room)

    def _products(self, setting: Setting) -> int:
        """Bytes of the inner products of all training examples."""
        return MATRICES * 8 * (len(setting.train) * (setting.network.classes - 1)) ** 2


@dataclass(frozen=True)
class DualSystem:
    """The curvature in dual form, ready to be inverted, and the cross products with the queries."""

    solved: Solved
    cross: Float[Tensor, "Q R"]
    notes: dict[str, Any]

    def scores(self, leverage: bool) -> Float[np.ndarray, "Q N"]:
        return self.solved.scores(self.cross, leverage).cpu().numpy()


def products(
    train: GradientSource,
    asked: GradientSource | None,
    groups: Sequence[Sequence[ParameterSlice]],
    roots: Roots,
    device: torch.device,
) -> tuple[Float[Tensor, "R R"], Float[Tensor, "Q R"]]:
    """U D⁻¹ Uᵀ and F D⁻¹ Uᵀ, summed over groups of parameters."""
    kernel = torch.zeros(train.count, train.count, dtype=torch.float64, device=device)
    cross = kernel.new_zeros(0 if asked is None else asked.count, train.count)
    for group in groups:
        block = train.block(group, roots)
        add_products(kernel, block, block)
        if asked is not None and asked.count:
            add_products(cross, asked.block(group, roots, block), block)
        del block  # before the next is made: two would take twice the memory
    return kernel.triu() + kernel.triu(1).T, cross
