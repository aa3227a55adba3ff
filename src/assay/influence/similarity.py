"""Gradient similarity: inner products and cosines of query and training gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.influence.gradient_records import Rows
from assay.influence.gradients import Gradients
from assay.influence.setting import Influence, PerExample, Scores, Setting, Texts, Unconditional
from assay.influence.stories import COSINE, STEP
from assay.models.budget import room
from assay.stories import with_story

Vectors = Mapping[str, Float[Tensor, "Q ..."]]
"""Some vectors over all parameters, by the parameter's name: [Q, *shape]."""

Change = Callable[[Vectors], Vectors]

TABLE = 2**27  # numbers that the rows of a table may take for one product


@with_story("Inner product of gradients", "Charpiat et al. (2019), equation 2", like=STEP)
@dataclass(frozen=True)
class GradientDot(Unconditional):
    """Inner product of the gradients of query and example; Charpiat et al. (2019), equation 2.

    It is what one step down the gradient of the mean loss would change if the example were not in it, for a learning
    rate of 1; also the limit of λ times an influence function for a damping λ without bounds.
    """

    def __call__(self, setting: Setting) -> Influence:
        notes = {"units": "change of the target after one step of gradient descent, by its learning rate"}
        return Influence(dots(setting) * setting.shares, notes=notes)

    def own(self, setting: Setting) -> PerExample:
        """The rise of each loss after one step without the example, by the learning rate."""
        return np.asarray(over_train(setting, squares) * setting.shares)


@with_story("Cosine of gradients", "Charpiat et al. (2019), section 2", like=COSINE)
@dataclass(frozen=True)
class GradientCosine(Unconditional):
    """Cosine of the gradients of query and example; Charpiat et al. (2019), section 2.

    It has no units: long gradients, as those of outliers, count no more than short ones.
    """

    def __call__(self, setting: Setting) -> Influence:
        lengths = np.sqrt(over_train(setting, squares))

        def directed(vectors: Vectors) -> Vectors:
            squared = [each.flatten(1).double().square().sum(1) for each in vectors.values()]
            size = torch.stack(squared).sum(0).sqrt().clamp(min=1e-30)
            return {name: each / size.to(each).view(-1, *[1] * (each.dim() - 1)) for name, each in vectors.items()}

        scores = dots(setting, directed) / np.maximum(lengths, 1e-30)
        return Influence(scores * (setting.weights > 0), notes={"units": "cosines"})


def query_gradients(setting: Setting) -> dict[str, Tensor]:
    """The gradient of the target of each query."""
    count = len(setting.queries)
    found = {name: each.new_zeros(count, *each.shape) for name, each in setting.parameters.items()}
    for indices, gradients in setting.query_gradients():
        for name, each in found.items():
            each[indices] = gradients.dense(name).reshape(len(indices), *each.shape[1:])
    return found


def products(gradients: Gradients, vectors: Vectors) -> Float[Tensor, "Q B"]:
    """Inner products of each vector with the gradient of each example, over the parameters that both have."""
    parts = []
    for name, vector in vectors.items():
        rows = gradients.rows(name)
        if rows is not None:
            parts.append(_looked_up(rows, vector))
        else:
            flat = vector.flatten(1)
            parts.append(flat @ gradients.dense(name).to(flat).T)
    return torch.stack(parts).sum(0)


def _looked_up(rows: Rows, vectors: Float[Tensor, "Q V D"]) -> Float[Tensor, "Q B"]:
    """Products with the table rows that each example looks up, some vectors at a time."""
    step = max(1, TABLE // max(1, rows.gradients.numel()))
    gradients = rows.gradients.to(vectors)
    parts = torch.split(vectors, step)
    return torch.cat([torch.einsum("qbkd,bkd->qb", part[:, rows.ids], gradients) for part in parts])


def train_products(
    setting: Setting,
    vectors: Vectors,
    rows: Texts | None = None,
    label: str = "training examples",
) -> Scores:
    """Products of each vector with the unweighted loss gradient of each training row."""
    rows = setting.train if rows is None else rows
    found = np.zeros((len(next(iter(vectors.values()))), len(rows)))
    for indices, gradients in setting.train_gradients(rows, label):
        found[:, indices] = products(gradients, vectors).double().cpu().numpy()
    return found


def dots(setting: Setting, change: Change | None = None) -> Scores:
    """Inner products of each query's gradient, transformed by `change`, with the loss gradient of each training row."""
    found = setting.zeros()
    for indices, part in parts(setting):
        vectors: Vectors = query_gradients(part)
        found[indices] = train_products(part, vectors if change is None else change(vectors))
    return found


def parts(setting: Setting) -> Iterator[tuple[slice, Setting]]:
    """The setting with as many queries at a time as memory holds gradients for, and their indices."""
    step = room(setting.network.device, "query gradients", setting.size)
    for start in range(0, len(setting.queries), step):
        yield slice(start, start + step), setting.some_queries(start, start + step)


def over_train(setting: Setting, function: Callable[[Gradients], Tensor]) -> PerExample:
    """A function of the loss gradient of each training row."""
    found = np.zeros(len(setting.train))
    for indices, gradients in setting.train_gradients():
        found[indices] = function(gradients).double().cpu().numpy()
    return found


def squares(gradients: Gradients, scales: Vectors | None = None) -> Float[Tensor, " B"]:
    """The squared norm of each example's gradient, optionally scaled; tables are never formed."""
    parts = []
    for name in gradients.records:
        rows, scale = gradients.rows(name), (scales or {}).get(name)
        if rows is None:
            dense = gradients.dense(name).double()
            parts.append((dense if scale is None else dense * scale.flatten()).square().sum(1))
        else:
            values, same = rows.gradients.double(), rows.ids[:, :, None] == rows.ids[:, None]
            values = values if scale is None else values * scale[rows.ids]
            parts.append((values @ values.mT * same).sum((1, 2)))
    return torch.stack(parts).sum(0)
