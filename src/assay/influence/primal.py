"""Inverse of the curvature in the space of features (projected, preconditioned gradients)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from assay.influence.outputs import Outputs


@dataclass(frozen=True)
class Primal:
    """The Cholesky factor of 1 + Φᵀ W Φ."""

    factor: Float[Tensor, "S S"]

    @staticmethod
    def add(gram: Float[Tensor, "S S"], features: Float[Tensor, "n K S"], outputs: Outputs) -> None:
        """Adds the curvature of some examples."""
        rooted = (outputs.roots @ features.to(gram)).flatten(0, 1)
        gram.addmm_(rooted.T, rooted)

    @classmethod
    def of(cls, gram: Float[Tensor, "S S"]) -> Primal:
        return cls(torch.linalg.cholesky(gram + torch.eye(len(gram)).to(gram)))

    def solve(self, asked: Float[Tensor, "Q S"]) -> Float[Tensor, "S Q"]:
        return torch.cholesky_solve(asked.to(self.factor).T, self.factor)

    def scores(
        self, solved: Float[Tensor, "S Q"], features: Float[Tensor, "n K S"], outputs: Outputs, leverage: bool
    ) -> Float[Tensor, "Q n"]:
        """Scores of some examples, for queries that were solved before."""
        features = features.to(solved)
        gradients = self.gradients(self.hat(features), outputs) if leverage else outputs.gradients
        return solved.T @ torch.einsum("nks,nk->sn", features, gradients * outputs.shares[:, None])

    def own(self, features: Float[Tensor, "n K S"], outputs: Outputs, leverage: bool) -> Float[Tensor, " n"]:
        """The predicted rise of the loss of some examples, each without itself."""
        hat = self.hat(features.to(self.factor))
        gradients = self.gradients(hat, outputs) if leverage else outputs.gradients
        return torch.einsum("nk,nkl,nl->n", outputs.gradients, hat, gradients) * outputs.shares

    def hat(self, features: Float[Tensor, "n K S"]) -> Float[Tensor, "n K K"]:
        """U_i G⁻¹ U_iᵀ of each example."""
        half: Tensor = torch.linalg.solve_triangular(self.factor, features.flatten(0, 1).T, upper=False)
        half = half.T.reshape(features.shape)
        return half @ half.mT

    @staticmethod
    def gradients(hat: Float[Tensor, "n K K"], outputs: Outputs) -> Float[Tensor, "n K"]:
        """Gradients by the outputs, as if each example were missing from the curvature."""
        half = outputs.roots @ hat
        kept = torch.eye(hat.shape[1]).to(hat) - half @ outputs.roots
        plain = outputs.gradients[..., None]
        rest: Tensor = torch.linalg.solve(kept, half @ plain)
        return (plain + outputs.roots @ rest).squeeze(-1)
