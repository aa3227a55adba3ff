"""A feasible walk from one attention to sparser and more different ones."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.intervene.adversary.directions import free, jsd_gradient, scaled, tvd_gradient, until_zero
from assay.intervene.adversary.path import Path
from assay.intervene.adversary.problem import Problem

STANDSTILL = 1e-10
NEAR = 1e-6
TINY = 1e-9
"""With so small an epsilon the whole output is held from the start."""


@dataclass(frozen=True, eq=False)
class Walk:
    """K attentions per example, the tokens each may use, and the output constraints that are active.

    Some furthest attention has no more non-zero weights than there are classes: with more, there is a direction that
    changes neither the output nor the sum, JSD is convex along it and so grows in one of its two senses, and a weight
    falls to zero. A walk follows such directions, that of the steepest growth each time. At first only the sum is
    held. When the output has moved by half of what is allowed, the measure that moves it most is held too, and the
    next one at two thirds, three quarters and so on.
    """

    problem: Problem
    attention: Float[Tensor, "B K T"]
    usable: Bool[Tensor, "B K T"]
    held: Float[Tensor, "B K T N"]  # each is linear in the attention; the first is its sum
    number: Int[Tensor, "B K 1"]  # of those beside the sum
    moved: Float[Tensor, "B K 1"]  # how far the output was moved at the start
    live: Int[Tensor, "B 1 1"]  # classes

    @classmethod
    def start(cls, problem: Problem, attention: Float[Tensor, "B K T"]) -> Walk:
        """A walk at its start."""
        usable, moved = problem.mask[:, None].expand_as(attention), problem.tvd(attention)[..., None]
        held, number = usable[..., None].to(attention), torch.zeros_like(moved, dtype=torch.long)
        live = problem.alive.sum(-1)[:, None, None]
        if problem.epsilon < TINY:
            measures = problem.values[..., 1:] - problem.values[..., :1]
            held = torch.cat([held, held * scaled(measures.mT)[0].mT[:, None]], -1)
            number = number + live - 1
        return cls(problem, attention, usable, held, number, moved, live)

    def end(self, first: Float[Tensor, "B K T"]) -> Float[Tensor, "B K T"]:
        """The attention at the end of the walk.

        From the observed attention, where JSD has no gradient, `first` is the direction until a weight falls to zero.
        """
        away = (self.attention - self.problem.weights[:, None]).abs().amax(-1, keepdim=True)
        walk, still = self, away < NEAR
        for _ in range(self.attention.shape[-1] - 1):
            whole = (walk.usable == self.problem.mask[:, None]).all(-1, keepdim=True)
            gradient = first.where(still & whole, jsd_gradient(self.problem, walk.attention))
            direction, size = scaled(free(gradient, walk.held))
            going = (walk.usable.sum(-1, keepdim=True) > walk.number + 1) & (size > STANDSTILL)
            if not bool(going.any()):
                break
            walk = walk._step(direction, going)
        total = walk.attention.sum(-1, keepdim=True)
        return walk.attention / total.where(total > 0, 1.0)

    def _step(self, direction: Float[Tensor, "B K T"], going: Bool[Tensor, "B K 1"]) -> Walk:
        """One step until a weight becomes 0, which removes its token, or until the output reaches its level."""
        length, token = until_zero(self.attention, direction)
        length = length.where(going, 0.0)
        allowed = self._allowed(direction, length)
        whole = going & (allowed == length)
        gone = torch.zeros_like(self.usable).scatter(-1, token, whole)
        attention = (self.attention + allowed * direction).clamp(min=0).where(~gone, 0.0)
        # a token that is gone has no part in what is held; in place, as it is large, and the walk so far is not kept
        position = token[..., None].expand(*token.shape, self.held.shape[-1])
        self.held.scatter_(2, position, self.held.gather(2, position).where(~whole[..., None], 0.0))
        walk = replace(self, attention=attention, usable=self.usable & ~gone)
        return walk._hold(going & ~whole)

    def _allowed(self, direction: Float[Tensor, "B K T"], length: Float[Tensor, "B K 1"]) -> Float[Tensor, "B K 1"]:
        """A feasible step length: this one, or approximately the largest before the output leaves its level."""
        start, change = self.attention @ self.problem.values, direction @ self.problem.values
        path, level = Path(start, change, self.problem.observed[:, None].expand_as(start)), self._level()
        beyond = (path.moved(length) > level)[..., 0]
        allowed = path.some(beyond).before(length[beyond], level[beyond], 0.01 * self.problem.safe)
        return length.masked_scatter(beyond[..., None], allowed)

    def _level(self) -> Float[Tensor, "B K 1"]:
        """The output change at which one more constraint becomes active."""
        part = (self.number + 1) / (self.number + 2)
        # once the whole output is held, rounding alone still moves it
        part = part.where(self.number < self.live - 1, 1.0)
        return self.moved + part * (self.problem.safe - self.moved)

    def _hold(self, chosen: Bool[Tensor, "B K 1"]) -> Walk:
        """Adds the linearised output change to the active constraints of the chosen walks."""
        if not bool(chosen.any()):
            return self
        number, held = self.number + chosen, self.held
        if int(number.max()) == held.shape[-1]:
            held = torch.cat([held, torch.zeros_like(held[..., :1])], -1)
        rows = chosen[..., 0]
        kept, gradient = held[rows][:, None], tvd_gradient(self.problem, self.attention)[rows][:, None]
        # what is held already is taken out, so that the measures stay far from each other
        measure, _ = scaled(free(gradient, kept))
        example, walk = rows.nonzero(as_tuple=True)
        held[example, walk, :, number[rows][:, 0]] = measure[:, 0]
        return replace(self, held=held, number=number)
