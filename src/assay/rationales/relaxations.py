"""Relaxations: distributions of masks through which a selector can be trained."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import log
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from assay.errors import AssayError
from assay.rationales.units import Decoding
from assay.types import at_least_float32

Theta = Float[Tensor, "B K U P"]  # P scores for each of U units, under each of K masks
Units = Float[Tensor, "B K U"]
Real = Bool[Tensor, "B U"]  # units that are no padding

EDGE = 1e-6  # uniform numbers and chances of saliency stay this far from 0 and 1
SHAPES = 1e-2, 100.0  # of a Kumaraswamy distribution, at least and at most
HALVINGS = 60  # of the interval in which a threshold lies


@dataclass(frozen=True)
class Drawn:
    """K sampled masks over the units of each text, 0 on padding.

    `chance` is the probability that a unit is read at all, P(z > 0), through which size and prior can be steered.
    Where no gradient passes through `z`, `log_probability` is that of the whole draw.
    """

    z: Units
    chance: Units
    log_probability: Float[Tensor, " B"] | None = None


@dataclass(frozen=True)
class Relaxation(ABC):
    """A distribution of masks given `parameters` scores for each unit; its fields are its options."""

    parameters: ClassVar[int] = 1

    @abstractmethod
    def draw(self, theta: Theta, mask: Real) -> Drawn:
        """Samples a mask, or returns the one mask of a deterministic relaxation; uses torch's random state."""

    def chance(self, theta: Theta, mask: Real) -> Units:
        """The probabilities by which units are ranked in decoding: as a rule P(z > 0); 0 on padding."""
        return theta[..., 0].sigmoid() * mask[:, None]


def uniform(like: Float[Tensor, "*N"]) -> Float[Tensor, "*N"]:
    """Uniform on (0, 1), in single precision at least, since half precision loses the tails."""
    precise = torch.promote_types(like.dtype, torch.float32)
    return torch.rand_like(like, dtype=precise).clamp(EDGE, 1 - EDGE)


def concrete(theta: Theta, temperature: float) -> Units:
    """A binary concrete sample σ((θ + noise) / τ), with logistic noise (Maddison et al., 2017)."""
    scores = theta[..., 0]
    return ((scores + uniform(scores).logit()) / temperature).sigmoid()


def straight_through(hard: Tensor, soft: Tensor) -> Tensor:
    """The hard values with the gradient of the soft ones."""
    return hard - soft.detach() + soft


def check_temperature(temperature: float) -> None:
    if not temperature > 0:
        raise AssayError(f"A temperature must be above 0, got {temperature:g}.")


@dataclass(frozen=True)
class Bernoulli(Relaxation):
    """z ~ Bernoulli(σ(θ)); Lei et al. (2016), trained by REINFORCE (Williams, 1992)."""

    def draw(self, theta: Theta, mask: Real) -> Drawn:
        chance = self.chance(theta, mask)
        z = torch.bernoulli(chance.detach())
        unlikely = F.binary_cross_entropy_with_logits(theta[..., 0], z, reduction="none")
        return Drawn(z, chance, -(unlikely * mask[:, None]).sum((1, 2)))


@dataclass(frozen=True)
class RelaxedBernoulli(Relaxation):
    """z = σ((θ + noise) / τ) with logistic noise: the binary concrete distribution of Maddison et al. (2017).

    z is never 0, so its chance is that of z > 1/2, which is σ(θ) at any temperature.
    """

    temperature: float = 0.7

    def __post_init__(self) -> None:
        check_temperature(self.temperature)

    def draw(self, theta: Theta, mask: Real) -> Drawn:
        soft = concrete(theta, self.temperature)
        return Drawn(soft.to(theta) * mask[:, None], self.chance(theta, mask))


@dataclass(frozen=True)
class GumbelStraightThrough(Relaxation):
    """z ~ Bernoulli(σ(θ)); its gradient is that of σ((θ + noise) / τ) with logistic noise.

    Jang et al. (2017): Gumbel noise on both of two logits, whose difference is logistic.
    """

    temperature: float = 1.0

    def draw(self, theta: Theta, mask: Real) -> Drawn:
        soft = concrete(theta, self.temperature)
        z = straight_through((soft > 0.5).to(soft), soft)
        return Drawn(z.to(theta) * mask[:, None], self.chance(theta, mask))


@dataclass(frozen=True)
class StraightThrough(Relaxation):
    """z is 1 where σ(θ) is above one half, and its gradient is that of σ(θ); Chang et al. (2019)."""

    def draw(self, theta: Theta, mask: Real) -> Drawn:
        chance = self.chance(theta, mask)
        return Drawn(straight_through((chance > 0.5).to(chance), chance), chance)


@dataclass(frozen=True)
class TopKStraightThrough(Relaxation):
    """z is 1 for the best units, the `rate` of them rounded up, and its gradient is that of σ(θ)."""

    rate: float = 0.2

    def draw(self, theta: Theta, mask: Real) -> Drawn:
        chance = self.chance(theta, mask)
        hard = Decoding("top", self.rate)(theta[..., 0].detach(), mask)
        return Drawn(straight_through(hard, chance), chance)


@dataclass(frozen=True)
class Saliency(Relaxation):
    """Deterministic, without parameters: min–max scales the scores of each text, which an explainer gave."""

    def draw(self, theta: Theta, mask: Real) -> Drawn:
        chance = self.chance(theta, mask)
        return Drawn(chance, chance)

    def chance(self, theta: Theta, mask: Real) -> Units:
        scores, real = theta[..., 0], mask[:, None]
        least = scores.masked_fill(~real, torch.inf).amin(-1, keepdim=True)
        most = scores.masked_fill(~real, -torch.inf).amax(-1, keepdim=True)
        spread = (most - least).where(most > least, 1.0)
        return (EDGE + (1 - 2 * EDGE) * (scores - least) / spread).where(real, 0.0)


@dataclass(frozen=True)
class HardConcrete(Relaxation):
    """z = clip(low + (high − low) σ((θ + noise) / τ), 0, 1) with logistic noise; Louizos et al. (2018)."""

    temperature: float = 2 / 3
    low: float = -0.1
    high: float = 1.1

    def __post_init__(self) -> None:
        check_temperature(self.temperature)
        if not (self.low < 0 and self.high >= 1):
            raise AssayError(f"A mask is stretched from below 0 to 1 or above, not {self.low:g} to {self.high:g}.")

    def draw(self, theta: Theta, mask: Real) -> Drawn:
        stretched = self.low + (self.high - self.low) * concrete(theta, self.temperature)
        return Drawn(stretched.clamp(0, 1).to(theta) * mask[:, None], self.chance(theta, mask))

    def chance(self, theta: Theta, mask: Real) -> Units:
        odds = -self.low / self.high  # of the value that is stretched to 0
        return (theta[..., 0] - self.temperature * log(odds)).sigmoid() * mask[:, None]


@dataclass(frozen=True)
class HardKuma(Relaxation):
    """z = clip(low + (high − low) k, 0, 1), where P(k > x) = (1 − x^a)^b; Bastings et al. (2019).

    k is Kumaraswamy's, whose shapes a and b are softplus(θ).
    """

    parameters: ClassVar[int] = 2

    low: float = -0.1
    high: float = 1.1

    def __post_init__(self) -> None:
        if not (self.low < 0 and self.high > 1):
            raise AssayError(f"A mask must be stretched from below 0 to above 1, got {self.low:g} to {self.high:g}.")

    def draw(self, theta: Theta, mask: Real) -> Drawn:
        a, b = self._shapes(theta)
        chosen = ((-torch.expm1(uniform(a).log() / b)).log() / a).exp()  # for which P(k > x) is uniform
        z = (self.low + (self.high - self.low) * chosen).clamp(0, 1)
        return Drawn(z.to(theta) * mask[:, None], self.chance(theta, mask))

    def chance(self, theta: Theta, mask: Real) -> Units:
        a, b = self._shapes(theta)
        unstretched = -self.low / (self.high - self.low)  # what is stretched to 0
        above = (b * torch.log1p(-(unstretched**a))).exp()
        return above.to(theta) * mask[:, None]

    @staticmethod
    def _shapes(theta: Theta) -> tuple[Units, Units]:
        a, b = F.softplus(at_least_float32(theta)).clamp(*SHAPES).unbind(-1)
        return a, b


@dataclass(frozen=True)
class CappedSimplex(Relaxation):
    """z maximises θ·z / τ − ‖z‖² / 2 for 0 ≤ z ≤ 1 and Σz ≤ k, where k is the `rate` of units, rounded up.

    SPECTRA (Guerreiro and Martins, 2021) with a budget alone. As the temperature goes to 0, z picks the k best units
    of positive score, so units are ranked by σ(θ).
    """

    # differs from Guerreiro and Martins (2021): no reward for neighbours, so that it has a closed form
    rate: float = 0.2
    temperature: float = 0.1

    def __post_init__(self) -> None:
        check_temperature(self.temperature)

    def draw(self, theta: Theta, mask: Real) -> Drawn:
        budget = Decoding("top", self.rate).counts(mask)[:, None, None]
        real = mask[:, None].expand(theta.shape[:-1])
        return Drawn(capped(theta[..., 0] / self.temperature, real, budget.to(theta)), self.chance(theta, mask))


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


Windows = Float[Tensor, "B K W"]  # of each of W windows


class Contiguous(Relaxation):
    """One contiguous window of units for each mask.

    Windows are drawn with softmax probabilities and learnt by the score function; with a `temperature`, hard windows
    have the gradient of soft ones instead (Jang et al., 2017).
    """

    temperature: float

    def draw(self, theta: Theta, mask: Real) -> Drawn:
        likely = self.windows(theta, mask)
        chosen, log_probability = choice(likely, self.temperature)
        return Drawn(self.covered(chosen, mask), self.covered(likely.exp(), mask), log_probability)

    def chance(self, theta: Theta, mask: Real) -> Units:
        return self.covered(self.windows(theta, mask).exp(), mask)

    @abstractmethod
    def windows(self, theta: Theta, mask: Real) -> Windows:
        """Their log-probabilities, −∞ where one leaves the text."""

    @abstractmethod
    def covered(self, windows: Windows, mask: Real) -> Units:
        """The total weight of the windows that cover each unit."""


@dataclass(frozen=True)
class Excerpt(Contiguous):
    """A window of at most `longest` units, scored by its first unit as a start and its last as an end.

    Bouchacourt and Denoyer (2019), section 3.
    """

    parameters: ClassVar[int] = 2

    longest: int = 5
    temperature: float = 0.0

    def __post_init__(self) -> None:
        if self.longest < 1:
            raise AssayError(f"An excerpt must have at least one unit, got {self.longest}.")

    def windows(self, theta: Theta, mask: Real) -> Windows:
        """Of U starts times `longest` lengths."""
        start, end = theta.masked_fill(~mask[:, None, :, None], -torch.inf).unbind(-1)
        ends = F.pad(end, (0, self.longest - 1), value=-torch.inf).unfold(-1, self.longest, 1)
        return (start[..., None] + ends).flatten(2).log_softmax(-1)

    def covered(self, windows: Windows, mask: Real) -> Units:
        starts = windows.reshape(*windows.shape[:2], -1, self.longest)  # by start and length
        units = starts.shape[-2]
        total = starts.sum(-1)
        for back in range(1, min(self.longest, units)):  # those that begin so many units before, and are longer
            total = total + F.pad(starts[..., back:].sum(-1), (back, 0))[..., :units]
        return total


@dataclass(frozen=True)
class Window(Contiguous):
    """A window as long as a share of the text, rounded up, scored by its first unit."""

    rate: float = 0.2
    temperature: float = 1.0

    def __post_init__(self) -> None:
        Decoding("window", self.rate)

    def windows(self, theta: Theta, mask: Real) -> Windows:
        """Of the starts."""
        last = mask.sum(-1) - self._lengths(mask)
        fits = torch.arange(mask.shape[1], device=mask.device) <= last[:, None]
        return theta[..., 0].masked_fill(~fits[:, None], -torch.inf).log_softmax(-1)

    def covered(self, windows: Windows, mask: Real) -> Units:
        before = F.pad(windows.cumsum(-1), (1, 0))
        ends = torch.arange(mask.shape[1], device=mask.device) + 1
        gone = (ends - self._lengths(mask)[:, None]).clamp(min=0)[:, None].expand_as(windows)
        return (before[..., 1:] - before.gather(-1, gone)).clamp(min=0) * mask[:, None]

    def _lengths(self, mask: Real) -> Int[Tensor, " B"]:
        return Decoding("window", self.rate).counts(mask)


def choice(likely: Windows, temperature: float) -> tuple[Windows, Float[Tensor, " B"] | None]:
    """A one-hot sample for each mask; without a temperature, also its log-probability."""
    if temperature == 0:
        position = torch.multinomial(likely.detach().exp().flatten(0, 1), 1).reshape(*likely.shape[:2], 1)
        chosen = torch.zeros_like(likely).scatter(-1, position, 1.0)
        return chosen, likely.gather(-1, position).sum((1, 2))
    noise = -torch.empty_like(likely).exponential_().clamp(min=torch.finfo(likely.dtype).tiny).log()
    soft = ((likely + noise) / temperature).softmax(-1)
    hard = F.one_hot(soft.argmax(-1), likely.shape[-1]).to(soft)
    return straight_through(hard, soft), None


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
