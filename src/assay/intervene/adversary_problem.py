"""The adversarial attention problem (Jain and Wallace 2019, equation 1), its candidates and its solution."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.errors import AssayError

# The Jensen-Shannon divergence of attentions, dense and sparse.


LOG2 = math.log(2.0)


def jsd(p: Float[Tensor, "*#B T"], q: Float[Tensor, "*#B T"]) -> Float[Tensor, "*B"]:
    """The Jensen-Shannon divergence over the last axis in nats; values and gradients are finite at zero weights."""
    apart = shared(p, q) + 0.5 * LOG2 * (p + q)
    return apart.sum(-1).clamp(min=0)


def shared(p: Float[Tensor, "*#B"], q: Float[Tensor, "*#B"]) -> Float[Tensor, "*B"]:
    """One token's contribution to JSD − log 2; 0 where either weight is 0, else negative.

    JSD(P, Q) = log 2 + Σ_t shared(p_t, q_t) for two distributions, so a sparse P needs only its own tokens.
    """
    return 0.5 * (_x_log_x(p) + _x_log_x(q) - _x_log_x(p + q))


def _x_log_x(x: Tensor) -> Tensor:
    return x * x.clamp(min=torch.finfo(x.dtype).tiny).log()


# The adversarial attention problem (Jain and Wallace 2019, equation 1), and its solution.


ENTRIES = 2**17
"""Numbers in one temporary array: 1 MiB, with about a dozen alive at once; one long text may take a few times more."""

ROUNDING = 5e-13
LEAST = -700.0
"""Log-odds below which a probability is 0 in double precision, or next to it."""


@dataclass(frozen=True, eq=False)
class Adversaries:
    """K attentions per example, best first, whose output is within epsilon (total variation) of the observed one.

    A slot for which there was no further attention holds the observed one, with jsd and tvd 0. `upper` bounds the
    largest possible JSD from above: it equals jsd[:, 0] where `kind` is "exact", and wherever else the two meet the
    answer is the optimum too. All numbers are float64.
    """

    weights: Float[Tensor, "B K T"]
    jsd: Float[Tensor, "B K"]  # from the observed attention, in nats
    tvd: Float[Tensor, "B K"]  # of the outputs
    upper: Float[Tensor, " B"]
    kind: str  # "exact", "bracket" or "lower bound"


@dataclass(frozen=True, eq=False)
class Problem:
    """Logits per token, observed attention and epsilon, in float64, with zeros on padding."""

    values: Float[Tensor, "B T C"]
    weights: Float[Tensor, "B T"]
    mask: Bool[Tensor, "B T"]
    observed: Float[Tensor, "B C"]  # the output under the observed attention
    epsilon: float

    @classmethod
    def of(
        cls,
        values: Float[Tensor, "B T C"],
        weights: Float[Tensor, "B T"],
        mask: Bool[Tensor, "B T"],
        epsilon: float,
    ) -> Problem:
        """The problem in float64, with weights normalised in that precision."""
        if values.shape[-1] < 2:
            raise AssayError("An adversary needs token logits of at least two classes.")
        if not epsilon >= 0:
            raise AssayError(f"epsilon, a change of output, must be at least 0, got {epsilon}.")
        values = values.detach().to(torch.float64, copy=True).where(mask[..., None], 0.0)
        weights = weights.detach().to(torch.float64, copy=True).where(mask, 0.0)
        weights = weights / weights.sum(-1, keepdim=True).clamp(min=torch.finfo(torch.float64).tiny)
        return cls(values, weights, mask.clone(), (weights[:, None] @ values)[:, 0].softmax(-1), epsilon)

    @property
    def ceiling(self) -> Float[Tensor, " B"]:
        """The maximum JSD of any attention: JSD is convex, so a one-hot attention attains it."""
        single = (LOG2 + shared(torch.ones_like(self.weights), self.weights)).where(self.mask, 0.0)
        return single.amax(-1).clamp(min=0)

    @property
    def limit(self) -> float:
        """Epsilon plus a rounding tolerance."""
        return self.epsilon + ROUNDING

    @property
    def safe(self) -> float:
        """Epsilon minus a rounding margin, at least a tiny positive number."""
        return max(self.epsilon * (1 - 1e-10), 0.5 * ROUNDING)

    def tvd(self, weights: Float[Tensor, "B K T"]) -> Float[Tensor, "B K"]:
        """The total variation distance between the outputs under other attentions and the observed output."""
        return 0.5 * ((weights @ self.values).softmax(-1) - self.observed[:, None]).abs().sum(-1)

    @property
    def odds(self) -> Float[Tensor, "B T C"]:
        """The log-odds of each class against the predicted one, for each token alone."""
        predicted = self.observed.argmax(-1)[:, None, None].expand(-1, self.mask.shape[1], 1)
        return self.values - self.values.gather(-1, predicted)

    @property
    def alive(self) -> Bool[Tensor, "B C"]:
        """The classes that can have a probability above 0; barred ones cannot."""
        return (self.odds.where(self.mask[..., None], -torch.inf).amax(1) > LEAST) | (self.observed > 0)

    def of_alive(self) -> Problem:
        """The problem without barred classes; padded classes have no effect."""
        alive = self.alive
        order = alive.to(torch.uint8).argsort(dim=-1, descending=True, stable=True)
        classes = order[:, : max(int(alive.sum(-1).max()), 2)]
        values = self.odds.where(alive[:, None], 2 * LEAST)
        values = values.gather(-1, classes[:, None].expand(-1, self.mask.shape[1], -1)).where(self.mask[..., None], 0.0)
        return Problem(values, self.weights, self.mask, self.observed.gather(-1, classes), self.epsilon)

    def on(self, tokens: Int[Tensor, "B S"]) -> Problem:
        """The problem restricted to these tokens, in this order."""
        values = self.values.gather(1, tokens[..., None].expand(-1, -1, self.values.shape[-1]))
        weights, mask = self.weights.gather(1, tokens), self.mask.gather(1, tokens)
        return Problem(values, weights, mask, self.observed, self.epsilon)

    def split(self, rows: int) -> Iterator[Problem]:
        """The problem in batches of at most `rows` examples."""
        for start in range(0, len(self.mask), rows):
            yield self.rows(slice(start, start + rows))

    def rows(self, chosen: slice | Int[Tensor, " N"]) -> Problem:
        """The problem of some examples."""
        values, weights, mask, observed = (
            field[chosen] for field in (self.values, self.weights, self.mask, self.observed)
        )
        return Problem(values, weights, mask, observed, self.epsilon)

    def answer(
        self, weights: Float[Tensor, "B K T"], kind: str, upper: Float[Tensor, " B"] | None = None
    ) -> Adversaries:
        """The solution from attentions, sorted; without `upper`, the best one is the optimum."""
        apart, order = jsd(weights, self.weights[:, None]).sort(dim=-1, descending=True, stable=True)
        weights = weights.gather(1, order[..., None].expand_as(weights))
        return Adversaries(weights, apart, self.tvd(weights), apart[:, 0] if upper is None else upper, kind)


# Sparse candidate attentions: JSD in constant time each, and a diverse selection.


SHORTLIST = 256


@dataclass(frozen=True, eq=False)
class Candidates:
    """N attentions an example with at most S non-zero weights; a score is the JSD from the observed attention, or
    minus infinity where the candidate is not allowed."""

    positions: Int[Tensor, "B N S"]
    shares: Float[Tensor, "B N S"]
    scores: Float[Tensor, "B N"]

    @classmethod
    def stack(cls, parts: Sequence[Candidates]) -> Candidates:
        """The candidates of several batches, concatenated."""
        columns = zip(*((part.positions, part.shares, part.scores) for part in parts), strict=True)
        return cls(*(torch.cat(column) for column in columns))

    def join(self, other: Candidates) -> Candidates:
        """Both lists of candidates, concatenated."""
        return Candidates(
            torch.cat([self.positions, other.positions], 1),
            torch.cat([self.shares, other.shares], 1),
            torch.cat([self.scores, other.scores], 1),
        )

    def best(self, number: int = SHORTLIST) -> Candidates:
        """The few hundred best candidates, best first."""
        scores, chosen = top(self.scores, number)
        return Candidates(pick(self.positions, chosen), pick(self.shares, chosen), scores)

    def and_pairs(
        self, pairs: Callable[[slice, Tensor], Candidates], alone: Float[Tensor, "B T"], number: int, step: int
    ) -> Candidates:
        """The best so many of these and of all pairs of tokens, which are sorted from the least to the most attended.

        `pairs` gives those of some tokens with later ones that are above a least score, `alone` is the score of each
        token alone. No pair beats its less attended token alone (convexity), so the walk over a long text ends as soon
        as the next token alone is no better than the last of the shortlist.
        """
        found = self.best(number)
        for start in range(0, alone.shape[1] - 1, step):
            full = found.scores.shape[1] == number
            last = found.scores[:, -1:] if full else torch.full_like(alone[:, :1], -torch.inf)
            if bool((alone[:, start : start + 1] <= last).all()):
                break
            found = found.join(pairs(slice(start, start + step), last)).best(number)
        return found

    def relabel(self, tokens: Int[Tensor, "B T"]) -> Candidates:
        """The same attentions with position t renamed to tokens[:, t]."""
        there = tokens[:, None].expand(-1, self.scores.shape[1], -1).gather(-1, self.positions)
        return Candidates(there, self.shares, self.scores)

    def dense(self, tokens: int) -> Float[Tensor, "B N T"]:
        """The attentions as dense rows."""
        empty = self.shares.new_zeros(*self.scores.shape, tokens)
        return empty.scatter_add(-1, self.positions, self.shares)

    def jsd(self, weights: Float[Tensor, "B T"]) -> Float[Tensor, "B N"]:
        """The JSD of every candidate from one attention per example."""
        there = weights[:, None].expand(-1, self.scores.shape[1], -1).gather(-1, self.positions)
        return LOG2 + shared(self.shares, there).sum(-1)

    def diverse(self, observed: Float[Tensor, "B T"], k: int) -> Float[Tensor, "B K T"]:
        """The best candidate and k - 1 more, selected greedily for diversity.

        Each maximises its JSD from the observed attention plus its mean JSD from those picked before it, the two
        terms of Jain and Wallace (2019), equation 2.
        """
        shortlist = self.best()
        scores, apart = shortlist.scores.clone(), torch.zeros_like(shortlist.scores)
        picked: list[Tensor] = []
        for number in range(k):
            best, chosen = (scores + apart / max(number, 1)).max(-1, keepdim=True)
            one = Candidates(pick(shortlist.positions, chosen), pick(shortlist.shares, chosen), best)
            allowed = one.dense(observed.shape[-1])[:, 0].where(best.isfinite(), observed)
            picked.append(allowed)
            scores = scores.scatter(1, chosen, -torch.inf)
            apart = apart + shortlist.jsd(allowed)
        return torch.stack(picked, 1)


def one_token(scores: Float[Tensor, "B T"]) -> Candidates:
    """One-hot candidates with these scores."""
    positions, one = torch.arange(scores.shape[1], device=scores.device).expand_as(scores), torch.ones_like(scores)
    return Candidates(torch.stack([positions, positions], -1), torch.stack([one, 1 - one], -1), scores)


def top(scores: Float[Tensor, "B M"], number: int = SHORTLIST) -> tuple[Float[Tensor, "B N"], Int[Tensor, "B N"]]:
    """The highest scores of each example, descending, and their indices."""
    best, chosen = scores.topk(min(number, scores.shape[1]))
    return best, chosen


def pick(rows: Tensor, chosen: Int[Tensor, "B N"]) -> Tensor:
    """Rows of axis 1 by index, per example."""
    return rows.gather(1, chosen[..., None].expand(-1, -1, rows.shape[-1]))
