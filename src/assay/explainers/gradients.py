"""Gradients of the explained class's probability with respect to the embeddings."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.errors import AssayError
from assay.explainers.needs import demand, no_holding
from assay.explainers.random import mixed, text_numbers
from assay.models.erasure import asked, capacity, extents
from assay.types import Batch, Edit, Model

Scores = Float[Tensor, "B T"]
Target = Int[Tensor, " B"]

TOKENS = {"cpu": 2048, "cuda": 65_536}  # read at once at most: caches are small


@dataclass(frozen=True)
class Gradient:
    """|∂p/∂e_t · e_t| with attention held fixed (Jain and Wallace, 2019, algorithm 1: the one-hot derivative).

    It is the attention that pools: in a hierarchy that to sentences, while the attention to words is not held.
    """

    def unfit(self, model: Model) -> str | None:
        return no_holding(model)

    def __call__(self, model: Model, batch: Batch, target: Target) -> Scores:
        demand(self.unfit(model))
        x, slope = _slope(model, batch, target, _held)
        return (x * slope).sum(-1).abs()


def gradient_norm(model: Model, batch: Batch, target: Target) -> Scores:
    """‖∂p/∂e_t‖₂ (Simonyan et al., 2014)."""
    _, slope = _slope(model, batch, target)
    return (slope * slope).sum(-1).sqrt()


def input_x_gradient(model: Model, batch: Batch, target: Target) -> Scores:
    """∂p/∂e_t · e_t, signed: positive speaks for the class (Shrikumar et al., 2017)."""
    x, slope = _slope(model, batch, target)
    return (x * slope).sum(-1)


@dataclass(frozen=True)
class SmoothGrad:
    """‖mean of ∂p/∂e_t over noisy copies of the text‖₂ (Smilkov et al., 2017).

    The noise is normal; its deviation is a share of the range between the text's lowest and highest coordinate. It
    depends on the text and the seed alone. Every second copy has the noise of the one before with the other sign: what
    is linear in the noise cancels, and the mean is known as well as from up to twice as many copies.
    """

    samples: int = 16
    noise: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        if self.samples < 1 or self.noise < 0:
            raise AssayError("SmoothGrad takes at least one sample and a share of noise from 0 on.")

    def __call__(self, model: Model, batch: Batch, target: Target) -> Scores:
        x = model.embed(batch).detach()
        deviation = self.noise * _spread(x, batch.mask)[:, None, None]
        total = torch.zeros_like(x, dtype=torch.float32)
        places = len(batch) * max((extents(batch).sum(-1) + asked(batch)).tolist(), default=0)
        limit = min(TOKENS.get(x.device.type, 32_768), capacity(model, x.device))
        turns = math.ceil(self.samples / max(1, limit // max(1, places)))
        together = math.ceil(self.samples / turns)
        for first in range(0, self.samples, together):
            samples = range(first, min(first + together, self.samples))
            noise = _noise(batch, x.shape[-1], self.seed, samples).to(x)
            copies = torch.arange(len(batch), device=x.device).repeat(len(samples))
            noisy = (x + deviation * noise).flatten(0, 1)
            slope = slopes(model, noisy, batch[copies], target[copies])[1].float()
            total += slope.reshape(len(samples), *x.shape).sum(0)
        norms: Tensor = torch.linalg.vector_norm(total / self.samples, dim=-1)
        return norms


def slopes(
    model: Model, x: Float[Tensor, "B T D"], batch: Batch, target: Target, edit: Edit | None = None
) -> tuple[Float[Tensor, " B"], Float[Tensor, "B T D"]]:
    """The probability of each example's class for these embeddings, and its gradient there; 0 on padding."""
    # cuDNN's recurrent kernels refuse a backward pass outside training mode.
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        x = x.detach().requires_grad_()
        chosen = model(x, batch, edit).probabilities.gather(1, target[:, None])[:, 0]
        (slope,) = torch.autograd.grad(chosen.sum(), x)
    return chosen.detach(), slope * batch.mask[..., None]


def _held(weights: Float[Tensor, "B *Q T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B *Q T"]:
    return weights.detach()


def _slope(
    model: Model, batch: Batch, target: Target, edit: Edit | None = None
) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B T D"]]:
    """The embeddings and the probability's gradient there; 0 on padding."""
    x = model.embed(batch).detach()
    _, slope = slopes(model, x, batch, target, edit)
    return (x * batch.mask[..., None]).float(), slope.float()


def _spread(x: Float[Tensor, "B T D"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, " B"]:
    """The range of the coordinates of each text."""
    hidden = ~mask[..., None]
    highest = x.masked_fill(hidden, -torch.inf).amax((1, 2))
    lowest = x.masked_fill(hidden, torch.inf).amin((1, 2))
    return torch.where(mask.any(-1), highest - lowest, 0)


def _noise(batch: Batch, size: int, seed: int, samples: range) -> Float[Tensor, "S B T D"]:
    """Standard normal numbers for each token's coordinates (Box and Muller, 1958); of odd samples, the opposite."""
    device = batch.ids.device
    places, coordinates = (mixed(torch.arange(1, count + 1, device=device)) for count in (batch.ids.shape[1], size))
    pairs = torch.arange(samples.start // 2, (samples.stop + 1) // 2, device=device)
    text = mixed(mixed(text_numbers(batch) + seed) + pairs[:, None])
    bits = mixed(mixed(text[..., None] + places)[..., None] + coordinates)
    one, other = (((bits >> shift) & 0xFFFFFF).float() / (1 << 24) for shift in (0, 24))
    noise = (-2 * (1 - one).log()).sqrt() * (2 * math.pi * other).cos()
    both = torch.stack([noise, -noise], dim=1).flatten(0, 1)
    first = samples.start % 2
    return both[first : first + len(samples)]
