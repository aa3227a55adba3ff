"""The adversarial attention problem (Jain and Wallace 2019, equation 1), its candidates and its solution."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.errors import AssayError

Attention = Float[Tensor, "B T"]
Attentions = Float[Tensor, "B K T"]
Mask = Bool[Tensor, "B T"]
Values = Float[Tensor, "B T C"]
Bound = Float[Tensor, " B"]
Row = TypeVar("Row")

ENTRIES = 2**17
"""Numbers in one temporary array: 1 MiB, with about a dozen alive at once; one long text may take a few times more."""

LOG2 = math.log(2.0)
ROUNDING = 5e-13
LEAST = -700.0
"""Log-odds below which a probability is 0 in double precision, or next to it."""

SHORTLIST = 256


def jsd(p: Float[Tensor, "*#B T"], q: Float[Tensor, "*#B T"]) -> Float[Tensor, "*B"]:
    """The Jensen-Shannon divergence over the last axis in nats; values and gradients are finite at zero weights."""
    apart = shared(p, q) + 0.5 * LOG2 * (p + q)
    return apart.sum(-1).clamp(min=0)


def shared(p: Float[Tensor, "*#B"], q: Float[Tensor, "*#B"]) -> Float[Tensor, "*B"]:
    """One token's contribution to JSD − log 2; 0 where either weight is 0, else negative.

    JSD(P, Q) = log 2 + Σ_t shared(p_t, q_t) for two distributions, so a sparse P needs only its own tokens.
    """
    return 0.5 * (_x_log_x(p) + _x_log_x(q) - _x_log_x(p + q))


def one_hot_jsd(weights: Tensor) -> Tensor:
    """The JSD of all weight on one token, for each token by its observed weight."""
    return LOG2 + shared(torch.ones_like(weights), weights)


def mixture_jsd(share: Tensor, of: Tensor, other: Tensor) -> Tensor:
    """The JSD of a mixture of two tokens, given the share of one and the observed weights of both."""
    return LOG2 + shared(share, of) + shared(1 - share, other)


def _x_log_x(x: Tensor) -> Tensor:
    return x * x.clamp(min=torch.finfo(x.dtype).tiny).log()


def chosen_rows(record: Row, chosen: slice | Tensor) -> Row:
    """A record of tensors, all with the examples as the first axis, for some of the examples."""
    fields: dict[str, Any] = vars(record)
    return replace(record, **{name: each[chosen] for name, each in fields.items() if isinstance(each, Tensor)})  # type: ignore[type-var]


def in_chunks(record: Row, examples: int, rows: int) -> Iterator[Row]:
    """The record in batches of at most `rows` of its examples."""
    for start in range(0, examples, rows):
        yield chosen_rows(record, slice(start, start + rows))


@dataclass(frozen=True, eq=False)
class Adversaries:
    """K attentions per example, best first, whose output is within epsilon (total variation) of the observed one.

    A slot for which there was no further attention holds the observed one, with jsd and tvd 0. `upper` bounds the
    largest possible JSD from above: it equals jsd[:, 0] where `kind` is "exact", and wherever else the two meet the
    answer is the optimum too. All numbers are float64.
    """

    weights: Attentions
    jsd: Float[Tensor, "B K"]  # from the observed attention, in nats
    tvd: Float[Tensor, "B K"]  # of the outputs
    upper: Bound
    kind: str  # "exact", "bracket" or "lower bound"


@dataclass(frozen=True, eq=False)
class Problem:
    """Logits per token, observed attention and epsilon, in float64, with zeros on padding."""

    values: Values
    weights: Attention
    mask: Mask
    observed: Float[Tensor, "B C"]  # the output under the observed attention
    epsilon: float

    @classmethod
    def of(cls, values: Values, weights: Attention, mask: Mask, epsilon: float) -> Problem:
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
    def ceiling(self) -> Bound:
        """The maximum JSD of any attention: JSD is convex, so a one-hot attention attains it."""
        return one_hot_jsd(self.weights).where(self.mask, 0.0).amax(-1).clamp(min=0)

    @property
    def limit(self) -> float:
        """Epsilon plus a rounding tolerance."""
        return self.epsilon + ROUNDING

    @property
    def safe(self) -> float:
        """Epsilon minus a rounding margin, at least a tiny positive number."""
        return max(self.epsilon * (1 - 1e-10), 0.5 * ROUNDING)

    def tvd(self, weights: Attentions) -> Float[Tensor, "B K"]:
        """The total variation distance between the outputs under other attentions and the observed output."""
        return 0.5 * ((weights @ self.values).softmax(-1) - self.observed[:, None]).abs().sum(-1)

    @property
    def odds(self) -> Values:
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
        return replace(self, values=values, observed=self.observed.gather(-1, classes))

    def on(self, tokens: Int[Tensor, "B S"]) -> Problem:
        """The problem restricted to these tokens, in this order."""
        weights, mask = self.weights.gather(1, tokens), self.mask.gather(1, tokens)
        return replace(self, values=pick(self.values, tokens), weights=weights, mask=mask)

    def split(self, rows: int) -> Iterator[Problem]:
        """The problem in batches of at most `rows` examples."""
        return in_chunks(self, len(self.mask), rows)

    def answer(self, weights: Attentions, kind: str, upper: Bound | None = None) -> Adversaries:
        """The solution from attentions, sorted; without `upper`, the best one is the optimum."""
        apart, order = jsd(weights, self.weights[:, None]).sort(dim=-1, descending=True, stable=True)
        weights = pick(weights, order)
        return Adversaries(weights, apart, self.tvd(weights), apart[:, 0] if upper is None else upper, kind)


@dataclass(frozen=True, eq=False)
class Candidates:
    """N attentions an example with at most S non-zero weights; a score is the JSD from the observed attention, or
    minus infinity where the candidate is not allowed."""

    positions: Int[Tensor, "B N S"]
    shares: Float[Tensor, "B N S"]
    scores: Float[Tensor, "B N"]

    @classmethod
    def cat(cls, parts: Sequence[Candidates], axis: int = 0) -> Candidates:
        """The candidates of several batches, or further ones of the same batch with axis 1."""
        columns = zip(*((part.positions, part.shares, part.scores) for part in parts), strict=True)
        return cls(*(torch.cat(column, axis) for column in columns))

    def join(self, other: Candidates) -> Candidates:
        """Both lists of candidates, concatenated."""
        return Candidates.cat([self, other], 1)

    def best(self, number: int = SHORTLIST) -> Candidates:
        """The few hundred best candidates, best first."""
        scores, chosen = top(self.scores, number)
        return Candidates(pick(self.positions, chosen), pick(self.shares, chosen), scores)

    def and_pairs(
        self, pairs: Callable[[slice, Tensor], Candidates], alone: Attention, number: int, step: int
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
        return replace(self, positions=self._at(tokens))

    def _at(self, rows: Tensor) -> Tensor:
        """The entry of a row per example at every position."""
        return rows[:, None].expand(-1, self.scores.shape[1], -1).gather(-1, self.positions)

    def dense(self, tokens: int) -> Float[Tensor, "B N T"]:
        """The attentions as dense rows."""
        empty = self.shares.new_zeros(*self.scores.shape, tokens)
        return empty.scatter_add(-1, self.positions, self.shares)

    def jsd(self, weights: Attention) -> Float[Tensor, "B N"]:
        """The JSD of every candidate from one attention per example."""
        return LOG2 + shared(self.shares, self._at(weights)).sum(-1)

    def diverse(self, observed: Attention, k: int) -> Attentions:
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


def one_token(scores: Attention, size: int = 2) -> Candidates:
    """One-hot candidates with these scores, in as many positions as other candidates have."""
    positions = torch.arange(scores.shape[1], device=scores.device).expand_as(scores)
    shares = torch.zeros(*scores.shape, size, dtype=scores.dtype, device=scores.device)
    shares[..., 0] = 1
    return Candidates(positions[..., None].expand(shares.shape), shares, scores)


def top(scores: Float[Tensor, "B M"], number: int = SHORTLIST) -> tuple[Float[Tensor, "B N"], Int[Tensor, "B N"]]:
    """The highest scores of each example, descending, and their indices."""
    best, chosen = scores.topk(min(number, scores.shape[1]))
    return best, chosen


def pick(rows: Tensor, chosen: Int[Tensor, "B N"]) -> Tensor:
    """Rows of axis 1 by index, per example."""
    return rows.gather(1, chosen[..., None].expand(-1, -1, rows.shape[-1]))
