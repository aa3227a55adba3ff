"""Sparse alignments by entropic optimal transport (Sinkhorn), batched and differentiable."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.errors import AssayError
from assay.types import at_least_float32

BARRED = (
    -1e30
)  # the logarithm of the mass in a cell that must stay empty; float32 can hold it divided by any softness of use
LOOKS = 10  # steps between two looks at the error: on a GPU each one waits


def sinkhorn(
    cost: Float[Tensor, "B N M"],
    rows: Float[Tensor, "B N"],
    columns: Float[Tensor, "B M"],
    epsilon: float = 0.05,
    steps: int = 100,
    tolerance: float = 1e-6,
    barred: Bool[Tensor, "B N M"] | None = None,
) -> Float[Tensor, "B N M"]:
    """The plan P with these marginals that minimises ⟨P, C⟩ − ε H(P) (Cuturi, 2013), in the log domain.

    ε is lowered from the size of the costs in the first half of the steps (Schmitzer, 2019); where costs are more than
    some hundred times ε, more steps are needed. What is left of the error at the end is put right as in Altschuler et
    al. (2017, algorithm 2), so marginals are exact whatever the number of steps, but something may then stand in cells
    that are `barred`. Rows and columns of no mass get none.
    """
    scores, heights, widths = -cost, _logs(rows), _logs(columns)
    empty = (rows <= 0)[:, :, None] | (columns <= 0)[:, None, :]
    empty = empty if barred is None else empty | barred
    scores = scores.masked_fill(empty, BARRED)
    down, right = torch.zeros_like(rows), torch.zeros_like(columns)  # the duals
    begin = cost.detach().abs().masked_fill(empty, 0.0).amax((1, 2)).clamp(min=epsilon)[:, None]
    for step in range(steps):
        softness = begin * (epsilon / begin) ** min(1.0, 2 * (step + 1) / steps)
        right = softness * (widths - ((scores + down[:, :, None]) / softness[..., None]).logsumexp(1))
        right = torch.where(columns > 0, right, 0.0)
        down = softness * (heights - ((scores + right[:, None, :]) / softness[..., None]).logsumexp(2))
        down = torch.where(rows > 0, down, 0.0)
        if 2 * (step + 1) >= steps and step % LOOKS == 0:
            plan = ((scores + down[:, :, None] + right[:, None, :]) / epsilon).detach().exp()
            if float((plan.sum(1) - columns).abs().max()) < tolerance:
                break
    plan = ((scores + down[:, :, None] + right[:, None, :]) / epsilon).exp()
    return _righted(plan.masked_fill(empty, 0.0), rows, columns)


def _logs(masses: Float[Tensor, "B N"]) -> Float[Tensor, "B N"]:
    return torch.where(masses > 0, masses, 1.0).log()


def _righted(
    plan: Float[Tensor, "B N M"], rows: Float[Tensor, "B N"], columns: Float[Tensor, "B M"]
) -> Float[Tensor, "B N M"]:
    """Rounds the plan to exact marginals."""
    least = torch.finfo(plan.dtype).tiny
    plan = plan * (rows / plan.sum(2).clamp(min=least)).clamp(max=1)[:, :, None]
    plan = plan * (columns / plan.sum(1).clamp(min=least)).clamp(max=1)[:, None, :]
    lacking = (rows - plan.sum(2)).clamp(min=0), (columns - plan.sum(1)).clamp(min=0)
    total = lacking[0].sum(1).clamp(min=torch.finfo(plan.dtype).eps)
    return plan + lacking[0][:, :, None] * lacking[1][:, None, :] / total[:, None, None]


@dataclass(frozen=True)
class Transport:
    """Options of an alignment between the words of a text and of a query, where aligning two has a cost or gain.

    Every word of the text is aligned at most once, and one of the query with at most `several` words. At most `most`
    pairs are aligned, or `exact`ly so many; None stands for as many as there can be. What is not aligned goes to
    dummies at no cost (Swanson et al., 2020, section 4: with `exact` their relaxed one-to-one, one-to-k with
    `several`, exact-k with `most`, and without `exact` their optional alignment).
    """

    most: int | None = None
    exact: bool = False
    several: int = 1
    price: float = 0.0  # of each pair that is aligned, added to its cost
    epsilon: float = 0.05
    steps: int = 100
    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        if (self.most is not None and self.most < 1) or self.several < 1 or self.steps < 1:
            raise AssayError("Alignments, words for each word and steps are whole numbers from 1.")
        if not 0 <= self.price < float("inf"):
            raise AssayError(f"The price of an aligned pair must be at least 0, got {self.price:g}.")
        if not 0 < self.epsilon < float("inf"):
            raise AssayError(f"The softness of an alignment must be above 0, got {self.epsilon:g}.")

    def __call__(
        self, cost: Float[Tensor, "B T S"], text: Bool[Tensor, "B T"], query: Bool[Tensor, "B S"]
    ) -> Float[Tensor, "B T S"]:
        """The alignment of each pair, from 0 to 1; 0 on padding."""
        given, cost = cost.dtype, at_least_float32(cost)
        ones, many = text.to(cost), query.to(cost) * self.several
        aligned = torch.minimum(ones.sum(1), many.sum(1))
        aligned = aligned if self.most is None else aligned.clamp(max=self.most)
        free = torch.zeros_like(aligned) if self.exact else aligned  # what the two free dummies may send one another
        rows = torch.cat([ones, torch.stack([many.sum(1) - aligned, free], 1)], 1)
        columns = torch.cat([many, torch.stack([ones.sum(1) - aligned, free], 1)], 1)
        bounds = torch.zeros(rows.shape[1], columns.shape[1], dtype=torch.bool, device=cost.device)
        bounds[-2:, -2:] = True
        bounds[-1, -1] = False
        wide = torch.nn.functional.pad(cost + self.price, (0, 2, 0, 2))
        barred = bounds.expand_as(wide)
        plan = sinkhorn(wide, rows, columns, self.epsilon, self.steps, self.tolerance, barred)
        return (plan[:, :-2, :-2] * (text[:, :, None] & query[:, None, :])).to(given)
