"""Gradients of the explained class's probability with respect to the embeddings."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.errors import AssayError
from assay.explainers.baselines import mixed, text_numbers
from assay.explainers.needs import Choosy, Scores, Target, no_holding
from assay.models import budget
from assay.models.erasure import at_most, capacity, extents, query_lengths
from assay.models.hf_body import Body
from assay.types import Batch, Edit, Model, at_least_float32

Embeddings = Float[Tensor, "B T D"]


@dataclass(frozen=True)
class Gradient(Choosy):
    """|∂p/∂e_t · e_t| with attention held fixed (Jain and Wallace, 2019, algorithm 1: the one-hot derivative).

    It is the attention that pools: in a hierarchy that to sentences, while the attention to words is not held.
    """

    def unfit(self, model: Model) -> str | None:
        return no_holding(model)

    def explain(self, model: Model, batch: Batch, target: Target) -> Scores:
        x, gradient = _embeddings_and_gradient(model, batch, target, _detached)
        return (x * gradient).sum(-1).abs()


def gradient_norm(model: Model, batch: Batch, target: Target) -> Scores:
    """‖∂p/∂e_t‖₂ (Simonyan et al., 2014)."""
    _, gradient = probability_gradient(model, model.embed(batch), batch, target)
    norms: Tensor = torch.linalg.vector_norm(at_least_float32(gradient), dim=-1)
    return norms


def input_x_gradient(model: Model, batch: Batch, target: Target) -> Scores:
    """∂p/∂e_t · e_t, signed: positive speaks for the class (Shrikumar et al., 2017)."""
    x, gradient = _embeddings_and_gradient(model, batch, target)
    return (x * gradient).sum(-1)


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
            raise AssayError("SmoothGrad needs samples of at least 1 and noise of at least 0.")

    def __call__(self, model: Model, batch: Batch, target: Target) -> Scores:
        x = model.embed(batch).detach()
        deviation = self.noise * _spread(x, batch.mask)[:, None, None]
        sums = []
        together = math.ceil(self.samples / self._turns(model, batch))
        for first in range(0, self.samples, together):
            samples = range(first, min(first + together, self.samples))
            noise = _noise(batch, x.shape[-1], self.seed, samples).to(x)
            copies = torch.arange(len(batch), device=x.device).repeat(len(samples))
            noisy = torch.addcmul(x, deviation, noise).flatten(0, 1)
            gradient = at_least_float32(probability_gradient(model, noisy, batch[copies], target[copies])[1])
            sums.append(gradient.reshape(len(samples), *x.shape).sum(0))
        norms: Tensor = torch.linalg.vector_norm(sum(sums[1:], sums[0]), dim=-1) / self.samples
        return norms

    def _turns(self, model: Model, batch: Batch) -> int:
        """The number of batches: as many noisy copies go into one as fit into memory."""
        most = room(model, batch.ids.device)
        if self.samples * at_most(batch) <= most:
            return 1
        longest = int((extents(batch).sum(-1) + query_lengths(batch)).max())
        return math.ceil(self.samples / max(1, most // max(1, len(batch) * longest)))


def room(model: Model, device: torch.device, longest: int = 0) -> int:
    """How many tokens (subwords) fit into memory at once for a forward and backward pass.

    Where texts have up to `longest` of them, all attention that a transformer pays has room beside them.
    """
    most = min(budget.room(device, "gradients"), capacity(model, device))
    return min(most, model.room(longest)) if isinstance(model, Body) else most


def probability_gradient(
    model: Model, x: Embeddings, batch: Batch, target: Target, edit: Edit | None = None
) -> tuple[Float[Tensor, " B"], Embeddings]:
    """The probability of each example's class, and its gradient with respect to the embeddings; 0 on padding."""
    # cuDNN's recurrent kernels refuse a backward pass outside training mode.
    with torch.enable_grad(), nullcontext() if isinstance(model, Body) else torch.backends.cudnn.flags(enabled=False):
        x = x.detach().requires_grad_()
        chosen = model(x, batch, edit).probabilities.gather(1, target[:, None]).squeeze(1)
        (gradient,) = torch.autograd.grad(chosen.sum(), x)
    return chosen.detach(), gradient * batch.mask[..., None]


def _detached(weights: Float[Tensor, "B *Q T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B *Q T"]:
    return weights.detach()


def _embeddings_and_gradient(
    model: Model, batch: Batch, target: Target, edit: Edit | None = None
) -> tuple[Embeddings, Embeddings]:
    """The embeddings and the gradient of the probability, 0 on padding."""
    x = model.embed(batch).detach()
    _, gradient = probability_gradient(model, x, batch, target, edit)
    return at_least_float32(x), at_least_float32(gradient)


def _spread(x: Embeddings, mask: Bool[Tensor, "B T"]) -> Float[Tensor, " B"]:
    """The range of the embedding coordinates of each text."""
    lowest, highest = torch.where(mask[..., None], x, x[:, :1]).flatten(1).aminmax(dim=1)  # the first word stands in
    return highest - lowest


def _noise(batch: Batch, size: int, seed: int, samples: range) -> Float[Tensor, "S B T D"]:
    """Standard normal noise per embedding coordinate (Box and Muller, 1958); odd samples have the opposite sign."""
    pairs = range(samples.start // 2, (samples.stop + 1) // 2)
    counters = _counters(seed, pairs, batch.ids.shape[1], batch.ids.device)
    starts = text_numbers(batch)[:, None] + counters  # of what each word draws
    bits = mixed(starts[..., None] + torch.arange(size, device=starts.device))
    one, other = ((bits & 0xFFFFFF).float(), ((bits >> 24) & 0xFFFFFF).float())  # in parts of 2^24
    noise = (-2 * (one * -(2.0**-24)).log1p()).sqrt() * (other * (2 * math.pi * 2.0**-24)).cos()
    both = torch.stack([noise, -noise], dim=1).flatten(0, 1)
    first = samples.start % 2
    return both[first : first + len(samples)]


@lru_cache(maxsize=64)
def _counters(seed: int, pairs: range, positions: int, device: torch.device) -> Int[Tensor, "P 1 T"]:
    """The counter of the random stream of each word, as drawn for a text."""
    with torch.inference_mode(False):
        pair, position = (torch.arange(count, device=device) for count in (pairs.stop, positions))
        start = mixed(torch.tensor(seed, device=device))
        return ((pair[pairs.start :, None] << 40) + (position << 20) + start)[:, None]
