"""Shapley values: a token's marginal contribution, averaged over all orders of the tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.errors import AssayError
from assay.explainers.surrogates.coalitions import Surrogate, every, keys, permutations, worth
from assay.stories import Measure, Story
from assay.types import Attribution, Batch, Model

PAIRS = 4  # of orders at least: with fewer, the standard errors mean little


@dataclass(frozen=True)
class Shapley(Surrogate):
    """The token's Shapley value: its mean contribution over all orders of the tokens (Shapley, 1953).

    Texts of at most `exact` tokens are read in all 2^T parts. Of longer ones, random orders are followed, each also
    backwards (antithetic; Mitchell et al., 2022): as many as `samples` versions of the text allow, at least PAIRS
    pairs. Either way the scores sum to v(all) − v(none).
    `attribute` tells standard errors, the mean of those over a text, and whether the values are `exact`.
    """

    story: ClassVar[Story] = Story(
        measures=(
            Measure("standard_error", "standard error of a score"),
            Measure("exact", "texts without sampling (share)"),
        )
    )

    exact: int = 10
    samples: int = 512
    removal: str = "delete"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.exact > 20:
            raise AssayError("Exact Shapley values are for at most 20 tokens: a text of 21 would be read 2^21 times.")

    def explain(self, model: Model, batch: Batch, target: Int[Tensor, " B"]) -> Attribution:
        exact = batch.ids.shape[1] <= max(1, self.exact)  # one token has one order
        scores, errors = (self._enumerated if exact else self._sampled)(model, batch, target)
        numbers = {"standard_error": errors.mean(-1), "exact": torch.full_like(errors[:, 0], float(exact))}
        return Attribution(scores, numbers, errors)

    def _enumerated(
        self, model: Model, batch: Batch, target: Int[Tensor, " B"]
    ) -> tuple[Float[Tensor, "B T"], Float[Tensor, "B T"]]:
        parts = every(batch.ids.shape[1], batch.ids.device)
        answers = worth(model, batch, target, parts.expand(len(batch), -1, -1), self.removal)
        values = answers @ weights(batch.ids.shape[1]).to(answers)
        return values, torch.zeros_like(values)

    def _sampled(
        self, model: Model, batch: Batch, target: Int[Tensor, " B"]
    ) -> tuple[Float[Tensor, "B T"], Float[Tensor, "B T"]]:
        rows, tokens = batch.ids.shape
        pairs = max(PAIRS, self.samples // (2 * (tokens - 1)))
        ahead = permutations(keys(batch, self.seed), pairs, tokens)
        ranks = torch.cat([ahead, tokens - 1 - ahead], dim=1)
        sizes = torch.arange(1, tokens, device=ranks.device)
        between = (ranks[:, :, None] < sizes[:, None]).flatten(1, 2)
        ends = torch.stack([torch.zeros_like(batch.mask), batch.mask], dim=1)
        answers = worth(model, batch, target, torch.cat([ends, between], dim=1), self.removal)
        none, whole = (end[:, None, None].expand(-1, 2 * pairs, 1) for end in (answers[:, 0], answers[:, 1]))
        path = torch.cat([none, answers[:, 2:].reshape(rows, 2 * pairs, tokens - 1), whole], dim=-1)
        gains = path.diff(dim=-1).gather(-1, ranks)  # what each token added when its turn came
        both = gains.reshape(rows, 2, pairs, tokens).mean(1)
        return both.mean(1), both.std(1) / math.sqrt(pairs)


def weights(tokens: int) -> Float[Tensor, "N T"]:
    """φ_i = Σ_S weights[S, i] v(S): (s − 1)! (T − s)! / T! for sets with i, −s! (T − s − 1)! / T! for those without."""
    parts = every(tokens, torch.device("cpu"))
    added = torch.tensor(
        [1 / (tokens * math.comb(tokens - 1, size)) for size in range(tokens)], dtype=torch.float64
    )  # the share of orders in which a token comes right after `size` given others
    sizes = parts.sum(-1, keepdim=True)
    return torch.where(parts, added[(sizes - 1).clamp(min=0)], -added[sizes.clamp(max=tokens - 1)])
