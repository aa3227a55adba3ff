"""The outputs within epsilon (total variation) of the observed one, for three classes, in logit differences.

For three classes the total variation distance of y from ŷ is the largest |y_c - ŷ_c|. With the convex function
φ_c(z) = logsumexp(z_a, z_b) - z_c = log((1 - y_c) / y_c), the ball is {z : least_c ≤ φ_c(z) ≤ most_c for each c}:
a hexagon with curved sides. The sides φ_c = most_c bulge outwards, the sides φ_c = least_c bulge inwards, and the
corners are the outputs (ŷ_a - ε, ŷ_b + ε, ŷ_c). Sides that no probability can reach are infinitely far away.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

KNOTS = 4
"""Points on each side that bulges outwards, its two corners among them."""

NEWTON = 40
ROUNDING = 1e-10


@dataclass(frozen=True, eq=False)
class Ball:
    """The region itself."""

    least: Float[Tensor, "B 3"]
    most: Float[Tensor, "B 3"]
    knots: Float[Tensor, "B 3 K"]  # on the side of class a: the log-odds of class a + 1 against class a + 2

    @classmethod
    def around(cls, observed: Float[Tensor, "B 3"], epsilon: float) -> Ball:
        """The ball of radius epsilon around the observed output."""
        observed = observed.clamp(min=1e-300)
        second, third = observed.roll(-1, -1), observed.roll(-2, -1)
        least = (second + third - epsilon).clamp(min=0).log() - (observed + epsilon).log()
        most = (second + third + epsilon).log() - (observed - epsilon).clamp(min=0).log()
        low, high = second.log() - (third + epsilon).log(), (second + epsilon).log() - third.log()
        return cls(least, most, _spread(low, high))

    def holds(self, logits: Float[Tensor, "B P N 3"]) -> Bool[Tensor, "B P N"]:
        """Whether logits lie inside."""
        sides, least, most = _sides(logits), self.least[:, None, None], self.most[:, None, None]
        return ((sides >= least - ROUNDING) & (sides <= most + ROUNDING)).all(-1)

    def crossings(self, start: Float[Tensor, "B P 3"], end: Float[Tensor, "B P 3"]) -> Float[Tensor, "B P N"]:
        """Where the segment from start to end crosses a side, as a fraction; outside (0, 1) if it does not."""
        return _crossings(start, end, torch.stack([self.least, self.most], -1))

    def points(self) -> Float[Tensor, "B N 3"]:
        """The logits of the corners and of the other knots."""
        return self.lifted(self.knots, _softplus(self.knots))

    def lifted(self, odds: Float[Tensor, "B 3 N"], height: Float[Tensor, "B 3 N"]) -> Float[Tensor, "B M 3"]:
        """Logits with these log-odds of class a + 1 against a + 2, and most_a - height of a + 2 against a."""
        third = self.most[..., None] - height
        logits = torch.stack([torch.zeros_like(third), odds + third, third], -1)
        return torch.cat([logits[:, a].roll(a, -1) for a in range(3)], 1)


@dataclass(frozen=True, eq=False)
class Hull:
    """A polygon that contains the ball: sides that bulge outwards are replaced by tangents at the knots.

    The excess lies between a side and its tangents, for a point below ŷ_a - ε and beyond a corner of that side would
    have another class above ŷ + ε. So its corners are those of the ball and the points where tangents meet.
    """

    ball: Ball

    def holds(self, logits: Float[Tensor, "B P N 3"]) -> Bool[Tensor, "B P N"]:
        """Whether logits lie inside."""
        above = (_sides(logits) >= self.ball.least[:, None, None] - ROUNDING).all(-1)
        below = self._tangents(logits) <= self.ball.most[:, None, None, :, None] + ROUNDING
        return above & below.flatten(-2).all(-1)

    def crossings(self, start: Float[Tensor, "B P 3"], end: Float[Tensor, "B P 3"]) -> Float[Tensor, "B P N"]:
        """Where the segment from start to end crosses a side, as a fraction; outside (0, 1) if it does not."""
        first, last = self._tangents(start[:, :, None])[:, :, 0], self._tangents(end[:, :, None])[:, :, 0]
        straight = (self.ball.most[:, None, :, None] - first) / (last - first)
        curved = _crossings(start, end, self.ball.least[..., None])
        return torch.cat([curved, straight.flatten(2)], -1)

    def points(self) -> Float[Tensor, "B N 3"]:
        """The logits of the corners and of the intersections of adjacent tangents."""
        knots = self.ball.knots
        slope, offset = self._slopes()
        rise = slope.diff(dim=-1)
        middle = 0.5 * (knots[..., 1:] + knots[..., :-1])
        meet = (-offset.diff(dim=-1) / rise).where(rise > 1e-5, middle)
        ends = knots[..., [0, -1]]
        height = torch.cat([offset[..., :-1] + slope[..., :-1] * meet, _softplus(ends)], -1)
        return self.ball.lifted(torch.cat([meet, ends], -1), height)

    def _slopes(self) -> tuple[Float[Tensor, "B 3 K"], Float[Tensor, "B 3 K"]]:
        """Slope and offset of the tangents to log(1 + exp(x)) at the knots."""
        slope = self.ball.knots.sigmoid()
        return slope, _softplus(self.ball.knots) - slope * self.ball.knots

    def _tangents(self, logits: Float[Tensor, "B P N 3"]) -> Float[Tensor, "B P N 3 K"]:
        """The tangents to φ_a at the knots; each is nowhere above φ_a."""
        slope, offset = self._slopes()
        second, third = _others(logits)
        return third[..., None] + offset[:, None, None] + slope[:, None, None] * (second - third)[..., None]


def _spread(low: Float[Tensor, "B 3"], high: Float[Tensor, "B 3"]) -> Float[Tensor, "B 3 K"]:
    """Knots from low to high, denser where log(1 + exp(x)) is more curved: equal steps of ∫ √(second derivative)."""
    first, last = (0.5 * low).exp().atan(), (0.5 * high).exp().atan()
    position = torch.linspace(0, 1, KNOTS, dtype=low.dtype, device=low.device)[1:-1]
    inner = 2 * (first[..., None] + position * (last - first)[..., None]).tan().log()
    return torch.cat([low[..., None], inner, high[..., None]], -1)


def _softplus(x: Tensor) -> Tensor:
    return torch.logaddexp(x, torch.zeros_like(x))


def _others(logits: Tensor) -> tuple[Tensor, Tensor]:
    """For each class a, how far the logits of the classes a + 1 and a + 2 lie above its own."""
    return logits.roll(-1, -1) - logits, logits.roll(-2, -1) - logits


def _sides(logits: Tensor) -> Tensor:
    """φ of each class."""
    return torch.logaddexp(*_others(logits))


def _crossings(start: Tensor, end: Tensor, levels: Float[Tensor, "B 3 L"]) -> Float[Tensor, "B P N"]:
    """Where φ_c equals level c on the segment from start to end; φ is convex, so once from each end."""
    both = [_descend(start, end, levels), 1 - _descend(end, start, levels)]
    return torch.cat([share.flatten(2) for share in both], -1)


def _descend(start: Tensor, end: Tensor, levels: Float[Tensor, "B 3 L"]) -> Float[Tensor, "B P 3 L"]:
    """Where φ_c first falls to level c on the segment from start to end; NaN if it does not."""
    here, there = torch.stack(_others(start)), torch.stack(_others(end))
    (height, slope), (last, rise) = _climb(here, there - here), _climb(there, there - here)
    level = levels[:, None]
    falls = (height[..., None] > level) & (slope < 0)[..., None]
    falls &= (last[..., None] <= level) | (rise > 0)[..., None]
    example, segment, side, _ = falls.nonzero(as_tuple=True)
    start, end = here[:, example, segment, side], there[:, example, segment, side]
    share = levels.new_full(falls.shape, torch.nan)
    share[falls] = _newton(start, end - start, level.expand_as(falls)[falls])
    return share


def _newton(start: Float[Tensor, "2 N"], step: Float[Tensor, "2 N"], level: Float[Tensor, " N"]) -> Float[Tensor, " N"]:
    """The first root of φ = level from start along step; Newton's method never overshoots a convex function."""
    share = torch.zeros_like(level)
    for _ in range(NEWTON):
        height, slope = _climb(start + share * step, step)
        change = (level - height) / slope.where(slope < 0, torch.nan)
        share = share + change
        if not bool((change.abs() > 1e-14).any()):
            break
    return share


def _climb(others: Tensor, step: Tensor) -> tuple[Tensor, Tensor]:
    """φ at logit differences, and its derivative along a step."""
    share = (others[0] - others[1]).sigmoid()
    return torch.logaddexp(others[0], others[1]), step[1] + share * (step[0] - step[1])
