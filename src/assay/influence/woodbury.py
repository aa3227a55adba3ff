"""Inverse curvature in dual form (Woodbury): U is the Jacobian by outputs, W their curvature, K = U D⁻¹ Uᵀ."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from assay.influence.outputs import Outputs

Blocks = Float[Tensor, "N K K"]


@dataclass(frozen=True)
class Solved:
    """The factorised dual system of G = Uᵀ W U + D; S is the root of W, and M = 1 + S K S."""

    kernel: Float[Tensor, "R R"]
    outputs: Outputs

    @cached_property
    def half(self) -> Float[Tensor, "R R"]:
        """S K."""
        return _times(self.outputs.roots, self.kernel)

    @cached_property
    def factor(self) -> Float[Tensor, "R R"]:
        """The Cholesky factor of M."""
        whole = _times(self.outputs.roots, self.half.T)
        whole.diagonal().add_(1)
        factor: Tensor = torch.linalg.cholesky(whole)
        return factor

    @cached_property
    def inverse(self) -> Float[Tensor, "R R"]:
        """M⁻¹."""
        return torch.cholesky_inverse(self.factor)

    def scores(self, cross: Float[Tensor, "Q R"], leverage: bool) -> Float[Tensor, "Q N"]:
        """F G⁻¹ gᵢ · weight / N from F D⁻¹ Uᵀ, where g = Uᵀ r is the gradient of a loss."""
        return _against(self.reached(cross), self.gradients(leverage)) * self.outputs.shares

    def reached(self, cross: Float[Tensor, "Q R"]) -> Float[Tensor, "Q R"]:
        """F G⁻¹ Uᵀ = F D⁻¹ Uᵀ (1 + W K)⁻¹."""
        rooted = _times(self.outputs.roots, cross.T)
        return cross - torch.cholesky_solve(rooted, self.factor).T @ self.half

    def gradients(self, leverage: bool) -> Float[Tensor, "N K"]:
        """Gradients r by the outputs; with leverage (1 − W_i U_i G⁻¹ U_iᵀ)⁻¹ r_i, as if the example were not in G."""
        plain = self.outputs.gradients
        if not leverage:
            return plain
        share = _apply(self._half_hat(), plain)
        kept = _diagonal_blocks(self.inverse, len(plain))  # 1 − S_i U_i G⁻¹ U_iᵀ S_i, and far from 0 by no difference
        return plain + _apply(self.outputs.roots, torch.linalg.solve(kept, share))

    def own(self, leverage: bool) -> Float[Tensor, " N"]:
        """g_iᵀ G⁻¹ g_i · weight / N."""
        count = len(self.outputs.gradients)
        reached = torch.linalg.solve_triangular(self.factor, self.half, upper=False)
        inner = _columns(reached, count)
        hat = _diagonal_blocks(self.kernel, count) - inner.mT @ inner  # U_i G⁻¹ U_iᵀ
        return (self.outputs.gradients * _apply(hat, self.gradients(leverage))).sum(-1) * self.outputs.shares

    def _half_hat(self) -> Blocks:
        """S_i U_i G⁻¹ U_iᵀ, a block of M⁻¹ S K."""
        count = len(self.outputs.gradients)
        return self.inverse.view(count, -1, len(self.kernel)) @ _columns(self.half, count)


def _times(blocks: Blocks, matrix: Float[Tensor, "R Q"]) -> Float[Tensor, "R Q"]:
    """A block-diagonal matrix times another."""
    return (blocks @ matrix.reshape(len(blocks), blocks.shape[1], -1)).reshape(matrix.shape)


def _apply(blocks: Blocks, vectors: Float[Tensor, "N K"]) -> Float[Tensor, "N K"]:
    return (blocks @ vectors[..., None]).squeeze(-1)


def _against(reached: Float[Tensor, "Q R"], gradients: Float[Tensor, "N K"]) -> Float[Tensor, "Q N"]:
    """Σ_k over the outputs of each example."""
    return torch.einsum("qnk,nk->qn", reached.view(len(reached), *gradients.shape), gradients)


def _diagonal_blocks(matrix: Float[Tensor, "R R"], count: int) -> Blocks:
    """The diagonal blocks."""
    width = len(matrix) // count
    return matrix.view(count, width, count, width).diagonal(dim1=0, dim2=2).permute(2, 0, 1)


def _columns(matrix: Float[Tensor, "R R"], count: int) -> Float[Tensor, "N R K"]:
    """The columns of each example."""
    return matrix.view(len(matrix), count, -1).transpose(0, 1)
