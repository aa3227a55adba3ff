"""The attention that maximises a class's probability: a concave problem, solved to a certified gap.

The logits are the mean of those of the items, weighted by attention, so the logarithm of a class's probability is
concave in the weights: one peak, and at any weights the steepest way up says how far it can still be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.special import log_softmax, softmax

GAP = 1e-7
"""By how much the logarithm of the probability may still rise."""

ROUNDS, ADDED, STEPS, HALVINGS = 100, 4, 8, 30
BARRIERS = 10.0 ** -np.arange(0.0, 11.5, 0.75)


@dataclass(frozen=True)
class Likeliest:
    """The weights, the probability they give, and an upper bound for any weights."""

    weights: Float[np.ndarray, " N"]
    probability: float
    upper: float


def likeliest(values: Float[np.ndarray, "N C"], target: int) -> Likeliest:
    """The optimal attention over items, given the logits of each item alone.

    Of two classes the odds are linear in the weights, so all weight on one item is the optimum. Of more, the problem is
    solved by an interior-point method over a few items, to which those that would raise the probability are added until
    none could raise it further.
    """
    values = values - values.max(-1, keepdims=True)
    alone = log_softmax(values, -1)[:, target]
    best = int(alone.argmax())
    if values.shape[1] == 2:
        return Likeliest(_on([best], np.ones(1), len(values)), *[float(np.exp(alone[best]))] * 2)
    used = np.array([best])
    weights, height, gradient = _measured(values, target, used, np.ones(1))
    for _ in range(ROUNDS):
        order = np.argsort(-gradient, kind="stable")[:ADDED]
        fresh = order[(gradient[order] > GAP) & ~np.isin(order, used)]
        if gradient.max() <= GAP or not len(fresh):
            break
        used = np.concatenate([used, fresh])
        tried = _measured(values, target, used, _peak(values[used], target))
        if tried[1] < height:
            break  # rounding: what was found before stays
        weights, height, gradient = tried
    return Likeliest(weights, float(np.exp(height)), float(np.exp(min(height + max(gradient.max(), 0.0), 0.0))))


def _on(items: list[int] | Int[np.ndarray, " M"], weights: Float[np.ndarray, " M"], count: int) -> np.ndarray:
    """The weights of some items, embedded among all."""
    whole = np.zeros(count)
    whole[items] = weights
    return whole


def _measured(
    values: Float[np.ndarray, "N C"], target: int, used: Int[np.ndarray, " M"], weights: Float[np.ndarray, " M"]
) -> tuple[Float[np.ndarray, " N"], float, Float[np.ndarray, " N"]]:
    """The weights of all items, the log-probability, and its directional derivative towards each item."""
    whole = _on(used, weights, len(values))
    logits = whole @ values
    rises = values[:, target] - values @ softmax(logits)
    return whole, float(log_softmax(logits)[target]), rises - whole @ rises


def _peak(values: Float[np.ndarray, "M C"], target: int) -> Float[np.ndarray, " M"]:
    """The weights that maximise the log-probability, by Newton's method with a decreasing log barrier."""
    weights = np.full(len(values), 1 / len(values))
    for barrier in BARRIERS:
        for _ in range(STEPS):
            step, gain = _newton(values, target, weights, barrier)
            if gain < 1e-3 * barrier:
                break
            weights = _moved(values, target, weights, step, barrier)
    return np.asarray(weights / weights.sum())


def _newton(
    values: Float[np.ndarray, "M C"], target: int, weights: Float[np.ndarray, " M"], barrier: float
) -> tuple[Float[np.ndarray, " M"], float]:
    """The Newton step as a fraction of each weight, with constant sum, and its predicted gain."""
    likely = softmax(weights @ values)
    gradient = weights * (values[:, target] - values @ likely) + barrier
    around = weights[:, None] * (values - values @ likely[:, None])
    bend = (around * likely) @ around.T
    bend += max(barrier, 1e-14 * float(np.trace(bend))) * np.eye(len(weights))  # huge logits would leave nothing of it
    solved = np.linalg.solve(bend, np.stack([gradient, weights], -1))
    step = solved[:, 0] - solved[:, 1] * (weights @ solved[:, 0]) / (weights @ solved[:, 1])
    return step, float(gradient @ step)


def _moved(
    values: Float[np.ndarray, "M C"],
    target: int,
    weights: Float[np.ndarray, " M"],
    step: Float[np.ndarray, " M"],
    barrier: float,
) -> Float[np.ndarray, " M"]:
    """The weights after a step, shortened until weights stay positive and the objective rises."""

    def height(tried: Float[np.ndarray, " M"]) -> float:
        return float(log_softmax(tried @ values)[target] + barrier * np.log(tried).sum())

    size, start = min(1.0, 0.95 / max(float(-step.min()), 1e-300)), height(weights)
    for _ in range(HALVINGS):
        tried = weights * (1 + size * step)
        if height(tried) >= start:
            return np.asarray(tried / tried.sum())
        size /= 2
    return weights
