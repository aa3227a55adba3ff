"""Masks that select one contiguous window of words."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from assay.errors import AssayError
from assay.rationales.decoding import Decoding
from assay.rationales.relaxations.drawing import Drawn


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
