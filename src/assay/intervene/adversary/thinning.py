"""Several walks to sparse attentions per text; in a long text, first over groups of tokens."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import one_hot

from assay.intervene.adversary.problem import ENTRIES, Problem
from assay.intervene.adversary.tilting import tilted
from assay.intervene.adversary.walk import Walk

SINGLES, GROUPS = 32, 32
"""In a text of more tokens, so many of the least attended ones stand alone in a walk, and the others form groups."""

ROUNDS = 8


def thinned(problem: Problem, walks: int, seed: int = 0) -> Float[Tensor, "B K T"]:
    """The ends of several walks with random directions; independent of padding and of the rest of the batch."""
    generator = torch.Generator().manual_seed(seed)
    tokens, classes = problem.values.shape[1:]
    noise = torch.rand(SINGLES + GROUPS, walks, dtype=torch.float64, generator=generator).T.to(problem.values.device)
    size = walks * min(tokens, SINGLES + GROUPS) * max(tokens, classes)
    return torch.cat([_thinned(part, noise) for part in problem.split(max(1, 16 * ENTRIES // max(size, 1)))])


def _thinned(problem: Problem, noise: Float[Tensor, "K N"]) -> Float[Tensor, "B K T"]:
    """A walk over all tokens or groups and, while it ends in groups, another one over the tokens in them."""
    groups = Groups.of(problem, problem.weights, problem.mask)
    ends = _walks(groups.problem, noise[:, : groups.mass.shape[1]])
    attention, number = (ends @ groups.member).flatten(0, 1), (ends > 0).sum(-1).flatten()
    for _ in range(ROUNDS):
        rows = ((attention > 0).sum(-1) > number).nonzero()[:, 0]
        if len(rows) == 0:
            break
        groups = Groups.of(problem.rows(rows // len(noise)), attention[rows], attention[rows] > 0)
        start = groups.mass[:, None]
        ends = Walk.start(groups.problem, start).end(torch.zeros_like(start))
        attention[rows], number[rows] = (ends @ groups.member)[:, 0], (ends > 0).sum(-1)[:, 0]
    return attention.reshape(len(problem.mask), len(noise), -1)


def _walks(problem: Problem, noise: Float[Tensor, "K T"]) -> Float[Tensor, "B K T"]:
    """The ends of walks; of every four, three start at random attentions with nearly the observed output.

    One of these leaves out most tokens that are attended more than others, and the fourth walk starts at the observed
    attention in any direction.
    """
    observed, tiny = problem.weights[:, None], torch.finfo(noise.dtype).tiny
    average = 1 / problem.mask.sum(-1).clamp(min=1)[:, None, None]
    kind = torch.arange(len(noise), device=noise.device)[:, None] % 4
    # exponential variables are in proportion to a random attention; tokens that are hardly used get more of it
    aim = (-noise.clamp(min=tiny).log() / (observed + average)).where(problem.mask[:, None], 0.0)
    aim = aim.where((kind != 2) | (observed < 2 * average) | (noise < 0.3), 0.0)
    aim = aim / aim.sum(-1, keepdim=True).clamp(min=tiny)
    start = observed.where(kind == 3, tilted(problem, aim))
    return Walk.start(problem, start).end((noise - 0.5).where(kind == 3, aim - observed))


@dataclass(frozen=True, eq=False)
class Groups:
    """A problem with groups in the place of tokens, the attention to them, and its distribution within groups.

    A mixture of tokens is a token: its logits are their mean, and the JSD of groups is at most that of the tokens.
    """

    problem: Problem
    mass: Float[Tensor, "B G"]
    member: Float[Tensor, "B G T"]

    @classmethod
    def of(cls, problem: Problem, attention: Float[Tensor, "B T"], used: Bool[Tensor, "B T"]) -> Groups:
        """Groups of the used tokens, one token each if they are few, in the proportions of this attention."""
        rank = problem.weights.where(used, 2.0).argsort(dim=-1, stable=True).argsort(dim=-1)
        group = rank.where(rank < SINGLES, SINGLES + (rank - SINGLES) % GROUPS)
        belongs = (one_hot(group, min(group.shape[-1], SINGLES + GROUPS)) * used[..., None]).mT.to(attention.dtype)
        mass = (belongs @ attention[..., None])[..., 0]
        member = (belongs * attention[:, None]).where(mass[..., None] > 0, belongs)
        member = member / member.sum(-1, keepdim=True).clamp(min=torch.finfo(mass.dtype).tiny)
        weights = (belongs @ problem.weights[..., None])[..., 0]
        real = belongs.any(-1)
        return cls(Problem(member @ problem.values, weights, real, problem.observed, problem.epsilon), mass, member)
