"""Relaxations: distributions of masks through which a selector can be trained."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from assay.errors import AssayError
from assay.rationales.units import Decoding
from assay.types import at_least_float32

# The relaxation protocol, and the sample it returns.


@dataclass(frozen=True)
class Drawn:
    """K sampled masks over the units of each text, 0 on padding.

    `chance` is the probability that a unit is read at all, P(z > 0), through which size and prior can be steered.
    Where no gradient passes through `z`, `log_probability` is that of the whole draw.
    """

    z: Float[Tensor, "B K U"]
    chance: Float[Tensor, "B K U"]
    log_probability: Float[Tensor, " B"] | None = None


@runtime_checkable
class Relaxation(Protocol):
    """Protocol: a distribution of masks given scores; a frozen dataclass with its options."""

    @property
    def parameters(self) -> int:
        """Scores needed for each unit."""

    def draw(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Drawn:
        """Samples a mask, or returns the one mask of a deterministic relaxation; uses torch's random state."""

    def chance(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Float[Tensor, "B K U"]:
        """The probabilities by which units are ranked in decoding: as a rule P(z > 0); 0 on padding."""


# Noise samples for relaxations.


EDGE = 1e-6  # uniform numbers stay this far from 0 and 1


def uniform(like: Float[Tensor, "*N"]) -> Float[Tensor, "*N"]:
    """Uniform on (0, 1), in single precision at least, since half precision loses the tails."""
    precise = torch.promote_types(like.dtype, torch.float32)
    return torch.rand_like(like, dtype=precise).clamp(EDGE, 1 - EDGE)


def logistic(like: Float[Tensor, "*N"]) -> Float[Tensor, "*N"]:
    """Logistic noise: the difference of two Gumbel samples."""
    return uniform(like).logit()


# Independent Bernoulli masks, trained by the score function.


@dataclass(frozen=True)
class Bernoulli:
    """z ~ Bernoulli(σ(θ)); Lei et al. (2016), trained by REINFORCE (Williams, 1992)."""

    @property
    def parameters(self) -> int:
        return 1

    def draw(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Drawn:
        chance = self.chance(theta, mask)
        z = torch.bernoulli(chance.detach())
        unlikely = F.binary_cross_entropy_with_logits(theta[..., 0], z, reduction="none")
        return Drawn(z, chance, -(unlikely * mask[:, None]).sum((1, 2)))

    def chance(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Float[Tensor, "B K U"]:
        return theta[..., 0].sigmoid() * mask[:, None]


# Relaxed Bernoulli (binary concrete) masks: soft and differentiable.


@dataclass(frozen=True)
class RelaxedBernoulli:
    """z = σ((θ + noise) / τ) with logistic noise: the binary concrete distribution of Maddison et al. (2017).

    z is never 0, so its chance is that of z > 1/2, which is σ(θ) at any temperature.
    """

    temperature: float = 0.7

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise AssayError(f"A temperature must be above 0, got {self.temperature:g}.")

    @property
    def parameters(self) -> int:
        return 1

    def draw(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Drawn:
        soft = ((theta[..., 0] + logistic(theta[..., 0])) / self.temperature).sigmoid()
        return Drawn(soft.to(theta) * mask[:, None], self.chance(theta, mask))

    def chance(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Float[Tensor, "B K U"]:
        return theta[..., 0].sigmoid() * mask[:, None]


# Straight-through Gumbel–softmax masks: hard values with the gradient of soft ones.


@dataclass(frozen=True)
class GumbelStraightThrough:
    """z ~ Bernoulli(σ(θ)); its gradient is that of σ((θ + noise) / τ) with logistic noise.

    Jang et al. (2017): Gumbel noise on both of two logits, whose difference is logistic.
    """

    temperature: float = 1.0

    @property
    def parameters(self) -> int:
        return 1

    def draw(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Drawn:
        soft = ((theta[..., 0] + logistic(theta[..., 0])) / self.temperature).sigmoid()
        hard = (soft > 0.5).to(soft)
        return Drawn((hard - soft.detach() + soft).to(theta) * mask[:, None], self.chance(theta, mask))

    def chance(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Float[Tensor, "B K U"]:
        return theta[..., 0].sigmoid() * mask[:, None]


# Straight-through masks: deterministic hard values with the gradient of their probabilities.


@dataclass(frozen=True)
class StraightThrough:
    """z is 1 where σ(θ) is above one half, and its gradient is that of σ(θ); Chang et al. (2019)."""

    @property
    def parameters(self) -> int:
        return 1

    def draw(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Drawn:
        chance = self.chance(theta, mask)
        return Drawn((chance > 0.5).to(chance) - chance.detach() + chance, chance)

    def chance(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Float[Tensor, "B K U"]:
        return theta[..., 0].sigmoid() * mask[:, None]


# Straight-through top-k masks: the best units of each text, with the gradient of their probabilities.


@dataclass(frozen=True)
class TopKStraightThrough:
    """z is 1 for the best units, the `rate` of them rounded up, and its gradient is that of σ(θ)."""

    rate: float = 0.2

    @property
    def parameters(self) -> int:
        return 1

    def draw(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Drawn:
        chance = self.chance(theta, mask)
        hard = Decoding("top", self.rate)(theta[..., 0].detach(), mask)
        return Drawn(hard - chance.detach() + chance, chance)

    def chance(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Float[Tensor, "B K U"]:
        return theta[..., 0].sigmoid() * mask[:, None]


# Masks from an explainer's scores.


@dataclass(frozen=True)
class Saliency:
    """Deterministic, without parameters: min–max scales the scores of each text."""

    @property
    def parameters(self) -> int:
        return 1

    def draw(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Drawn:
        chance = self.chance(theta, mask)
        return Drawn(chance, chance)

    def chance(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Float[Tensor, "B K U"]:
        scores, real = theta[..., 0], mask[:, None]
        least = scores.masked_fill(~real, torch.inf).amin(-1, keepdim=True)
        most = scores.masked_fill(~real, -torch.inf).amax(-1, keepdim=True)
        spread = (most - least).where(most > least, 1.0)
        return (EDGE + (1 - 2 * EDGE) * (scores - least) / spread).where(real, 0.0)


# Hard concrete masks: soft values, often exactly 0 or 1 by stretching and clipping.


@dataclass(frozen=True)
class HardConcrete:
    """z = clip(low + (high − low) σ((θ + noise) / τ), 0, 1) with logistic noise; Louizos et al. (2018)."""

    temperature: float = 2 / 3
    low: float = -0.1
    high: float = 1.1

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise AssayError(f"A temperature must be above 0, got {self.temperature:g}.")
        if not (self.low < 0 and self.high >= 1):
            raise AssayError(f"A mask is stretched from below 0 to 1 or above, not {self.low:g} to {self.high:g}.")

    @property
    def parameters(self) -> int:
        return 1

    def draw(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Drawn:
        soft = ((theta[..., 0] + logistic(theta[..., 0])) / self.temperature).sigmoid()
        stretched = self.low + (self.high - self.low) * soft
        return Drawn(stretched.clamp(0, 1).to(theta) * mask[:, None], self.chance(theta, mask))

    def chance(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Float[Tensor, "B K U"]:
        return self._above(theta, -self.low / self.high) * mask[:, None]

    def ends(
        self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]
    ) -> tuple[Float[Tensor, "B K U"], Float[Tensor, "B K U"]]:
        """P(z = 0) and P(z = 1)."""
        whole = self._above(theta, (1 - self.low) / (self.high - 1) if self.high > 1 else inf)
        return 1 - self.chance(theta, mask), whole * mask[:, None]

    def _above(self, theta: Float[Tensor, "B K U P"], odds: float) -> Float[Tensor, "B K U"]:
        """The probability that the unstretched value has higher odds."""
        return (theta[..., 0] - self.temperature * log(odds)).sigmoid()


# HardKuma masks: a stretched and clipped Kumaraswamy distribution with two shape parameters.


SHAPES = 1e-2, 100.0  # of the distribution, at least and at most
NODES = 32  # of the quadrature


@dataclass(frozen=True)
class HardKuma:
    """z = clip(low + (high − low) k, 0, 1), where P(k > x) = (1 − x^a)^b; Bastings et al. (2019).

    k is Kumaraswamy's, whose shapes a and b are softplus(θ).
    """

    low: float = -0.1
    high: float = 1.1

    def __post_init__(self) -> None:
        if not (self.low < 0 and self.high > 1):
            raise AssayError(f"A mask must be stretched from below 0 to above 1, got {self.low:g} to {self.high:g}.")

    @property
    def parameters(self) -> int:
        return 2

    def draw(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Drawn:
        a, b = self._shapes(theta)
        chosen = ((-torch.expm1(uniform(a).log() / b)).log() / a).exp()  # for which P(k > x) is uniform
        z = (self.low + (self.high - self.low) * chosen).clamp(0, 1)
        return Drawn(z.to(theta) * mask[:, None], self.chance(theta, mask))

    def chance(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Float[Tensor, "B K U"]:
        return self._above(theta, 0.0).to(theta) * mask[:, None]

    def ends(
        self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]
    ) -> tuple[Float[Tensor, "B K U"], Float[Tensor, "B K U"]]:
        """P(z = 0) and P(z = 1)."""
        return 1 - self.chance(theta, mask), self._above(theta, 1.0).to(theta) * mask[:, None]

    def mean(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Float[Tensor, "B K U"]:
        """E[z], the integral of P(z > x) from 0 to 1, by Gauss–Legendre quadrature."""
        # differs from the code of Bastings et al. (2019), where this is the mean of k, neither stretched nor clipped
        nodes, weights = np.polynomial.legendre.leggauss(NODES)
        parts = [weight / 2 * self._above(theta, (node + 1) / 2) for node, weight in zip(nodes, weights, strict=True)]
        return torch.stack(parts).sum(0).to(theta) * mask[:, None]

    def _above(self, theta: Float[Tensor, "B K U P"], x: float) -> Float[Tensor, "B K U"]:
        """P(z > x), for x = 1 that of z = 1."""
        a, b = self._shapes(theta)
        unstretched = (x - self.low) / (self.high - self.low)
        return (b * torch.log1p(-(unstretched**a))).exp()

    @staticmethod
    def _shapes(theta: Float[Tensor, "B K U P"]) -> tuple[Float[Tensor, "B K U"], Float[Tensor, "B K U"]]:
        a, b = F.softplus(at_least_float32(theta)).clamp(*SHAPES).unbind(-1)
        return a, b


# Masks by Euclidean projection onto a budget (a capped simplex), deterministic.


HALVINGS = 60  # of the interval in which a threshold lies


@dataclass(frozen=True)
class CappedSimplex:
    """z maximises θ·z / τ − ‖z‖² / 2 for 0 ≤ z ≤ 1 and Σz ≤ k, where k is the `rate` of units, rounded up.

    SPECTRA (Guerreiro and Martins, 2021) with a budget alone. As the temperature goes to 0, z picks the k best units
    of positive score, so units are ranked by σ(θ).
    """

    # differs from Guerreiro and Martins (2021): no reward for neighbours, so that it has a closed form
    rate: float = 0.2
    temperature: float = 0.1

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise AssayError(f"A temperature must be above 0, got {self.temperature:g}.")

    @property
    def parameters(self) -> int:
        return 1

    def draw(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Drawn:
        budget = Decoding("top", self.rate).counts(mask)[:, None, None]
        real = mask[:, None].expand(theta.shape[:-1])
        return Drawn(capped(theta[..., 0] / self.temperature, real, budget.to(theta)), self.chance(theta, mask))

    def chance(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Float[Tensor, "B K U"]:
        return theta[..., 0].sigmoid() * mask[:, None]


def capped(
    scores: Float[Tensor, "*N U"], mask: Bool[Tensor, "*N U"], budget: Float[Tensor, "*#N 1"]
) -> Float[Tensor, "*N U"]:
    """clip(scores − τ, 0, 1) with the smallest τ ≥ 0 that keeps the sum within the budget.

    The set of units strictly between 0 and 1 is found by bisection; on it τ is linear in the scores, so the gradient
    of z is exact: that of the scores less its mean on this set where the budget binds.
    """
    with torch.no_grad():
        fixed = scores.masked_fill(~mask, -torch.inf)
        low = torch.zeros_like(scores[..., :1])
        high = fixed.amax(-1, keepdim=True).clamp(min=0)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            over = (fixed - middle).clamp(0, 1).sum(-1, keepdim=True) > budget
            low, high = middle.where(over, low), high.where(over, middle)
        binding = fixed.clamp(0, 1).sum(-1, keepdim=True) > budget
        level = high.where(binding, torch.zeros_like(high))
        full = fixed - level >= 1
        free = (fixed > level) & ~full
        count = free.sum(-1, keepdim=True)
    exact = ((scores * free).sum(-1, keepdim=True) + full.sum(-1, keepdim=True) - budget) / count.clamp(min=1)
    level = exact.where(binding & (count > 0), level)
    return torch.where(free, scores - level, full.to(scores)).clamp(0, 1)


# Masks that select one contiguous window of words.


@dataclass(frozen=True)
class Excerpt:
    """A window of at most `longest` units, scored by its first unit as a start and its last as an end.

    Bouchacourt and Denoyer (2019), section 3. Windows are drawn with softmax probabilities and learnt by the score
    function; with a `temperature`, hard windows have the gradient of soft ones instead (Jang et al., 2017).
    """

    longest: int = 5
    temperature: float = 0.0

    def __post_init__(self) -> None:
        if self.longest < 1:
            raise AssayError(f"An excerpt must have at least one unit, got {self.longest}.")

    @property
    def parameters(self) -> int:
        return 2

    def draw(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Drawn:
        likely = self._windows(theta, mask)
        chosen, log_probability = choice(likely, self.temperature)
        return Drawn(covered(chosen, self.longest), covered(likely.exp(), self.longest), log_probability)

    def chance(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Float[Tensor, "B K U"]:
        return covered(self._windows(theta, mask).exp(), self.longest)

    def _windows(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Float[Tensor, "B K W"]:
        """Log-probabilities of the windows: U starts times `longest` lengths, −∞ where one leaves the text."""
        start, end = theta.masked_fill(~mask[:, None, :, None], -torch.inf).unbind(-1)
        ends = F.pad(end, (0, self.longest - 1), value=-torch.inf).unfold(-1, self.longest, 1)
        return (start[..., None] + ends).flatten(2).log_softmax(-1)


@dataclass(frozen=True)
class Window:
    """A window as long as a share of the text, rounded up, scored by its first unit; sampled as an excerpt is."""

    rate: float = 0.2
    temperature: float = 1.0

    def __post_init__(self) -> None:
        Decoding("window", self.rate)

    @property
    def parameters(self) -> int:
        return 1

    def draw(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Drawn:
        likely = self._starts(theta, mask)
        chosen, log_probability = choice(likely, self.temperature)
        return Drawn(self._covered(chosen, mask), self._covered(likely.exp(), mask), log_probability)

    def chance(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Float[Tensor, "B K U"]:
        return self._covered(self._starts(theta, mask).exp(), mask)

    def _starts(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Float[Tensor, "B K U"]:
        """Log-probabilities of the starts, −∞ where the window would leave the text."""
        last = mask.sum(-1) - self._lengths(mask)
        fits = torch.arange(mask.shape[1], device=mask.device) <= last[:, None]
        return theta[..., 0].masked_fill(~fits[:, None], -torch.inf).log_softmax(-1)

    def _covered(self, starts: Float[Tensor, "B K U"], mask: Bool[Tensor, "B U"]) -> Float[Tensor, "B K U"]:
        before = F.pad(starts.cumsum(-1), (1, 0))
        positions = torch.arange(mask.shape[1], device=mask.device) + 1
        gone = (positions - self._lengths(mask)[:, None]).clamp(min=0)[:, None].expand_as(starts)
        return (before[..., 1:] - before.gather(-1, gone)).clamp(min=0) * mask[:, None]

    def _lengths(self, mask: Bool[Tensor, "B U"]) -> Int[Tensor, " B"]:
        return Decoding("window", self.rate).counts(mask)


def choice(
    likely: Float[Tensor, "B K W"], temperature: float
) -> tuple[Float[Tensor, "B K W"], Float[Tensor, " B"] | None]:
    """A one-hot sample for each mask; without a temperature, also its log-probability."""
    if temperature == 0:
        position = torch.multinomial(likely.detach().exp().flatten(0, 1), 1).reshape(*likely.shape[:2], 1)
        chosen = torch.zeros_like(likely).scatter(-1, position, 1.0)
        return chosen, likely.gather(-1, position).sum((1, 2))
    noise = -torch.empty_like(likely).exponential_().clamp(min=torch.finfo(likely.dtype).tiny).log()
    soft = ((likely + noise) / temperature).softmax(-1)
    hard = F.one_hot(soft.argmax(-1), likely.shape[-1]).to(soft)
    return hard - soft.detach() + soft, None


def covered(windows: Float[Tensor, "B K W"], longest: int) -> Float[Tensor, "B K U"]:
    """The total weight of the windows that cover each unit."""
    starts = windows.reshape(*windows.shape[:2], -1, longest)  # by start and length
    units = starts.shape[-2]
    total = starts.sum(-1)
    for back in range(1, min(longest, units)):  # those that begin so many units before, and are longer than that
        total = total + F.pad(starts[..., back:].sum(-1), (back, 0))[..., :units]
    return total


RELAXATIONS: dict[str, type[Relaxation]] = {
    "bernoulli": Bernoulli,
    "gumbel": GumbelStraightThrough,
    "relaxed": RelaxedBernoulli,
    "hardkuma": HardKuma,
    "hardconcrete": HardConcrete,
    "simplex": CappedSimplex,
    "topk": TopKStraightThrough,
    "excerpt": Excerpt,
    "window": Window,
    "straight": StraightThrough,
    "saliency": Saliency,
}
