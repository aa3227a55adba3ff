"""The attention of every layer of a stack: observed, replaced, and the adversarial search over it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.intervene.adversary_problem import LOG2, jsd, shared
from assay.intervene.edits import Layered, Mask, Permute, Replace, Weights
from assay.metrics.information import tvd
from assay.types import Batch, Edit, StackedModel, at_least_float32, of_tokens

PerText = Float[Tensor, " B"]
Layer = Float[Tensor, "B H S S"]

# The attention of every layer of a stack: observed, aggregated to tokens, and replaced.


Layers = Sequence[Layer]


@dataclass(frozen=True)
class Stack:
    """The attention of a model on a batch, layer by layer, and its output.

    A query position counts where the output can depend on what it attends to: all real ones do, and of the last
    layer those that are read.
    """

    weights: Layers
    allowed: Sequence[Bool[Tensor, "B S S"]]
    counted: Sequence[Bool[Tensor, "B S"]]
    reading: Float[Tensor, "B S"]
    token_index: Int[Tensor, "B S"]
    probabilities: Float[Tensor, "B C"]

    @classmethod
    @torch.no_grad()
    def of(cls, model: StackedModel, batch: Batch) -> Stack:
        x, seen = model.embed(batch), Seen()
        output = model(x, batch, seen)
        reading = model.layered(x, batch).attention[-1]
        real = [layer.any(1) for layer in seen.allowed]  # each real position is attended to, be it by itself alone
        counted = [*real[:-1], real[-1] & (reading > 0)]
        return cls(output.attention, seen.allowed, counted, reading, model.token_index(batch), output.probabilities)

    @property
    def rows(self) -> Int[Tensor, " B"]:
        """The number of attention distributions of each text: layers × heads × counted positions."""
        return torch.stack([which.sum(-1) for which in self.counted]).sum(0) * self.weights[0].shape[1]

    def mean(self, values: Sequence[Float[Tensor, "B H S"]]) -> PerText:
        """The mean over layers, heads and counted positions."""
        kept = [layer * which[:, None] for layer, which in zip(values, self.counted, strict=True)]
        return torch.stack([layer.sum((1, 2)) for layer in kept]).sum(0) / self.rows

    @property
    def peak(self) -> PerText:
        """The largest weight, averaged over layers, heads and positions."""
        return self.mean([at_least_float32(layer).amax(-1) for layer in self.weights])

    def read(self, weights: Layers, tokens: int) -> Float[Tensor, "B T"]:
        """The weight of each token at the readout: the mean over heads of the last layer, special tokens left out."""
        reading = at_least_float32(self.reading)
        row = (reading[:, None] @ weights[-1].mean(1, dtype=reading.dtype)).squeeze(1)
        return of_tokens(row, self.token_index, tokens)


@dataclass
class Seen:
    """An edit that changes nothing, and records which positions each layer may attend to."""

    allowed: list[Bool[Tensor, "B S S"]] = field(default_factory=list)

    def __call__(self, weights: Weights, mask: Mask) -> Weights:
        positions = weights.shape[-1]
        together = weights.ndim == 4  # else each attending position is a row of its own
        square = mask[:, None].expand(-1, positions, -1) if together else mask.reshape(-1, positions, positions)
        self.allowed.append(square)
        return weights


@dataclass(frozen=True, eq=False)
class Given(Layered):
    """Fixed weights for every layer."""

    weights: Layers

    def at(self, layer: int) -> Edit:
        return Replace(self.weights[layer])


@dataclass(frozen=True)
class Shuffled(Layered):
    """The weights of every query position randomly permuted over its keys, independently per layer."""

    seed: int = 0

    def at(self, layer: int) -> Edit:
        return Permute(1000 * self.seed + layer, local=True)


# Adversarial attention in a stack: other weights in every layer with nearly the same output, by search.
#
# The answer is not linear in these weights, so nothing here is exact: what is found is a lower bound on what there is.
# Each find is checked by the model itself, which has read the text with these weights.


LEAST = 1e-4  # a weight of nothing would never come back: its gradient is 0
ROOM = 0.9  # the share of what is allowed that is aimed at, for a step goes beyond where its gradient was taken
CONTRAST = 2.0  # the search starts from weights that are the observed ones to the power of -CONTRAST
RISE, FALL, PRICES = 1.5, 1.2, (1e-3, 1e3)  # of the price of moving the output


@dataclass(frozen=True)
class Found:
    """Weights of every layer, their mean JSD from the observed ones, and the total variation of the output."""

    weights: Layers
    jsd: PerText
    tvd: PerText

    def or_better(self, other: Found, allowed: float) -> Found:
        """Per text, the other one if it is feasible and has a higher JSD."""
        wins = (other.jsd > self.jsd) & (other.tvd <= allowed)
        each = wins[:, None, None, None]
        weights = [torch.where(each, new.to(old), old) for new, old in zip(other.weights, self.weights, strict=True)]
        return Found(weights, torch.where(wins, other.jsd, self.jsd), torch.where(wins, other.tvd, self.tvd))

    def detached(self) -> Found:
        return Found([layer.detach() for layer in self.weights], self.jsd.detach(), self.tvd.detach())


@dataclass(frozen=True)
class StackSearch:
    """Gradient ascent on the JSD under the constraint that the output moves by at most ε: a lower bound.

    The ascent starts where weights are large that were small, and moves the logarithms of all of them by Adam, towards
    more divergence and towards the model's own answer: a change beyond ε has a price that rises while it is too large.
    What it must beat is the observed attention, moved as far towards equal weights as the output allows; where a text
    of the batch is left below half of what there could be at most, a second ascent goes on from the best so far.
    """

    epsilon: float = 0.01
    steps: int = 30
    halvings: int = 6
    rate: float = 1.0

    def __call__(self, model: StackedModel, batch: Batch, stack: Stack) -> Found:
        """The best attention found for each text; the observed one where there is no other."""
        problem = _Problem(model, batch, stack)
        far = [-CONTRAST * log for log in _logs(stack.weights)]
        best = self._climbed(problem, self._evened(problem), far, self.rate)
        if bool((best.jsd < limit(stack) / 2).any()):
            best = self._climbed(problem, best, _logs(best.weights), self.rate / 2)
        return best

    def _evened(self, problem: _Problem) -> Found:
        """The best point on the line from the observed to uniform attention, by bisection."""
        goal, observed = problem.even(), problem.stack.weights
        best = problem.judged(observed).or_better(problem.judged(goal), self.epsilon)
        low, high = torch.zeros_like(best.jsd), torch.ones_like(best.jsd)
        for _ in range(self.halvings):
            share = (low + high) / 2
            part = share[:, None, None, None]
            tried = problem.judged([old + part.to(old) * (new - old) for new, old in zip(goal, observed, strict=True)])
            held = tried.tvd <= self.epsilon
            low, high = torch.where(held, share, low), torch.where(held, high, share)
            best = best.or_better(tried, self.epsilon)
        return best

    def _climbed(self, problem: _Problem, best: Found, start: Layers, rate: float) -> Found:
        """The best iterate of gradient ascent on log-weights."""
        logs = [log.requires_grad_() for log in start]
        optimiser = torch.optim.Adam(logs, lr=rate)
        price = torch.ones_like(best.jsd)
        for _ in range(self.steps):
            with torch.enable_grad():
                tried = problem.judged(problem.normalised(logs))
                excess = (tried.tvd / max(self.epsilon, LEAST) - ROOM).clamp(min=0)
                # each text by the number of its distributions: gradients of a mean would vanish beside Adam's epsilon
                loss = ((price * excess - tried.jsd) * problem.stack.rows).sum()
                gradients = torch.autograd.grad(loss, logs)
            tried = tried.detached()
            best = best.or_better(tried, self.epsilon)
            for log, gradient in zip(logs, gradients, strict=True):
                log.grad = gradient
            optimiser.step()
            price = torch.where(tried.tvd > self.epsilon, price * RISE, price / FALL).clamp(*PRICES)
        return best


def limit(stack: Stack) -> PerText:
    """An upper bound on the mean JSD, whatever the output: all weight on the smallest observed one.

    The divergence is convex in the other weights, so it is largest with all of them on one position.
    """
    pairs = zip(stack.weights, stack.allowed, strict=True)
    least = [at_least_float32(layer).masked_fill(~allowed[:, None], torch.inf).amin(-1) for layer, allowed in pairs]
    least = [layer.where(layer.isfinite(), 1.0) for layer in least]  # of padding, which does not count
    return stack.mean([LOG2 + shared(layer, torch.ones_like(layer)) for layer in least])


@dataclass(frozen=True)
class _Problem:
    """A batch, its observed attention, and the evaluation of other weights."""

    model: StackedModel
    batch: Batch
    stack: Stack

    def judged(self, weights: Layers) -> Found:
        """The weights with their JSD and output change, by a forward pass."""
        with torch.set_grad_enabled(any(layer.requires_grad for layer in weights)):
            output = self.model(self.model.embed(self.batch), self.batch, Given(weights))
            pairs = zip(self.stack.weights, output.attention, strict=True)
            apart = self.stack.mean([jsd(at_least_float32(old), at_least_float32(new)) for old, new in pairs])
            return Found(output.attention, apart, tvd(output.probabilities, self.stack.probabilities))

    def even(self) -> Layers:
        """Uniform weights over the allowed keys."""
        pairs = zip(self.stack.allowed, self.stack.weights, strict=True)
        return [_even(allowed[:, None].to(layer)).expand_as(layer) for allowed, layer in pairs]

    def normalised(self, logs: Sequence[Layer]) -> Layers:
        """Distributions over the allowed keys, in the model's precision."""
        pairs = zip(logs, self.stack.allowed, strict=True)
        return [_softmax(log, allowed[:, None]).to(self.stack.weights[0].dtype) for log, allowed in pairs]


def _softmax(logs: Layer, allowed: Bool[Tensor, "B 1 S S"]) -> Layer:
    """A softmax over allowed keys; 0 where none is, as for left padding."""
    return logs.masked_fill(~allowed, torch.finfo(logs.dtype).min).softmax(-1).masked_fill(~allowed, 0)


def _even(allowed: Float[Tensor, "B 1 S S"]) -> Float[Tensor, "B 1 S S"]:
    return allowed / allowed.sum(-1, keepdim=True).clamp(min=1)


def _logs(weights: Layers) -> Layers:
    return [at_least_float32(layer).detach().clamp(min=LEAST).log() for layer in weights]
