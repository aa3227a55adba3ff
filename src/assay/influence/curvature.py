"""Curvature (Hessian or Gauss–Newton) of the training loss as matrix–vector products over all parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.influence import targets
from assay.influence.gradients import Reading
from assay.influence.setting import Indices, Labels, PerExample, Setting
from assay.influence.similarity import Vectors
from assay.models.walk import UnfusedOps
from assay.types import Batch, Logits

AT_ONCE = 2**24  # numbers that the vectors of one backward pass take together, with the hidden states of a batch each


Flat = Float[Tensor, "Q P"]
"""Vectors over all parameters, concatenated."""


def flattened(vectors: Vectors) -> Flat:
    """All parameters of the vectors concatenated, in the order of the mapping."""
    return torch.cat([each.flatten(1) for each in vectors.values()], dim=1)


def by_name(vectors: Flat, setting: Setting) -> dict[str, Tensor]:
    """The inverse of `flattened`."""
    shapes = {name: each.shape for name, each in setting.parameters.items()}
    parts: Sequence[Tensor] = torch.split(vectors, [shape.numel() for shape in shapes.values()], dim=1)
    return {name: part.reshape(len(vectors), *shapes[name]) for name, part in zip(shapes, parts, strict=True)}


def spread(values: Mapping[str, float], setting: Setting) -> Float[Tensor, " P"]:
    """One number for each parameter, repeated for each of its entries; 0 where none is given."""
    parts = [each.new_full((each.numel(),), values.get(name, 0.0)) for name, each in setting.parameters.items()]
    return torch.cat(parts)


@dataclass(frozen=True)
class Curvature(ABC):
    """The Hessian of the training objective, or an approximation of it, as a linear operator."""

    setting: Setting

    @property
    def size(self) -> int:
        """The number of parameters."""
        return self.setting.size

    @property
    def decay(self) -> Float[Tensor, " P"]:
        """The L2 of each parameter, which is part of the curvature."""
        return spread(self.setting.decay, self.setting)

    def matvec(self, vectors: Flat, indices: Indices | None = None) -> Flat:
        """Products with the vectors; with `indices`, of the mean over these training examples."""
        found = vectors * self.decay
        for shares, batch in self.batches(indices):
            step = max(1, AT_ONCE // (self.setting.size + batch.ids.numel() * 64))
            found += torch.cat([*self._products(batch, shares.to(vectors), torch.split(vectors, step))])
        return found

    def batches(self, indices: Indices | None = None) -> Iterator[tuple[Float[Tensor, " n"], Batch]]:
        """Training examples with their shares in the loss."""
        setting = self.setting
        chosen = np.arange(len(setting.train)) if indices is None else indices
        rows = [setting.train[int(index)] for index in chosen]
        for group, batch in setting.batches(rows):
            shares = setting.weights[chosen[group]] / len(rows)
            yield torch.from_numpy(shares).to(setting.network.device), batch

    def dense(self) -> Float[Tensor, "P P"]:
        """The matrix itself."""
        some = next(iter(self.setting.parameters.values()))
        return symmetric(self.matvec(torch.eye(self.setting.size, dtype=some.dtype, device=some.device)))

    @abstractmethod
    def _products(self, batch: Batch, shares: Float[Tensor, " n"], pieces: Sequence[Tensor]) -> Iterator[Tensor]:
        """What a batch adds to the products."""

    def _logits(self, batch: Batch) -> Logits:
        with UnfusedOps(), torch.enable_grad():
            return self.setting.logits(batch)


class Hessian(Curvature):
    """All second derivatives; away from a minimum some eigenvalues are negative."""

    def _products(self, batch: Batch, shares: Float[Tensor, " n"], pieces: Sequence[Tensor]) -> Iterator[Tensor]:
        parameters = list(self.setting.parameters.values())
        with torch.enable_grad():
            loss = (targets.loss(self._logits(batch), batch.labels) * shares).sum()
            gradients = torch.autograd.grad(loss, parameters, create_graph=True, materialize_grads=True)
        used = [index for index, each in enumerate(gradients) if each.requires_grad]
        for piece in pieces:
            split = list(by_name(piece, self.setting).values())
            yield _vector_jacobian_products(
                [gradients[index] for index in used], parameters, [split[index] for index in used]
            )


class GaussNewton(Curvature):
    """Second derivatives of the loss by the logits alone, Jᵀ H J: never negative. Martens (2014)."""

    def _products(self, batch: Batch, shares: Float[Tensor, " n"], pieces: Sequence[Tensor]) -> Iterator[Tensor]:
        parameters = list(self.setting.parameters.values())
        logits = self._logits(batch)
        probabilities = logits.detach().softmax(-1)
        with torch.enable_grad():  # a backward pass is linear in its input: its own backward is the forward derivative
            put = torch.zeros_like(logits, requires_grad=True)
            back = torch.autograd.grad(logits, parameters, put, create_graph=True, materialize_grads=True)
        used = [index for index, each in enumerate(back) if each.requires_grad]
        for piece in pieces:
            split = list(by_name(piece, self.setting).values())
            ahead = _vector_jacobian_products([back[index] for index in used], [put], [split[index] for index in used])
            change = ahead.reshape(len(piece), *logits.shape) * probabilities
            change = (change - probabilities * change.sum(-1, keepdim=True)) * shares[:, None]
            yield _vector_jacobian_products([logits], parameters, [change])

    def dense(self) -> Float[Tensor, "P P"]:
        """From the gradients of each example by itself."""
        found = torch.diag(self.decay.double())
        for shares, batch in self.batches():
            rows = curvature_roots(self.setting.reader.read(batch)).double() * shares.sqrt()[:, None, None]
            found += torch.einsum("bkp,bkr->pr", rows, rows)
        return symmetric(found)


CURVATURES: dict[str, type[Curvature]] = {"gauss_newton": GaussNewton, "hessian": Hessian}


def curvature_roots(reading: Reading) -> Float[Tensor, "B K P"]:
    """Vectors whose outer products add up to the Gauss–Newton curvature of each example, without its weight."""
    columns = output_roots(reading.logits.detach()).unbind(-1)
    return torch.stack([reading.gradients(each).flat() for each in columns], dim=1)


def output_roots(logits: Logits) -> Float[Tensor, "B C K"]:
    """The C − 1 directions whose outer products sum to diag(p) − p pᵀ, the curvature of the cross-entropy.

    A Cholesky factor in closed form: each class against all that follow (Tanabe and Sagae, 1992).
    """
    shares = logits.double().softmax(-1)
    after = shares.flip(-1).cumsum(-1).flip(-1)  # the sum from each class on
    left, rest = after[:, :-1].clamp(min=1e-300), after[:, 1:]
    scale = (shares[:, :-1] / left).sqrt()
    roots = -shares[:, :, None] * (scale / rest.clamp(min=1e-300).sqrt())[:, None]
    roots = roots.tril(-1)
    roots.diagonal(dim1=1, dim2=2).copy_(scale * rest.sqrt())
    return roots.to(logits)


def symmetric(matrix: Float[Tensor, "P P"]) -> Float[Tensor, "P P"]:
    """The matrix without what rounding has made different above and below the diagonal."""
    return (matrix + matrix.mT) / 2


def _vector_jacobian_products(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], grad_outputs: Sequence[Tensor]
) -> Float[Tensor, "q P"]:
    """Several backward passes at once, over all inputs concatenated."""
    found = torch.autograd.grad(
        outputs, inputs, grad_outputs, retain_graph=True, is_grads_batched=True, materialize_grads=True
    )
    return torch.cat([each.flatten(1) for each in found], dim=1)


def directions(classes: int) -> Float[Tensor, "C K"]:
    """Orthonormal basis of logit changes that sum to 0 (softmax ignores a constant), one less than classes."""
    basis = torch.zeros(classes, classes - 1, dtype=torch.float64)
    for index in range(1, classes):
        basis[:index, index - 1] = 1 / (index * (index + 1)) ** 0.5
        basis[index, index - 1] = -index / (index * (index + 1)) ** 0.5
    return basis


@dataclass(frozen=True)
class Outputs:
    """Gradient and root of the curvature by the logits for each of N training examples, in K directions."""

    gradients: Float[Tensor, "N K"]  # of the loss, without its weight
    roots: Float[Tensor, "N K K"]  # of its curvature times weight / N, symmetric
    shares: Float[Tensor, " N"]  # weight / N

    @classmethod
    def of(cls, logits: Float[Tensor, "N C"], labels: Labels, shares: PerExample) -> Outputs:
        """From logits and labels; the shares are weights / the number of all training examples."""
        device, basis = logits.device, directions(logits.shape[1])
        probabilities = logits.double().cpu().softmax(-1)
        gradients = probabilities - torch.nn.functional.one_hot(torch.from_numpy(labels), logits.shape[1])
        share = torch.from_numpy(np.asarray(shares, dtype=np.float64))
        whole = torch.diag_embed(probabilities) - probabilities[:, :, None] * probabilities[:, None]
        curvature = share[:, None, None] * (basis.T @ whole @ basis)
        sizes, axes = torch.linalg.eigh(curvature)
        roots = axes * sizes.clamp(min=0).sqrt()[:, None] @ axes.mT
        return cls(*(each.to(device) for each in (gradients @ basis, roots, share)))

    @classmethod
    @torch.no_grad()
    def train(cls, setting: Setting) -> Outputs:
        """Of all training examples, by a forward pass over them."""
        logits = torch.zeros(len(setting.train), setting.network.classes, dtype=torch.float64)
        for indices, batch in setting.batches(setting.train):
            logits[torch.from_numpy(indices)] = setting.logits(batch).double().cpu()
        return cls.of(logits.to(setting.network.device), setting.labels, setting.shares)
