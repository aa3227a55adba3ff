"""Integrated gradients, with as many gradients for each text as its completeness takes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.special import eval_legendre, roots_jacobi
from torch import Tensor

from assay.errors import AssayError, unknown
from assay.explainers.gradients import room, slopes
from assay.explainers.needs import demand, no_blank
from assay.models.erasure import asked, baseline, extents
from assay.types import BLANKS, Attribution, Batch, Model

FLOOR = 0.01  # a smaller difference between text and baseline counts as this much when a gap is related to it
LARGEST = 99  # nodes on one piece of the path
BEGUN = {"cuda": 33}  # gradients that a path begins with: a GPU reads them in the time of few; elsewhere one piece


@dataclass(frozen=True)
class IntegratedGradients:
    """(e_t − b_t) · ∫ ∂p/∂e_t along the straight path from a baseline b to the text (Sundararajan et al., 2017, eq. 1).

    The scores of a text add up to p(text) − p(baseline). Gauss–Lobatto nodes are laid over the whole path first; a
    piece of it over which the scores miss the change of p is cut in two, whose ends are nodes that were read already,
    until the gap left is within the tolerance of that difference, or a text has had `most` gradients. `attribute`
    tells the gap, relative to the difference, and how many gradients were read ("nodes").
    """

    baseline: str = "zero"
    tolerance: float = 1e-2
    nodes: int = 5
    most: int = 500

    def __post_init__(self) -> None:
        if self.baseline not in BLANKS:
            raise unknown("baseline", self.baseline, BLANKS)
        if not (self.nodes % 2 and 3 <= self.nodes <= LARGEST):  # so that the middle of a piece is a node
            raise AssayError(f"Integrated gradients take an odd number of nodes from 3 to {LARGEST}, not {self.nodes}.")
        if self.tolerance <= 0:
            raise AssayError(f"The tolerance of integrated gradients is above 0, not {self.tolerance}.")

    def unfit(self, model: Model) -> str | None:
        return no_blank(model)

    def __call__(self, model: Model, batch: Batch, target: Int[Tensor, " B"]) -> Float[Tensor, "B T"]:
        return self.attribute(model, batch, target).scores

    def attribute(self, model: Model, batch: Batch, target: Int[Tensor, " B"]) -> Attribution:
        """Scores, the relative gap that is left ("gap") and the number of gradients ("nodes") of each text."""
        demand(self.unfit(model))
        path = Path.between(model, batch, target, self.baseline)
        begun = max(1, (BEGUN.get(target.device.type, 1) - 1) // (self.nodes - 1))
        pieces = path.cut(begun, self.nodes)
        scale = pieces.summed(pieces.change, len(batch)).abs().clamp(min=FLOOR)
        scores = pieces.answers.new_zeros(batch.ids.shape)
        gaps = torch.zeros_like(scale)  # of the pieces that are settled
        used = torch.full_like(scale, begun * (self.nodes - 1) + 1)
        while True:
            part = pieces.integrals
            gap = part.sum(-1) - pieces.change
            enough = (gaps + pieces.summed(gap, len(batch))).abs() <= self.tolerance * scale
            wrong = (gap.abs() > self.tolerance * (scale[pieces.example] * pieces.width)) & ~enough[pieces.example]
            more = pieces.summed(2.0 * (self.nodes - 2) * wrong.to(scale), len(batch))  # both halves, within
            wrong &= (used + more <= self.most)[pieces.example]
            used += more.where(used + more <= self.most, 0)
            scores.index_add_(0, pieces.example, part.where(~wrong[:, None], 0))
            gaps += pieces.summed(gap.where(~wrong, 0), len(batch))
            left = wrong.nonzero()[:, 0]
            if not len(left):
                break
            pieces = path.halved(pieces[left])
        return Attribution(scores, {"gap": gaps.abs() / scale, "nodes": used})


@dataclass(frozen=True)
class Pieces:
    """Parts of the paths of some examples: where each begins, how wide it is, and what was read at its nodes.

    `slopes` are the probability's, along the path, and of each token.
    """

    example: Int[Tensor, " P"]
    low: Float[Tensor, " P"]
    width: Float[Tensor, " P"]
    answers: Float[Tensor, "P N"]
    slopes: Float[Tensor, "P N T"]

    def __getitem__(self, chosen: Int[Tensor, " R"]) -> Pieces:
        return Pieces(*(part[chosen] for part in vars(self).values()))

    @property
    def change(self) -> Float[Tensor, " P"]:
        """Of the probability, from one end to the other."""
        return self.answers[:, -1] - self.answers[:, 0]

    @property
    def integrals(self) -> Float[Tensor, "P T"]:
        """The slope of each token, integrated over each piece."""
        _, weights = lobatto(self.answers.shape[1])
        return torch.einsum("n,pnt->pt", weights.to(self.slopes), self.slopes) * self.width[:, None]

    def summed(self, values: Float[Tensor, " P"], examples: int) -> Float[Tensor, " B"]:
        """The sum over the pieces of each example."""
        return values.new_zeros(examples).index_add(0, self.example, values)


@dataclass(frozen=True)
class Path:
    """The straight line from `start` to `start + step` for each text, and what a model says along it."""

    model: Model
    batch: Batch
    target: Int[Tensor, " B"]
    start: Float[Tensor, "B T D"]
    step: Float[Tensor, "B T D"]

    @classmethod
    def between(cls, model: Model, batch: Batch, target: Int[Tensor, " B"], name: str) -> Path:
        """The path from the baseline of that name to the text."""
        start, x = baseline(model, batch, name).detach(), model.embed(batch).detach()
        return cls(model, batch, target, start, (x - start) * batch.mask[..., None])

    def cut(self, count: int, nodes: int) -> Pieces:
        """The path of each text in so many pieces of one width; neighbours share a node."""
        device, examples = self.target.device, len(self.batch)
        ends = torch.arange(count, device=device, dtype=torch.float64)
        inside = lobatto(nodes)[0][:-1].to(device)
        shares = torch.cat([((ends[:, None] + inside) / count).flatten(), ends.new_ones(1)])
        example = torch.arange(examples, device=device)
        answers, slopes = self.read(example.repeat_interleave(len(shares)), shares.repeat(examples))
        answers = answers.reshape(examples, -1).unfold(1, nodes, nodes - 1).flatten(0, 1)
        slopes = slopes.reshape(examples, len(shares), -1).unfold(1, nodes, nodes - 1).flatten(0, 1).mT
        low = (ends / count).to(answers).repeat(examples)
        return Pieces(example.repeat_interleave(count), low, torch.full_like(low, 1 / count), answers, slopes)

    def halved(self, pieces: Pieces) -> Pieces:
        """Both halves of each piece."""
        count, nodes = pieces.answers.shape
        half = (pieces.width / 2).repeat_interleave(2)
        low = torch.stack([pieces.low, pieces.low + pieces.width / 2], dim=1).flatten()
        example = pieces.example.repeat_interleave(2)
        inside = lobatto(nodes)[0][1:-1].to(low)
        read = self.read(example.repeat_interleave(nodes - 2), (low[:, None] + half[:, None] * inside).flatten())
        known = (each[:, :: nodes // 2] for each in (pieces.answers, pieces.slopes))  # at the ends and in the middle
        answers, slopes = (
            torch.cat([ends[:, :2].flatten(0, 1)[:, None], found, ends[:, 1:].flatten(0, 1)[:, None]], dim=1)
            for ends, found in zip(
                known, (each.reshape(2 * count, nodes - 2, *each.shape[1:]) for each in read), strict=True
            )
        )
        return Pieces(example, low, half, answers, slopes)

    def read(
        self, example: Int[Tensor, " N"], share: Float[Tensor, " N"]
    ) -> tuple[Float[Tensor, " N"], Float[Tensor, "N T"]]:
        """The probability and its slope in the direction of the path, of each token, so far along the paths."""
        lengths = (extents(self.batch).sum(-1) + asked(self.batch))[example]
        order = lengths.argsort(stable=True, descending=True)  # texts of like length are read together
        sizes, words = (each[order].tolist() for each in (lengths, self.batch.lengths[example]))
        limit = room(self.model, self.target.device)
        parts, first = [], 0
        while first < len(sizes):
            chosen = order[first : first + max(1, limit // max(1, sizes[first]))]
            width = max(1, *words[first : first + len(chosen)])
            parts.append(self._read(example[chosen], share[chosen], width))
            first += len(chosen)
        back = order.argsort()
        answers, slopes = (torch.cat(each)[back] for each in zip(*parts, strict=True))
        return answers, slopes

    def _read(
        self, example: Int[Tensor, " R"], share: Float[Tensor, " R"], width: int
    ) -> tuple[Float[Tensor, " R"], Float[Tensor, "R T"]]:
        """The same for texts that are not longer than `width`."""
        start, step = self.start[example, :width], self.step[example, :width]
        points = start + share[:, None, None].to(step) * step
        answers, slope = slopes(self.model, points, self.batch.narrowed(width)[example], self.target[example])
        along = (slope.to(answers) * step.to(answers)).sum(-1)
        return answers, torch.nn.functional.pad(along, (0, self.batch.ids.shape[1] - width))


@lru_cache
def lobatto(nodes: int) -> tuple[Float[Tensor, " N"], Float[Tensor, " N"]]:
    """Where on the way from 0 to 1 the nodes of Gauss and Lobatto lie, both ends among them, and their weights."""
    places = np.concatenate([[-1.0], roots_jacobi(nodes - 2, 1, 1)[0], [1.0]])
    weights = 1 / (nodes * (nodes - 1) * eval_legendre(nodes - 1, places) ** 2)
    return torch.from_numpy((places + 1) / 2), torch.from_numpy(weights)
