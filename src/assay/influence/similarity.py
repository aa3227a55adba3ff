"""Gradient similarity: inner products and cosines of query and training gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay import progress
from assay.data.batches import Tokenised
from assay.influence.gradient_records import Rows
from assay.influence.gradients import Gradients
from assay.influence.setting import Influence, Setting
from assay.influence.stories import CHANGE
from assay.models import budget
from assay.stories import with_story

# Inner products of query gradients with per-example training gradients, over all parameters.


Vectors = Mapping[str, Float[Tensor, "Q ..."]]
"""Some vectors over all parameters, by the parameter's name: [Q, *shape]."""

TABLE = 2**27  # numbers that the rows of a table may take for one product


def query_gradients(setting: Setting) -> dict[str, Tensor]:
    """The gradient of the target of each query."""
    found = {name: each.new_zeros(len(setting.queries), *each.shape) for name, each in setting.parameters.items()}
    for indices, batch in setting.batches(setting.queries):
        reading = setting.reader.read(batch)
        gradients = reading.gradients(setting.query_logit_gradients(indices, reading))
        for name, each in found.items():
            each[indices] = gradients.dense(name).reshape(len(indices), *each.shape[1:])
    return found


def products(gradients: Gradients, vectors: Vectors) -> Float[Tensor, "Q B"]:
    """Inner products of each vector with the gradient of each example, over the parameters that both have."""
    parts = []
    for name, vector in vectors.items():
        rows = gradients.rows(name)
        flat = vector.flatten(1)
        parts.append(_looked_up(rows, vector) if rows is not None else flat @ gradients.dense(name).to(flat).T)
    return torch.stack(parts).sum(0)


def _looked_up(rows: Rows, vectors: Float[Tensor, "Q V D"]) -> Float[Tensor, "Q B"]:
    """Products with the table rows that each example looks up, some vectors at a time."""
    step = max(1, TABLE // max(1, rows.gradients.numel()))
    gradients = rows.gradients.to(vectors)
    return torch.cat(
        [torch.einsum("qbkd,bkd->qb", part[:, rows.ids], gradients) for part in vectors.split(step)]  # type: ignore[no-untyped-call]
    )


def train_products(
    setting: Setting, vectors: Vectors, rows: Sequence[Tokenised] | None = None, label: str = "training examples"
) -> Float[np.ndarray, "Q N"]:
    """Products of each vector with the unweighted loss gradient of each training row."""
    rows = setting.train if rows is None else rows
    found = np.zeros((len(next(iter(vectors.values()))), len(rows)))
    with progress.bar() as shown:
        task = shown.add_task(label, total=len(rows))
        for indices, batch in setting.batches(rows):
            reading = setting.reader.read(batch)
            gradients = reading.gradients(setting.train_logit_gradients(batch, reading))
            found[:, indices] = products(gradients, vectors).double().cpu().numpy()
            shown.advance(task, len(indices))
    return found


Change = Callable[[Vectors], Vectors]


@with_story("Inner product of gradients", "Charpiat et al. (2019), equation 2", like=CHANGE)
@dataclass(frozen=True)
class GradientDot:
    """Inner product of the gradients of query and example; Charpiat et al. (2019), equation 2.

    It is what one step down the gradient of the mean loss would change if the example were not in it, for a learning
    rate of 1; also the limit of λ times an influence function for a damping λ without bounds.
    """

    def unfit(self, setting: Setting) -> str | None:
        """Nothing is lacking."""
        return None

    def __call__(self, setting: Setting) -> Influence:
        notes = {"units": "change of the target after one step of gradient descent, by its learning rate"}
        return Influence(dots(setting) * shares(setting), notes=notes)

    def own(self, setting: Setting) -> Float[np.ndarray, " N"]:
        """The rise of each loss after one step without the example, by the learning rate."""
        return np.asarray(train_squares(setting) * shares(setting))


@with_story("Cosine of gradients", "Charpiat et al. (2019), section 2", like=CHANGE)
@dataclass(frozen=True)
class GradientCosine:
    """Cosine of the gradients of query and example; Charpiat et al. (2019), section 2.

    It has no units: long gradients, as those of outliers, count no more than short ones.
    """

    def unfit(self, setting: Setting) -> str | None:
        """Nothing is lacking."""
        return None

    def __call__(self, setting: Setting) -> Influence:
        lengths = np.sqrt(train_squares(setting))

        def directed(vectors: Vectors) -> Vectors:
            size = torch.stack([each.flatten(1).double().square().sum(1) for each in vectors.values()]).sum(0).sqrt()
            return {name: each / _along(size.clamp(min=1e-30), each) for name, each in vectors.items()}

        scores = dots(setting, directed) / np.maximum(lengths, 1e-30)
        return Influence(scores * (setting.weights > 0), notes={"units": "cosines"})


def dots(setting: Setting, change: Change | None = None) -> Float[np.ndarray, "Q N"]:
    """Inner products of each query's gradient, transformed by `change`, with the loss gradient of each training row."""
    found = np.zeros((len(setting.queries), len(setting.train)))
    for indices, part in parts(setting):
        vectors: Vectors = query_gradients(part)
        found[indices] = train_products(part, vectors if change is None else change(vectors))
    return found


def shares(setting: Setting) -> Float[np.ndarray, " N"]:
    """The share of each training row in the mean loss."""
    return np.asarray(setting.weights / len(setting.train))


def parts(setting: Setting) -> Iterator[tuple[slice, Setting]]:
    """The setting with as many queries at a time as memory holds gradients for, and their indices."""
    size = sum(each.numel() for each in setting.parameters.values())
    step = budget.room(setting.network.device, "query gradients", size)
    for start in range(0, len(setting.queries), step):
        indices = slice(start, start + step)
        part = replace(setting, queries=setting.queries[indices], classes=setting.classes[indices])
        vars(part)["reader"] = setting.reader  # what it found out about the network holds for all parts
        yield indices, part


def train_squares(setting: Setting) -> Float[np.ndarray, " N"]:
    """The squared norm of the unweighted loss gradient of each training row."""
    return over_train(setting, squares)


def over_train(setting: Setting, say: Callable[[Gradients], Tensor]) -> Float[np.ndarray, " N"]:
    """A function of the loss gradient of each training row."""
    found = np.zeros(len(setting.train))
    with progress.bar() as shown:
        task = shown.add_task("training examples", total=len(setting.train))
        for indices, batch in setting.batches(setting.train):
            reading = setting.reader.read(batch)
            found[indices] = (
                say(reading.gradients(setting.train_logit_gradients(batch, reading))).double().cpu().numpy()
            )
            shown.advance(task, len(indices))
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


def _along(numbers: Float[Tensor, " Q"], vectors: Float[Tensor, "Q ..."]) -> Tensor:
    return numbers.to(vectors).view(-1, *[1] * (vectors.dim() - 1))
