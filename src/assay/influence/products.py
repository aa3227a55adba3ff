"""Inner products of query gradients with per-example training gradients, over all parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay import progress
from assay.data.batches import Tokenised
from assay.influence.gradient_records import Rows
from assay.influence.gradients import Gradients
from assay.influence.setting import Setting

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
