"""Salience of tokens (gradient-based) and its gradient by all parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay import progress
from assay.errors import unknown
from assay.influence import targets
from assay.influence.setting import Setting
from assay.models.textmodel import TextModel
from assay.models.walk import UnfusedOps
from assay.types import Batch

NODES = 15  # on the path of an integrated gradient

Pair = tuple[int, int]
"""A query, and the index of one of its tokens."""


@dataclass(frozen=True)
class ClassScore:
    """The score S of one class for each text, as a function of the embeddings."""

    network: TextModel
    batch: Batch
    classes: Int[Tensor, " B"]
    target: str

    def embedded(self) -> Float[Tensor, "B T D"]:
        """The embeddings, part of the graph of the embedding table."""
        x = self.network.embed(self.batch)
        return x if x.requires_grad else x.requires_grad_()

    def gradient(self, x: Float[Tensor, "R T D"]) -> Float[Tensor, "R T D"]:
        """∂S/∂x, itself differentiable; each text may be repeated several times in succession."""
        rows = torch.arange(len(self.batch), device=x.device).repeat_interleave(len(x) // len(self.batch))
        with UnfusedOps():
            logits = self.network(x, self.batch[rows]).logits
        asked = targets.target(self.target)(logits, self.classes[rows]).sum()
        return torch.autograd.grad(asked, x, create_graph=True)[0] * self.batch.mask[rows][..., None]


def norm(class_score: ClassScore) -> Float[Tensor, "B T"]:
    """The gradient norm ‖∂S/∂x_t‖ (Meng et al., 2020; eq. 28 of the survey)."""
    gradient = class_score.gradient(class_score.embedded())
    held = gradient.detach()
    sizes: Tensor = torch.linalg.vector_norm(held, dim=-1, keepdim=True)
    # the direction is held: this is the gradient of a norm, and 0 where a norm has none
    return (gradient * (held / sizes.where(sizes > 0, 1))).sum(-1)


def input_x_gradient(class_score: ClassScore) -> Float[Tensor, "B T"]:
    """Input × gradient: x_t · ∂S/∂x_t, which has a sign."""
    x = class_score.embedded()
    return (x * class_score.gradient(x)).sum(-1)


def integrated_gradient(class_score: ClassScore) -> Float[Tensor, "B T"]:
    """Integrated gradients: x_t · ∫ ∂S/∂x_t along the line from 0 (Sundararajan et al., 2017), with a sign."""
    x = class_score.embedded()
    shares, weights = (torch.as_tensor(part).to(x) / 2 for part in np.polynomial.legendre.leggauss(NODES))
    points = torch.einsum("n,btd->bntd", shares + 0.5, x).flatten(0, 1)
    gradients = class_score.gradient(points).reshape(len(x), NODES, *x.shape[1:])
    return torch.einsum("btd,bntd,n->bt", x, gradients, weights)


SALIENCES: dict[str, Callable[[ClassScore], Float[Tensor, "B T"]]] = {
    each.__name__: each for each in (norm, input_x_gradient, integrated_gradient)
}
"""One number for each token, a function of the parameters that can be differentiated."""


def saliences(setting: Setting, kind: str = "norm") -> list[Float[np.ndarray, " T"]]:
    """The salience of each token of each query."""
    found: list[Float[np.ndarray, " T"]] = [np.zeros(0)] * len(setting.queries)
    for indices, batch in setting.batches(setting.queries):
        for index, row, length in zip(indices, _measured(setting, indices, batch, kind), batch.lengths, strict=True):
            found[index] = row[: int(length)].detach().double().cpu().numpy()
    return found


def salience_gradients(setting: Setting, pairs: Sequence[Pair], kind: str = "norm") -> dict[str, Tensor]:
    """The gradients of the salience of some tokens by all parameters, with one forward pass a query.

    The text stays and its embeddings move: a table counts both as what is read and as what the gradient is taken at.
    """
    parameters = setting.parameters
    found = {name: each.new_zeros(len(pairs), *each.shape) for name, each in parameters.items()}
    order = sorted(range(len(pairs)), key=lambda number: pairs[number])
    with progress.bar() as shown:
        task = shown.add_task("salient tokens", total=len(pairs))
        for query, group in groupby(order, key=lambda number: pairs[number][0]):
            numbers = list(group)
            ((_, batch),) = setting.batches([setting.queries[query]])
            measured = _measured(setting, np.array([query]), batch, kind)[0]
            chosen = measured[[pairs[number][1] for number in numbers]]
            each = torch.eye(len(numbers)).to(chosen)
            gradients = torch.autograd.grad(
                chosen, list(parameters.values()), each, is_grads_batched=True, allow_unused=True
            )
            for name, gradient in zip(parameters, gradients, strict=True):
                if gradient is not None:
                    found[name][numbers] = gradient
            shown.advance(task, len(numbers))
    return found


def _measured(setting: Setting, indices: Int[np.ndarray, " n"], batch: Batch, kind: str) -> Float[Tensor, "n T"]:
    if kind not in SALIENCES:
        raise unknown("salience", kind, SALIENCES)
    classes = torch.from_numpy(setting.classes[indices]).to(batch.ids.device)
    with torch.enable_grad():
        return SALIENCES[kind](ClassScore(setting.network, batch, classes, setting.target))
