"""EK-FAC: influence functions with a Kronecker-factored curvature in each layer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay import progress
from assay.errors import unknown
from assay.influence.blocks import Block, Table, Vector
from assay.influence.damping import chosen_damping
from assay.influence.gradient_records import Outer
from assay.influence.gradients import Gradients
from assay.influence.layers import Layer
from assay.influence.products import Vectors
from assay.influence.setting import Influence, Setting
from assay.influence.similarity import dots, over_train, shares
from assay.influence.stories import CHANGE
from assay.influence.targets import logit_gradients
from assay.stories import with_story

FISHERS = ("expected", "empirical")
LARGEST = 8_192  # side of a matrix that is decomposed


@with_story("EK-FAC", "George et al. (2018), Grosse et al. (2023), equations 16 to 22", like=CHANGE)
@dataclass(frozen=True)
class Kronecker:
    """EK-FAC over every parameter; George et al. (2018), Grosse et al. (2023), equations 16 to 22.

    The curvature of each layer is diagonal in the eigenvectors of the second moments of its inputs and of the gradients
    of its outputs; its values are the mean squares of the gradients in that basis. Tables of embeddings have one input
    a row, recurrent weights one position a step; a bias is the weight of an input that is always 1.
    """

    fisher: str = "expected"  # over what the model holds possible, or "empirical": over the labels
    damping: float | None = None  # none given: found from the training; a share of the mean value with `relative`
    relative: bool = False  # damping is a share of the mean value of each layer, as the 0.1 of Grosse et al. (2023)

    def __post_init__(self) -> None:
        if self.fisher not in FISHERS:
            raise unknown("Fisher information", self.fisher, FISHERS)

    def unfit(self, setting: Setting) -> str | None:
        """Nothing is lacking."""
        return None

    def __call__(self, setting: Setting) -> Influence:
        damping, blocks = self.damped(setting)
        scores = dots(setting, lambda vectors: solved(blocks, vectors)) * shares(setting)
        return Influence(scores, notes={"damping": damping, "relative": self.relative, "fisher": self.fisher})

    def own(self, setting: Setting) -> Float[np.ndarray, " N"]:
        """The predicted rise of each training example's own loss if it were removed."""
        _, blocks = self.damped(setting)

        def say(gradients: Gradients) -> Tensor:
            return torch.stack([block.squares(gradients, block.inverse) for block in blocks]).sum(0)

        return np.asarray(over_train(setting, say) * shares(setting))

    def damped(self, setting: Setting) -> tuple[float, list[Block]]:
        """The damping, and the damped curvature of each layer."""
        damping = self.damping
        if damping is None:
            damping = 0.1 if self.relative else chosen_damping(setting)
        blocks = self.fitted(setting)
        for block in blocks:
            block.damp(damping * (float(block.values.mean()) if self.relative else 1.0))
        return damping, blocks

    def fitted(self, setting: Setting) -> list[Block]:
        """The curvature of each layer, without damping."""
        blocks: list[Block] = []
        with progress.bar() as shown:
            task = shown.add_task("curvature", total=2 * len(setting.train))
            for gradients, count in self._directions(setting):
                blocks = blocks or blocks_of(setting, gradients)
                for block in blocks:
                    block.gather(gradients)
                shown.advance(task, count)
            for block in blocks:
                block.decompose()
            for gradients, count in self._directions(setting):
                for block in blocks:
                    block.correct(gradients, len(setting.train))
                shown.advance(task, count)
        return blocks

    def _directions(self, setting: Setting) -> Iterator[tuple[Gradients, int]]:
        """The gradients of the rows in each direction of the Fisher information, and the number of rows done."""
        for indices, batch in setting.batches(setting.train):
            reading = setting.reader.read(batch)
            logits = reading.logits.detach()
            roots = torch.from_numpy(setting.weights[indices]).to(logits).sqrt()[:, None]
            if self.fisher == "empirical":
                yield reading.gradients(roots * logit_gradients("loss", logits, batch.labels)), len(indices)
                continue
            for number, direction in enumerate(softmax_roots(logits).unbind(-1)):
                yield reading.gradients(roots * direction), len(indices) * (number == 0)


def softmax_roots(logits: Float[Tensor, "B C"]) -> Float[Tensor, "B C K"]:
    """The C−1 directions whose outer products sum to diag(p) − p pᵀ, the curvature of the cross-entropy.

    A Cholesky factor in closed form (Tanabe and Sagae, 1992). differs from George et al. (2018): they draw labels.
    """
    shares = logits.double().softmax(-1)
    after = shares.flip(-1).cumsum(-1).flip(-1)  # the sum from each class on
    left, rest = after[:, :-1].clamp(min=1e-300), after[:, 1:]
    scale = (shares[:, :-1] / left).sqrt()
    roots = -shares[:, :, None] * (scale / rest.clamp(min=1e-300).sqrt())[:, None]
    roots = roots.tril(-1)
    roots.diagonal(dim1=1, dim2=2).copy_(scale * rest.sqrt())
    return roots.to(logits)


def solved(blocks: list[Block], vectors: Vectors) -> dict[str, Any]:
    """The vectors times the inverse of the damped curvature."""
    found: dict[str, Any] = {}
    for block in blocks:
        found |= block.solved(vectors)
    return {name: found[name] for name in vectors}


def blocks_of(setting: Setting, gradients: Gradients) -> list[Block]:
    """A block for each parameter, or for a matrix and its bias together; none is left out."""
    found: list[Block] = []
    taken: set[str] = set()
    for name, values in setting.parameters.items():
        decay = setting.decay.get(name, 0.0)
        if name in taken or values.dim() < 2:
            continue
        if gradients.rows(name) is not None:
            found.append(Table(name, values, decay))
        elif max(len(values), values[0].numel()) <= LARGEST:
            transposed = any(isinstance(each, Outer) and each.transposed for each in gradients.records[name])
            bias = bias_of(setting, gradients, name)
            found.append(Layer(name, bias, values.shape, transposed, values, decay))
            taken |= {name} if bias is None else {name, bias}
        else:
            found.append(Vector(name, values, decay))
        taken.add(name)
    found += [
        Vector(name, values, setting.decay.get(name, 0.0))
        for name, values in setting.parameters.items()
        if name not in taken
    ]
    return found


def bias_of(setting: Setting, gradients: Gradients, name: str) -> str | None:
    """The bias of the same layer as the matrix, found by its name and its gradient."""
    before, _, last = name.rpartition(".")
    bias = f"{before}.{last.replace('weight', 'bias')}"
    records = [each for each in gradients.records[name] if isinstance(each, Outer)]
    if bias == name or bias not in setting.parameters or len(records) < len(gradients.records[name]):
        return None
    if setting.decay.get(bias, 0.0) != setting.decay.get(name, 0.0):
        return None
    sums = torch.stack([each.gradients.sum(1) for each in records]).sum(0)
    own = gradients.dense(bias)
    return bias if own.shape == sums.shape and torch.allclose(own, sums, rtol=1e-3, atol=1e-6) else None
