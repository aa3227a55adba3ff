"""The adversarial attention problem (Jain and Wallace 2019, equation 1), and its solution."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.errors import AssayError
from assay.intervene.adversary.distance import LOG2, jsd, shared

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
