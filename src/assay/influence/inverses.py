"""Inverse-curvature–vector products over all parameters, also for vectors from outside the training texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from assay import progress
from assay.influence import kronecker
from assay.influence.curvature import by_name, flattened
from assay.influence.dual import DualGaussNewton, DualSystem
from assay.influence.functions import InfluenceFunctions
from assay.influence.kernels import GivenGradients
from assay.influence.metric import diagonal
from assay.influence.outputs import directions
from assay.influence.products import Vectors
from assay.influence.setting import Setting
from assay.models.walk import UnfusedOps

Inverse = Callable[[Setting, Vectors], Vectors]
"""Takes vectors; returns the inverse of the curvature of the training objective times each of them."""

AFFORDABLE = {"cpu": 2e12, "cuda": 2e14}  # multiplications of training examples with each other


@dataclass(frozen=True)
class ThroughDual:
    """G⁻¹ v = D⁻¹ (v − Uᵀ S M⁻¹ S U D⁻¹ v): exact, solved in the space of the training outputs."""

    dual: DualGaussNewton = field(default_factory=DualGaussNewton)

    def __call__(self, setting: Setting, vectors: Vectors) -> dict[str, Tensor]:
        work = self.dual.work(setting, GivenGradients(vectors))
        shares = _led_back(setting, _coefficients(work))
        damping = work.notes["damping"] if self.dual.metric == "plain" else self.dual.damping  # not chosen anew
        divided = diagonal(setting, self.dual.metric, damping)
        return {name: ((each - shares[name]) / divided[name]).to(each) for name, each in vectors.items()}


@dataclass(frozen=True)
class ThroughSolver:
    """By a linear solver: conjugate gradients, LiSSA, Arnoldi or an explicit inverse."""

    method: InfluenceFunctions = field(default_factory=InfluenceFunctions)

    def __call__(self, setting: Setting, vectors: Vectors) -> dict[str, Tensor]:
        solve, _ = self.method.prepared(setting)
        return by_name(torch.stack(solve(flattened(vectors)).tries).mean(0), setting)


@dataclass(frozen=True)
class ThroughKronecker:
    """By EK-FAC: the curvature of each layer from that of its inputs and outputs; for very many examples."""

    method: kronecker.Kronecker = field(default_factory=kronecker.Kronecker)

    def __call__(self, setting: Setting, vectors: Vectors) -> dict[str, Tensor]:
        _, blocks = self.method.damped(setting)
        return kronecker.solved(blocks, vectors)


def affordable(setting: Setting, vectors: Vectors) -> Vectors:
    """The exact inverse where it takes seconds to minutes, else EK-FAC."""
    outputs = len(setting.train) * (setting.network.classes - 1)
    work = outputs**2 * sum(each.numel() for each in setting.parameters.values())
    exact = work <= AFFORDABLE.get(setting.network.device.type, 2e12) and DualGaussNewton().unfit(setting) is None
    return (ThroughDual() if exact else ThroughKronecker())(setting, vectors)


def _coefficients(work: DualSystem) -> Float[Tensor, "Q N K"]:
    """S M⁻¹ S U D⁻¹ v for each vector v."""
    roots = work.solved.outputs.roots
    rooted = torch.einsum("nkj,qnj->qnk", roots, work.cross.view(len(work.cross), *roots.shape[:2]))
    inner = torch.cholesky_solve(rooted.flatten(1).T, work.solved.factor).T
    return torch.einsum("nkj,qnj->qnk", roots, inner.reshape(rooted.shape))


def _led_back(setting: Setting, coefficients: Float[Tensor, "Q N K"]) -> dict[str, Tensor]:
    """Uᵀ c for each row of coefficients, by backward passes over all training examples at once."""
    parameters, network = setting.parameters, setting.network
    basis = directions(network.classes).to(coefficients)
    found = {
        name: torch.zeros(len(coefficients), *each.shape, dtype=torch.float64, device=each.device)
        for name, each in parameters.items()
    }
    with progress.bar() as shown:
        task = shown.add_task("training examples", total=len(setting.train))
        for indices, batch in setting.batches(setting.train):
            with torch.enable_grad(), UnfusedOps():
                logits = network(network.embed(batch), batch).logits
            gradients = (coefficients[:, torch.from_numpy(indices).to(basis.device)] @ basis.T).to(logits)
            back = torch.autograd.grad(
                logits, list(parameters.values()), gradients, is_grads_batched=True, materialize_grads=True
            )
            for total, part in zip(found.values(), back, strict=True):
                total += part
            shown.advance(task, len(indices))
    return found
