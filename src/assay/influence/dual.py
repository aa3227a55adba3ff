"""The Gauss–Newton curvature over all parameters, solved in the space of the training examples' outputs."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay import progress
from assay.data.batches import Tokenised
from assay.influence.curvature import Outputs, directions
from assay.influence.damping import diagonal, mean_damping
from assay.influence.gradient_records import Outer, Rows, TableGradients, add_kernel, cut
from assay.influence.gradients import Gradients, Reading
from assay.influence.setting import Indices, Influence, PerExample, Scores, Setting, Texts
from assay.influence.similarity import Vectors
from assay.influence.stories import CHANGE
from assay.models import budget
from assay.models.walk import UnfusedOps
from assay.stories import with_story
from assay.types import Batch

FEWEST, MOST = 4, 256  # rows that show which forms gradients have


@dataclass(frozen=True)
class ParameterSlice:
    """A slice of a parameter along its first dimension; of a table, along its last."""

    name: str
    shape: torch.Size
    start: int
    stop: int
    table: bool = False

    @property
    def size(self) -> int:
        """Numbers in each row of the first dimension, of a parameter that is no table."""
        return prod(self.shape[1:])

    @property
    def columns(self) -> slice:
        """Its columns in the flat gradient of the whole parameter, if that is no table."""
        return slice(self.start * self.size, self.stop * self.size)

    def dense(self, gradients: Gradients, start: int, stop: int) -> Float[Tensor, "B P"]:
        """The gradients of some examples, one flat row each."""
        parts = []
        for record in (cut(each, start, stop) for each in gradients.records[self.name]):
            if isinstance(record, Outer):
                side = "inputs" if record.transposed else "gradients"
                part = getattr(record, side)[..., self.start : self.stop]
                parts.append(replace(record, **{side: part}).dense())
            else:
                parts.append(record.dense()[:, self.columns])
        return parts[0] if len(parts) == 1 else torch.stack(parts).sum(0)

    def rows(self, gradients: Gradients) -> Rows:
        """The gradient of the table as the rows that were looked up."""
        found = gradients.lookups(self.name)
        return replace(found, gradients=found.gradients[..., self.start : self.stop])


def grouped(
    shapes: Mapping[str, torch.Size], tables: Mapping[str, int], rows: int, room: int
) -> list[list[ParameterSlice]]:
    """Groups of slices that fit into `room` numbers each, or hold one row of one parameter.

    A table takes as many numbers for each column as rows of it are looked up, which `tables` says.
    """
    groups: list[list[ParameterSlice]] = [[]]
    left = room
    for name, shape in shapes.items():
        table = name in tables
        indices = shape[-1] if table else (shape[0] if shape else 1)
        cost = max(1, tables[name] if table else rows * prod(shape[1:]))
        start = 0
        while start < indices:
            if left < cost and groups[-1]:
                groups.append([])
                left = room
            stop = min(indices, start + max(1, left // cost))
            groups[-1].append(ParameterSlice(name, shape, start, stop, table))
            left -= (stop - start) * cost
            start = stop
    return groups


def sample_rows(setting: Setting) -> list[Tokenised]:
    """Training rows of all lengths, as many as fit into one batch."""
    order = np.argsort([len(row.ids) for row in setting.train], kind="stable")
    longest = len(setting.train[order[-1]].ids)
    room = budget.room(setting.network.device, "activations", longest)
    indices = np.linspace(0, len(order) - 1, max(FEWEST, min(MOST, room, len(order)))).round().astype(int)
    return [setting.train[index] for index in order[indices]]


def sample_gradients(setting: Setting, rows: Texts) -> Gradients:
    """The gradients of rows in random directions of their logits."""
    _, batch = next(setting.batches(rows))
    reading = setting.reader.read(batch)
    logit_gradients = torch.randn(reading.logits.shape, generator=torch.Generator().manual_seed(0)).to(reading.logits)
    return reading.gradients(logit_gradients - logit_gradients.mean(-1, keepdim=True))


def table_sizes(gradients: Gradients) -> dict[str, int]:
    """The embedding tables among the parameters, and how many of their rows these examples look up."""
    rows = {name: gradients.rows(name) for name in gradients.records}
    return {name: each.ids.numel() for name, each in rows.items() if each is not None}


NUMBERS = 2**25  # that are held in float64 at once
STRIPS = 8  # a symmetric product leaves out almost half of all numbers

Roots = Mapping[str, Float[Tensor, "..."]]
"""What the gradient of each parameter is multiplied with: a number, or one for each number in it."""

LogitGradients = Callable[[Indices, Batch, Reading], Float[Tensor, "K n C"]]
"""The directions of the logits in which some rows are asked about."""


@dataclass(frozen=True)
class Block:
    """Gradients over some parameters: tables as looked-up rows, all others concatenated."""

    dense: Float[Tensor, "R P"]
    tables: Mapping[str, TableGradients]


@dataclass(frozen=True)
class ComputedGradients:
    """Gradients computed by a network, in `width` directions of the logits for each row."""

    setting: Setting
    rows: Texts
    logit_gradients: LogitGradients
    width: int = 1
    advance: Callable[[int], object] = field(default=lambda rows: None)

    @classmethod
    def train(cls, setting: Setting, advance: Callable[[int], object] = lambda rows: None) -> ComputedGradients:
        """Of all training rows, in an orthonormal basis of the logits."""
        basis = directions(setting.network.classes)

        def logit_gradients(indices: Indices, batch: Batch, reading: Reading) -> Float[Tensor, "K n C"]:
            return basis.T[:, None].to(reading.logits).expand(-1, len(batch), -1)

        return cls(setting, setting.train, logit_gradients, basis.shape[1], advance)

    @classmethod
    def queries(cls, setting: Setting) -> ComputedGradients:
        """Of the targets of all queries."""
        return cls(
            setting,
            setting.queries,
            lambda indices, batch, reading: setting.query_logit_gradients(indices, reading)[None],
        )

    @property
    def count(self) -> int:
        return len(self.rows) * self.width

    def block(self, group: Sequence[ParameterSlice], roots: Roots, against: Block | None = None) -> Block:
        """One pass over all rows, for the parameters of one group."""
        device = self.setting.network.device
        wide = sum((each.stop - each.start) * each.size for each in group if not each.table)
        dense = torch.zeros(self.count, wide, device=device, dtype=self.setting.dtype)
        tables: dict[str, list[TableGradients]] = defaultdict(list)
        for indices, batch in self.setting.batches(self.rows):
            reading = self.setting.reader.read(batch)
            for direction, each in enumerate(self.logit_gradients(indices, batch, reading)):
                gradients = reading.gradients(each)
                owners = torch.from_numpy(indices).to(device) * self.width + direction
                start = 0
                for each in group:
                    if each.table:
                        found = TableGradients.of(each.rows(gradients), owners, self.count)
                        tables[each.name].append(found.scaled(_cut(roots[each.name], each)))
                        continue
                    stop = start + (each.stop - each.start) * each.size
                    root, step = _cut(roots[each.name], each), max(1, NUMBERS // (stop - start))
                    for first in range(0, len(owners), step):
                        part = each.dense(gradients, first, first + step)
                        dense[owners[first : first + step], start:stop] = (part * root).to(dense)
                    start = stop
            self.advance(len(indices))
        return Block(dense, {name: TableGradients.joined(parts) for name, parts in tables.items()})


@dataclass(frozen=True)
class GivenGradients:
    """Vectors that are computed already; a missing parameter counts as 0."""

    vectors: Vectors

    @property
    def count(self) -> int:
        return len(next(iter(self.vectors.values())))

    def block(self, group: Sequence[ParameterSlice], roots: Roots, against: Block | None = None) -> Block:
        """Their slices; of a table only the rows that the others look up."""
        if against is None:
            raise ValueError("Given vectors have products with others only.")
        parts: list[Tensor] = []
        tables: dict[str, TableGradients] = {}
        for each in group:
            vectors = self.vectors.get(each.name)
            if vectors is None:
                vectors = against.dense.new_zeros(self.count, *each.shape)
            if each.table:
                tokens = against.tables[each.name].tokens.unique()  # type: ignore[no-untyped-call]
                found = TableGradients.among(vectors[..., each.start : each.stop], tokens)
                tables[each.name] = found.scaled(_cut(roots[each.name], each))
            else:
                parts.append(vectors.flatten(1)[:, each.columns] * _cut(roots[each.name], each))
        return Block(torch.cat(parts, 1) if parts else against.dense.new_zeros(self.count, 0), tables)


GradientSource = ComputedGradients | GivenGradients
"""Vectors over all parameters that can be had for some of them at a time."""


def add_products(out: Float[Tensor, "R S"], left: Block, right: Block) -> None:
    """Adds all inner products; of a block with itself, those right of the diagonal only are sure to be added."""
    strips = STRIPS if left is right and len(out) >= 64 * STRIPS else 1
    rows = -(-len(out) // strips)
    step = max(1, NUMBERS // max(1, sum(out.shape)))
    for start in range(0, left.dense.shape[1], step):
        one = left.dense[:, start : start + step].to(out)
        other = one if left is right else right.dense[:, start : start + step].to(out)
        for first in range(0, len(out), rows):
            behind = first if left is right else 0
            out[first : first + rows, behind:].addmm_(one[first : first + rows], other[behind:].T)
    for name, lookups in left.tables.items():
        add_kernel(out, lookups, lookups if left is right else right.tables[name])


def _cut(root: Float[Tensor, ...], part: ParameterSlice) -> Tensor:
    """The slice of the diagonal's roots."""
    if root.dim() == 0:
        return root
    return root[:, part.start : part.stop] if part.table else root.flatten()[part.columns]


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

    def coefficients(self, cross: Float[Tensor, "Q R"]) -> Float[Tensor, "Q N K"]:
        """S M⁻¹ S c of each row c."""
        roots = self.outputs.roots
        rooted = _times(roots, cross.T)
        return _times(roots, torch.cholesky_solve(rooted, self.factor)).T.reshape(len(cross), *roots.shape[:2])

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

    def own(self, setting: Setting) -> PerExample:
        """The predicted rise of each training example's own loss if it were removed."""
        return self.work(setting, None).solved.own(self.leverage).cpu().numpy()

    def inverse(self, setting: Setting, vectors: Vectors) -> dict[str, Tensor]:
        """The inverse of the curvature times the vectors: G⁻¹ v = D⁻¹ (v − Uᵀ S M⁻¹ S U D⁻¹ v)."""
        work = self.work(setting, GivenGradients(vectors))
        shares = _led_back(setting, work.solved.coefficients(work.cross))
        return {name: ((each - shares[name]) / work.added[name]).to(each) for name, each in vectors.items()}

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
        return DualSystem(Solved(kernel, Outputs.train(setting)), cross, added, notes)

    def _groups(self, setting: Setting) -> list[list[ParameterSlice]]:
        """Parameter slices that each pass reads, as memory allows."""
        some = sample_rows(setting)
        outputs = len(setting.train) * (setting.network.classes - 1)
        words = sum(len(row.ids) for row in setting.train) / max(1, sum(len(row.ids) for row in some))
        times = words * (setting.network.classes - 1)
        sizes = table_sizes(sample_gradients(setting, some))
        tables = {name: int(looked_up * times) + 1 for name, looked_up in sizes.items()}
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
    added: Mapping[str, Float[Tensor, ...]]  # D, the diagonal of the curvature
    notes: dict[str, Any]

    def scores(self, leverage: bool) -> Scores:
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


def _led_back(setting: Setting, coefficients: Float[Tensor, "Q N K"]) -> dict[str, Tensor]:
    """Uᵀ c for each row of coefficients, by backward passes over all training examples at once."""
    parameters, basis = setting.parameters, directions(setting.network.classes).to(coefficients)
    found = {
        name: torch.zeros(len(coefficients), *each.shape, dtype=torch.float64, device=each.device)
        for name, each in parameters.items()
    }
    with progress.bar() as shown:
        task = shown.add_task("training examples", total=len(setting.train))
        for indices, batch in setting.batches(setting.train):
            with torch.enable_grad(), UnfusedOps():
                logits = setting.logits(batch)
            gradients = (coefficients[:, torch.from_numpy(indices).to(basis.device)] @ basis.T).to(logits)
            back = torch.autograd.grad(
                logits, list(parameters.values()), gradients, is_grads_batched=True, materialize_grads=True
            )
            for total, part in zip(found.values(), back, strict=True):
                total += part
            shown.advance(task, len(indices))
    return found
