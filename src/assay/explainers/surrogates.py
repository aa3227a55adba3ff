"""Linear surrogate models of the output as a function of token presence: LIME and Kernel SHAP."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.errors import AssayError
from assay.explainers.needs import Scores, Target
from assay.explainers.shapley import Surrogate, every, keys, permutations, uniform, worth
from assay.stories import Measure, Story
from assay.types import Attribution, Batch, Model

LEAST = 6  # versions a token: with fewer, there are hardly more equations than coefficients


def _versions(samples: int, tokens: int) -> int:
    if samples < 2:
        raise AssayError(f"samples must be at least 2, got {samples}.")
    return max(samples, LEAST * tokens)


@dataclass(frozen=True)
class Lime(Surrogate):
    """The token's coefficient in a linear model that is fitted near the text (LIME; Ribeiro et al., 2016).

    Tokens are removed as the authors' `lime` does for texts: how many is uniform over 1..T, which ones is uniform
    among as many. Each version counts exp(−d² / 2·width²), d being 100 times the cosine distance between its indicator
    and that of the whole text; the fit is a ridge regression whose penalty is `ridge` for each sample (lime: 1 for
    5,000 samples). A text is read `samples` times, or LEAST times a token if it is long; a text with no more parts
    than that is read once in every part, which counts as often as it would have been drawn.
    `attribute` tells the `fit`: the share of the answers' weighted variance that the linear model has.
    """

    story: ClassVar[Story] = Story(measures=(Measure("fit", "fit of the surrogate (R²)"),))

    samples: int = 256
    width: float = 25.0
    ridge: float = 1 / 5000
    removal: str = "delete"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.width <= 0 or self.ridge <= 0:
            raise AssayError("width and ridge of LIME must be above 0.")

    def of_length(self, model: Model, batch: Batch, target: Target) -> Attribution:
        # differs from lime: a word that stands twice has two coefficients, and none is left out to shorten the list.
        versions = _versions(self.samples, batch.ids.shape[1])
        kept, counts = _lime_versions(keys(batch, self.seed), versions, batch.ids.shape[1])
        answers = worth(model, batch, target, kept, self.removal)
        present = kept.double()
        distance = 100 * (1 - present.mean(-1).sqrt())  # cos(z, 1) = √(|z| / T)
        weights = counts * (-((distance / self.width) ** 2) / 2).exp()
        scores, fit = ridge(present, answers, weights, self.ridge * versions)
        return Attribution(scores, {"fit": fit})


def _lime_versions(
    texts: Int[Tensor, " B"], versions: int, tokens: int
) -> tuple[Bool[Tensor, "B N T"], Float[Tensor, " N"]]:
    """The whole text and random subsets; the multiplicity of each."""
    if tokens < 31 and 1 << tokens <= versions:
        parts = every(tokens, texts.device)
        sizes = parts.sum(-1).tolist()
        drawn = [(versions - 1) / (tokens * math.comb(tokens, size)) for size in sizes[:-1]]
        counts = torch.tensor([*drawn, 1.0], dtype=torch.float64, device=texts.device)
        return parts.expand(len(texts), -1, -1), counts
    removed = 1 + (uniform(texts, versions) * tokens).long()
    removed[:, 0] = 0
    kept = permutations(texts + 1, versions, tokens) >= removed[..., None]
    return kept, torch.ones(versions, dtype=torch.float64, device=texts.device)


def ridge(
    present: Float[Tensor, "B N T"], answers: Float[Tensor, "B N"], weights: Float[Tensor, "B N"], penalty: float
) -> tuple[Scores, Float[Tensor, " B"]]:
    """The coefficients β of argmin Σ w (y − β·z − c)² + penalty ‖β‖², and the share of variance they explain."""
    share = (weights / weights.sum(-1, keepdim=True))[..., None]
    z = present - (share * present).sum(1, keepdim=True)
    y = answers[..., None] - (share * answers[..., None]).sum(1, keepdim=True)
    weighted = (weights[..., None] * z).mT
    square = weighted @ z + penalty * torch.eye(z.shape[-1], dtype=z.dtype, device=z.device)
    coefficients = torch.linalg.solve(square, weighted @ y)
    left, whole = ((share * residual**2).sum((1, 2)) for residual in (y - z @ coefficients, y))
    return coefficients[..., 0], 1 - left / whole.clamp(min=torch.finfo(z.dtype).tiny)


@dataclass(frozen=True)
class KernelShap(Surrogate):
    """The token's Shapley value, estimated by a weighted linear regression (Lundberg and Lee, 2017, theorem 2).

    Sets of one size count the Shapley kernel's mass of that size. Sizes are read in full from the outside inwards, as
    long as `samples` (LEAST times a token if the text is long) allow; of the others, random sets are read, each with
    its complement (Covert and Lee, 2021). If all 2^T sets can be read, the values are exact. The scores sum to
    v(all) − v(none) in any case.
    `attribute` tells whether it is `exact`: 1 where every set was read.
    """

    story: ClassVar[Story] = Story(measures=(Measure("exact", "texts without sampling (share)"),))

    samples: int = 256
    removal: str = "delete"
    seed: int = 0

    def of_length(self, model: Model, batch: Batch, target: Target) -> Attribution:
        texts, tokens = keys(batch, self.seed), batch.ids.shape[1]
        plan = planned(_versions(self.samples, tokens), tokens)
        drawn = permutations(texts, len(plan.sizes), tokens) < plan.sizes.to(texts.device)[:, None]
        read = plan.read.to(texts.device).expand(len(texts), -1, -1)
        kept = torch.cat([read, drawn, ~drawn], dim=1)
        answers = worth(model, batch, target, kept, self.removal)
        weights = torch.cat([plan.weights[2:], plan.drawn, plan.drawn]).to(texts.device)
        scores = constrained(kept[:, 2:].double(), answers[:, 2:], weights, answers[:, :2])
        return Attribution(scores, {"exact": torch.full_like(scores[:, 0], float(not len(plan.sizes)))})


@dataclass(frozen=True)
class Plan:
    """The sampling plan: coalitions that are enumerated (none and all first), and sizes of those drawn."""

    read: Bool[Tensor, "N T"]
    weights: Float[Tensor, " N"]
    sizes: Int[Tensor, " M"]
    drawn: Float[Tensor, " M"]


@lru_cache(maxsize=256)
def planned(versions: int, tokens: int) -> Plan:
    """The plan for a number of versions; the weights of one size sum to (T − 1) / (s (T − s))."""
    read = [torch.zeros(1, tokens, dtype=torch.bool), torch.ones(1, tokens, dtype=torch.bool)]
    weights = [torch.zeros(2, dtype=torch.float64)]
    masses = {size: _mass(size, tokens) for size in range(1, tokens // 2 + 1)}  # of a size and its complement's
    left = versions - 2
    for size in list(masses):
        count = math.comb(tokens, size) * (1 if 2 * size == tokens else 2)
        if left * masses[size] < count * sum(masses.values()):
            break
        positions = torch.tensor(list(combinations(range(tokens), size)))
        sets = torch.zeros(len(positions), tokens, dtype=torch.bool).scatter_(1, positions, True)
        read += [sets] if 2 * size == tokens else [sets, ~sets]
        weights.append(torch.full((count,), masses.pop(size) / count, dtype=torch.float64))
        left -= count
    sizes, drawn = _drawn(masses, left // 2)
    return Plan(torch.cat(read), torch.cat(weights), sizes, drawn)


def _mass(size: int, tokens: int) -> float:
    return (tokens - 1) / (size * (tokens - size)) * (1 if 2 * size == tokens else 2)


def _drawn(masses: dict[int, float], pairs: int) -> tuple[Int[Tensor, " M"], Float[Tensor, " M"]]:
    """The size of each coalition to draw, in proportion to the kernel, and its weight; complements weigh the same."""
    if not masses:
        return torch.empty(0, dtype=torch.long), torch.empty(0, dtype=torch.float64)
    sizes, mass = torch.tensor(list(masses)), torch.tensor(list(masses.values()), dtype=torch.float64)
    bounds = mass.cumsum(0) / mass.sum()
    middles = (torch.arange(pairs, dtype=torch.float64) + 0.5) / pairs
    chosen = torch.searchsorted(bounds, middles).clamp(max=len(sizes) - 1)
    return sizes[chosen], (mass / (2 * chosen.bincount(minlength=len(sizes)).clamp(min=1)))[chosen]


def constrained(
    present: Float[Tensor, "B N T"],
    answers: Float[Tensor, "B N"],
    weights: Float[Tensor, " N"],
    ends: Float[Tensor, "B 2"],
) -> Scores:
    """Weighted least squares for φ under Σ φ = v(all) − v(none); `ends` are v(none), v(all)."""
    tokens = present.shape[-1]
    identity = torch.eye(tokens, dtype=present.dtype, device=present.device)
    mean = torch.full_like(identity, 1 / tokens)
    total = ends[:, 1:] - ends[:, :1]
    # φ = total / T + ψ, and ψ has the sum 0: its equations are those of all φ without their mean.
    z = present @ (identity - mean)
    y = answers - ends[:, :1] - present.mean(-1) * total
    weighted = (weights[:, None] * z).mT
    square = weighted @ z + mean + 1e-12 * identity  # the last for sets that happen to leave a direction open
    apart: Tensor = torch.linalg.solve(square, weighted @ y[..., None])
    return total / tokens + apart[..., 0]


# Black-box explanations: the model is queried with subsets of a text's tokens.
