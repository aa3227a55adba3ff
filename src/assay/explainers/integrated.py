"""Integrated gradients, with as many gradients for each text as its completeness takes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.errors import AssayError, unknown
from assay.explainers.gradients import TOKENS, slopes
from assay.explainers.needs import demand, no_blank
from assay.models.erasure import asked, baseline, capacity, extents
from assay.types import BLANKS, Attribution, Batch, Model

FLOOR = 0.01  # a smaller difference between text and baseline counts as this much when a gap is related to it
LARGEST = 99  # nodes on one piece of the path


@dataclass(frozen=True)
class IntegratedGradients:
    """(e_t − b_t) · ∫ ∂p/∂e_t along the straight path from a baseline b to the text (Sundararajan et al., 2017, eq. 1).

    The scores of a text add up to p(text) − p(baseline). Gauss–Legendre nodes are laid over the whole path first; a
    piece of it over which the scores miss the change of p is cut in two, until the gap left is within the tolerance
    of that difference, or a text has had `most` nodes. `attribute` tells the gap, relative to the difference, and the
    nodes that were used.
    """

    baseline: str = "zero"
    tolerance: float = 1e-2
    nodes: int = 7
    most: int = 500

    def __post_init__(self) -> None:
        if self.baseline not in BLANKS:
            raise unknown("baseline", self.baseline, BLANKS)
        if not (self.nodes % 2 and 1 <= self.nodes <= LARGEST):  # so that the middle of a piece is a node
            raise AssayError(f"Integrated gradients take an odd number of nodes up to {LARGEST}, not {self.nodes}.")
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
        pieces = path.whole()
        scale = (pieces.after - pieces.before).abs().clamp(min=FLOOR)
        scores = pieces.after.new_zeros(batch.ids.shape)
        gaps, used = torch.zeros_like(scale), torch.zeros_like(scale)  # of the pieces that are settled; of all
        while len(pieces.example):
            part, middle = path.integrated(pieces, self.nodes)
            gap = part.sum(-1) - (pieces.after - pieces.before)
            used = used.index_add(0, pieces.example, torch.full_like(gap, self.nodes))
            enough = gaps.index_add(0, pieces.example, gap).abs() <= self.tolerance * scale
            wrong = (gap.abs() > self.tolerance * (scale[pieces.example] * pieces.width)) & ~enough[pieces.example]
            halves = torch.zeros_like(scale).index_add(0, pieces.example, 2.0 * wrong.to(scale))
            wrong &= (used + self.nodes * halves <= self.most)[pieces.example]
            scores.index_add_(0, pieces.example[~wrong], part[~wrong])
            gaps.index_add_(0, pieces.example[~wrong], gap[~wrong])
            pieces = pieces.halved(wrong, middle)
        return Attribution(scores, {"gap": gaps.abs() / scale, "nodes": used})


@dataclass(frozen=True)
class Pieces:
    """Parts of the paths of some examples: where each begins, how wide it is, and the probability at its ends."""

    example: Int[Tensor, " P"]
    low: Float[Tensor, " P"]
    width: Float[Tensor, " P"]
    before: Float[Tensor, " P"]
    after: Float[Tensor, " P"]

    def halved(self, chosen: Tensor, middle: Float[Tensor, " P"]) -> Pieces:
        """Both halves of the chosen pieces, given the probability in the middle of each."""
        half = self.width[chosen] / 2
        low, between = self.low[chosen], middle[chosen]
        return Pieces(
            self.example[chosen].repeat(2),
            torch.cat([low, low + half]),
            half.repeat(2),
            torch.cat([self.before[chosen], between]),
            torch.cat([between, self.after[chosen]]),
        )


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

    @torch.no_grad()
    def whole(self) -> Pieces:
        """The path of each text in one piece."""
        example = torch.arange(len(self.batch), device=self.target.device)
        ends = torch.cat([self.start, self.start + self.step])
        answers = self.model(ends, self.batch[example.repeat(2)]).probabilities
        before, after = answers.gather(1, self.target.repeat(2)[:, None])[:, 0].chunk(2)
        return Pieces(example, torch.zeros_like(before), torch.ones_like(before), before, after)

    def integrated(self, pieces: Pieces, nodes: int) -> tuple[Float[Tensor, "P T"], Float[Tensor, " P"]]:
        """Gradient times step of each token, integrated over each piece, and the probability in its middle."""
        lengths = (extents(self.batch).sum(-1) + asked(self.batch))[pieces.example]
        order = lengths.argsort(stable=True, descending=True)  # texts of like length are read together
        sizes, words = lengths[order].tolist(), self.batch.lengths[pieces.example][order].tolist()
        limit = min(TOKENS.get(lengths.device.type, 32_768), capacity(self.model, lengths.device))
        scores = pieces.low.new_zeros(len(order), self.batch.ids.shape[1])
        middle = torch.zeros_like(pieces.low)
        first = 0
        while first < len(order):
            stop = first + max(1, limit // (max(1, sizes[first]) * nodes))
            width, chosen = max(1, *words[first:stop]), order[first:stop]
            scores[chosen, :width], middle[chosen] = self._read(pieces, chosen, width, nodes)
            first += len(chosen)
        return scores, middle

    def _read(
        self, pieces: Pieces, chosen: Int[Tensor, " R"], width: int, nodes: int
    ) -> tuple[Float[Tensor, "R W"], Float[Tensor, " R"]]:
        """The same for some pieces of texts that are not longer than `width`."""
        abscissae, weights = (
            torch.as_tensor(part).to(pieces.low) / 2 for part in np.polynomial.legendre.leggauss(nodes)
        )
        example = pieces.example[chosen]
        share = pieces.low[chosen, None] + pieces.width[chosen, None] * (abscissae + 0.5)
        start, step = self.start[example, :width], self.step[example, :width]
        points = start[:, None] + share[..., None, None].to(step) * step[:, None]
        rows = self.batch.narrowed(width)[example.repeat_interleave(nodes)]
        answer, slope = slopes(self.model, points.flatten(0, 1), rows, self.target[example].repeat_interleave(nodes))
        along = (slope.reshape(-1, nodes, *step.shape[1:]).to(answer) * step[:, None].to(answer)).sum(-1)
        scores = (along * weights[:, None]).sum(1) * pieces.width[chosen, None]
        return scores, answer.reshape(-1, nodes)[:, nodes // 2]
