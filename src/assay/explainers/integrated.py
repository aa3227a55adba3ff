"""Integrated gradients with adaptive quadrature: as many gradients per text as completeness needs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.special import eval_legendre, roots_jacobi
from torch import Tensor

from assay.errors import AssayError, unknown
from assay.explainers.gradients import probability_gradient, room
from assay.explainers.needs import Detailed, Target, no_blank
from assay.models import budget
from assay.models.erasure import at_most, baseline, extents, query_lengths
from assay.stories import Measure, Story
from assay.types import BLANKS, Attribution, Batch, Model

FLOOR = 0.01  # a smaller difference between text and baseline counts as this much when a gap is related to it
LARGEST = 99  # nodes on one segment of the path
AHEAD = 3  # times that all of a path is cut in two before it is known whether it must be, where that takes no time


@dataclass(frozen=True)
class IntegratedGradients(Detailed):
    """(e_t − b_t) · ∫ ∂p/∂e_t along the straight path from a baseline b to the text (Sundararajan et al., 2017, eq. 1).

    The scores of a text add up to p(text) − p(baseline). Gauss–Lobatto nodes are laid over the whole path first; a
    segment of it over which the scores miss the change of p is cut in two, whose ends are nodes that were read already,
    until the gap left is within the tolerance of that difference, or a text has had `most` gradients. `attribute`
    tells the gap, relative to the difference, and how many gradients were used ("nodes"). Where a GPU would idle,
    it reads some ahead that may not be used.
    """

    story: ClassVar[Story] = Story(
        measures=(
            Measure("gap", "what the scores leave unexplained (share of the output)"),
            Measure("nodes", "gradients along the path"),
        )
    )

    baseline: str = "zero"
    tolerance: float = 1e-2
    nodes: int = 5
    most: int = 500

    def __post_init__(self) -> None:
        if self.baseline not in BLANKS:
            raise unknown("baseline", self.baseline, BLANKS)
        if not (self.nodes % 2 and 3 <= self.nodes <= LARGEST):  # so that the middle of a segment is a node
            raise AssayError(f"nodes of integrated gradients must be odd, from 3 to {LARGEST}, got {self.nodes}.")
        if self.tolerance <= 0:
            raise AssayError(f"tolerance of integrated gradients must be above 0, got {self.tolerance}.")

    def unfit(self, model: Model) -> str | None:
        return no_blank(model)

    def explain(self, model: Model, batch: Batch, target: Target) -> Attribution:
        """Scores, the relative completeness gap ("gap") and the number of gradients ("nodes") of each text."""
        path = Path.between(model, batch, target, self.baseline)
        segments, ahead = path.whole(self.nodes)
        scale = segments.change.abs().clamp(min=FLOOR)
        scores, gaps = scale.new_zeros(batch.ids.shape), torch.zeros_like(scale)  # of the segments that are settled
        used = torch.full_like(scale, self.nodes)
        while True:
            part = segments.integrals
            gap = part.sum(-1) - segments.change
            enough = (gaps + segments.summed(gap, len(batch))).abs() <= self.tolerance * scale
            allowed = self.tolerance * (scale[segments.example] * segments.width)
            wrong = (gap.abs() > allowed) & ~enough[segments.example]
            more = segments.summed(2.0 * (self.nodes - 2) * wrong.to(scale), len(batch))  # both halves, within
            wrong &= (used + more <= self.most)[segments.example]
            used += more.where(used + more <= self.most, 0)
            scores.index_add_(0, segments.example, part.where(~wrong[:, None], 0))
            gaps += segments.summed(gap.where(~wrong, 0), len(batch))
            left = wrong.nonzero()[:, 0]
            if not len(left):
                break
            segments = path.halved(segments[left], ahead)
        return Attribution(scores, {"gap": gaps.abs() / scale, "nodes": used})


@dataclass(frozen=True)
class Segments:
    """Some of the 2^`level` parts of the paths of examples by their number, and what was read at the nodes of each.

    `gradients` are the probability's, along the path, and of each token.
    """

    level: int
    example: Int[Tensor, " P"]
    number: Int[Tensor, " P"]
    answers: Float[Tensor, "P N"]
    gradients: Float[Tensor, "P N T"]

    def __getitem__(self, chosen: Int[Tensor, " R"]) -> Segments:
        parts = (self.example, self.number, self.answers, self.gradients)
        return Segments(self.level, *(part[chosen] for part in parts))

    @property
    def width(self) -> float:
        """Of each, in parts of the path."""
        return float(0.5**self.level)

    @property
    def change(self) -> Float[Tensor, " P"]:
        """Of the probability, from one end to the other."""
        return self.answers[:, -1] - self.answers[:, 0]

    @property
    def integrals(self) -> Float[Tensor, "P T"]:
        """The gradient of each token, integrated over each segment."""
        _, weights = lobatto(self.answers.shape[1])
        return torch.einsum("n,pnt->pt", weights.to(self.gradients) * self.width, self.gradients)

    def summed(self, values: Float[Tensor, " P"], examples: int) -> Float[Tensor, " B"]:
        """The sum over the segments of each example."""
        return values.new_zeros(examples).index_add(0, self.example, values)


Read = tuple[Float[Tensor, "..."], Float[Tensor, "... T"]]
"""Probabilities, and their gradients in the direction of the path, of each token."""


@dataclass(frozen=True)
class Path:
    """The straight line from `start` to `start + step` for each text, and what a model says along it."""

    model: Model
    batch: Batch
    target: Target
    start: Float[Tensor, "B T D"]
    step: Float[Tensor, "B T D"]

    @classmethod
    def between(cls, model: Model, batch: Batch, target: Target, name: str) -> Path:
        """The path from the baseline of that name to the text."""
        start, x = baseline(model, batch, name).detach(), model.embed(batch).detach()
        return cls(model, batch, target, start, (x - start) * batch.mask[..., None])

    def whole(self, nodes: int) -> tuple[Segments, list[Read]]:
        """Each text's path as one segment, and prefetched values by level, within each segment of each example."""
        device, examples, inner = self.target.device, len(self.batch), nodes - 2
        counts = [2**level for level in range(self._cuts(nodes) + 1)]
        within = [self._inside(torch.arange(count, device=device), count, nodes).flatten() for count in counts]
        shares = torch.cat([within[0].new_tensor([0.0, 1.0]), *within])
        example = torch.arange(examples, device=device)
        answers, gradients = self.read(example.repeat_interleave(len(shares)), shares.repeat(examples))
        answers, gradients = answers.reshape(examples, -1), gradients.reshape(examples, len(shares), -1)
        sizes = [2, *(inner * count for count in counts)]
        (low, *found), (first, *along) = torch.split(answers, sizes, dim=1), torch.split(gradients, sizes, dim=1)
        whole = Segments(0, example, torch.zeros_like(example), _between(low, found[0]), _between(first, along[0]))
        shapes = [(examples, count, inner) for count in counts]
        ahead = [
            (one.reshape(shape), other.reshape(*shape, -1))
            for one, other, shape in zip(found, along, shapes, strict=True)
        ]
        return whole, ahead

    def _cuts(self, nodes: int) -> int:
        """How often all paths are cut in two ahead of need."""
        spare = min(LARGEST, budget.room(self.target.device, "path", at_most(self.batch)))
        return next((cuts for cuts in range(AHEAD, 0, -1) if 2 + (nodes - 2) * (2 ** (cuts + 1) - 1) <= spare), 0)

    def halved(self, segments: Segments, ahead: list[Read]) -> Segments:
        """Both halves of each segment; what was read ahead is not read again."""
        nodes, level = segments.answers.shape[1], segments.level + 1
        example = segments.example.repeat_interleave(2)
        number = torch.stack([2 * segments.number, 2 * segments.number + 1], dim=1).flatten()
        if level < len(ahead):
            read = [each[example, number] for each in ahead[level]]
        else:
            shares = self._inside(number, 2**level, nodes)
            found = self.read(example.repeat_interleave(nodes - 2), shares.flatten())
            read = [each.reshape(*shares.shape, *each.shape[1:]) for each in found]
        ends = (each[:, :: nodes // 2] for each in (segments.answers, segments.gradients))  # both, and the middle
        halves = (torch.stack([each[:, :2], each[:, 1:]], dim=1).flatten(0, 1) for each in ends)
        return Segments(level, example, number, *(_between(*each) for each in zip(halves, read, strict=True)))

    def _inside(self, number: Int[Tensor, " P"], count: int, nodes: int) -> Float[Tensor, "P _"]:
        """How far along a path of so many segments the nodes within some of them lie."""
        precise = torch.promote_types(self.step.dtype, torch.float32)
        return (number[:, None] + lobatto(nodes)[0][1:-1].to(precise).to(number.device)) / count

    def read(self, example: Int[Tensor, " N"], share: Float[Tensor, " N"]) -> Read:
        """What the model says so far along the paths of these examples."""
        limit, width = room(self.model, self.target.device), self.batch.ids.shape[1]
        if len(example) * at_most(self.batch) <= limit * len(self.batch):
            return self._read(example, share, width)
        lengths = (extents(self.batch).sum(-1) + query_lengths(self.batch))[example]
        order = lengths.argsort(stable=True, descending=True)  # texts of like length are read together
        sizes, words = (each[order].tolist() for each in (lengths, self.batch.lengths[example]))
        parts, first = [], 0
        while first < len(sizes):
            chosen = order[first : first + max(1, limit // max(1, sizes[first]))]
            width = max(1, *words[first : first + len(chosen)])
            parts.append(self._read(example[chosen], share[chosen], width))
            first += len(chosen)
        back = order.argsort()
        answers, gradients = (torch.cat(each)[back] for each in zip(*parts, strict=True))
        return answers, gradients

    def _read(self, example: Int[Tensor, " R"], share: Float[Tensor, " R"], width: int) -> Read:
        """The same for texts that are not longer than `width`."""
        start, step = self.start[example, :width], self.step[example, :width]
        points = start + share[:, None, None].to(step) * step
        answers, gradient = probability_gradient(
            self.model, points, self.batch.narrowed(width)[example], self.target[example]
        )
        along = (gradient.to(answers) * step.to(answers)).sum(-1)
        return answers, torch.nn.functional.pad(along, (0, self.batch.ids.shape[1] - width))


def _between(ends: Float[Tensor, "P 2 *T"], within: Float[Tensor, "P _ *T"]) -> Float[Tensor, "P N *T"]:
    """What was read at all nodes, in their order."""
    return torch.cat([ends[:, :1], within, ends[:, 1:]], dim=1)


@lru_cache
def lobatto(nodes: int) -> tuple[Float[Tensor, " N"], Float[Tensor, " N"]]:
    """Where on the way from 0 to 1 the nodes of Gauss and Lobatto lie, both ends among them, and their weights."""
    positions = np.concatenate([[-1.0], roots_jacobi(nodes - 2, 1, 1)[0], [1.0]])
    weights = 1 / (nodes * (nodes - 1) * eval_legendre(nodes - 1, positions) ** 2)
    return torch.from_numpy((positions + 1) / 2), torch.from_numpy(weights)
