"""Information: entropies, divergences, and mutual information bounded by a decoder."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import entr, rel_entr


def normalised_entropy(values: Float[np.ndarray, "*B T"], mask: Bool[np.ndarray, "*#B T"]) -> Float[np.ndarray, "*B"]:
    """Shannon entropy of the normalised scores, divided by log(number of real tokens): from 0 to 1.

    Values are from 0 and need not add up to 1. It is nan where there is one token or none, which leaves no choice,
    where all values are 0, and where a real token has none; Meister et al. (2021), section 4.
    """
    real = np.where(mask, values, 0.0).astype(np.float64)
    peak, count = real.max(-1, keepdims=True, initial=0.0), np.broadcast_to(mask, real.shape).sum(-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled = real / peak  # so that the smallest numbers do not vanish in the sum
        shares = scaled / scaled.sum(-1, keepdims=True)
        found = entr(shares).sum(-1) / np.log(count)
    return np.where((count > 1) & np.isfinite(found), np.minimum(found, 1.0), np.nan)


# Distances between distributions over the last axis

MAX_JSD = math.log(2)
"""The divergence of distributions that share no outcome."""


@runtime_checkable
class Array(Protocol):
    """The common interface of numpy arrays and torch tensors used here."""

    def __sub__(self, other: Any, /) -> Any: ...
    def sum(self, axis: Any, /) -> Any: ...


AnyArray = TypeVar("AnyArray", bound=Array)


def tvd(p: AnyArray, q: AnyArray) -> AnyArray:
    """The total variation distance, half the L1 distance; Jain and Wallace (2019)."""
    return abs(p - q).sum(-1) / 2  # type: ignore[no-any-return]


def jsd(p: Float[np.ndarray, "*B C"], q: Float[np.ndarray, "*B C"]) -> Float[np.ndarray, "*B"]:
    """The Jensen-Shannon divergence in nats, from 0 to MAX_JSD; Lin (1991)."""
    p, q = p.astype(np.float64), q.astype(np.float64)
    total = p + q  # not halved, so that the smallest numbers do not vanish
    terms = rel_entr(2 * p, total) + rel_entr(2 * q, total)
    return np.asarray(np.maximum(terms.sum(-1) / 4, 0))


# How much states tell of the words that they stand for: a lower bound on mutual information, in bits

States = Float[np.ndarray, "n M"]
Tokens = Int[np.ndarray, " n"]
Values = Float[np.ndarray, " n"]

SMALLEST = 1e-9  # of the covariance within words over that of all states, where states are the same for a word
LEFT_OUT = 4  # every so many tokens decide between shrinkages


@dataclass(frozen=True)
class Decoder:
    """A linear decoder q(word | state), with the marginal rate of each word."""

    words: Int[np.ndarray, " V"]  # in rising order
    coefficients: Float[np.ndarray, "V M"]
    intercepts: Float[np.ndarray, " V"]
    rates: Float[np.ndarray, " V"]

    def known(self, words: Tokens) -> Bool[np.ndarray, " n"]:
        """The mask of tokens whose word the decoder knows."""
        return np.isin(words, self.words)

    def log2(self, states: States) -> Float[np.ndarray, "n V"]:
        """log₂ q(word | state) of each known word."""
        scores: Float[np.ndarray, "n V"] = (states @ self.coefficients.T + self.intercepts) / np.log(2)
        scores -= scores.max(-1, keepdims=True)
        scores -= np.log2(np.exp2(scores).sum(-1, keepdims=True))
        return scores

    def pointwise(self, states: States, words: Tokens) -> Values:
        """log₂ q(word | state) − log₂ rate(word) of each token; nan for words that it does not know.

        For any q, the mean over tokens that q was not fitted on is at most the mutual information, where the rates are
        those of these tokens; with other rates it may be above by their Kullback-Leibler divergence. Barber and Agakov
        (2003), equation 3.
        """
        known = self.known(words)
        indices = np.searchsorted(self.words, words[known])
        bits = np.full(len(words), np.nan)
        told = self.log2(states[known].astype(np.float64))[np.arange(len(indices)), indices]
        with np.errstate(divide="ignore"):
            bits[known] = told - np.log2(self.rates[indices])
        return bits

    def rated(self, words: Tokens, weights: Values | None = None) -> Decoder:
        """The decoder with the rates of other tokens, each of which may count for more or less than one."""
        known = self.known(words)
        counts = None if weights is None else weights[known]
        found = np.bincount(np.searchsorted(self.words, words[known]), counts, minlength=len(self.words))
        return replace(self, rates=found / max(found.sum(), np.finfo(np.float64).tiny))


@dataclass(frozen=True)
class Words:
    """Fits decoders of the most frequent words: Gaussians with one mean a word and one shrunken covariance.

    Of several shrinkages, the one that tells most of every fourth token, while these are left out, is taken.
    """

    common: int = 1000
    shrinkages: tuple[float, ...] = (1e-4, 1e-3, 1e-2, 0.1, 0.5)

    def fit(self, states: States, words: Tokens) -> Decoder:
        """The decoder of these tokens; a token is a state and the number of its word."""
        names, counts = np.unique(words, return_counts=True)
        often = np.sort(names[np.argsort(-counts, kind="stable")[: self.common]])
        chosen = np.isin(words, often)
        states, words = states[chosen].astype(np.float64), words[chosen]
        apart = np.arange(len(words)) % LEFT_OUT == LEFT_OUT - 1
        best = self.shrinkages[0]
        if len(self.shrinkages) > 1 and apart.any():
            fitted = [_gaussians(states[~apart], words[~apart], shrinkage) for shrinkage in self.shrinkages]
            told = [np.nansum(each.pointwise(states[apart], words[apart])) for each in fitted]
            best = self.shrinkages[int(np.argmax(told))]
        return _gaussians(states, words, best)


def _gaussians(states: States, words: Tokens, shrinkage: float) -> Decoder:
    """Linear discriminant analysis, with the rates of the words as priors."""
    names, indices, counts = np.unique(words, return_inverse=True, return_counts=True)
    means = np.zeros((len(names), states.shape[1]))
    np.add.at(means, indices, states)
    means /= counts[:, None]
    inner = states - means[indices]
    size = states.shape[1]
    covariance = inner.T @ inner / len(states)
    spread = np.trace(covariance) / size
    floor = SMALLEST * states.var(0).mean() or 1.0  # states that are all the same tell nothing, whatever this is
    covariance = (1 - shrinkage) * covariance + max(shrinkage * spread, floor) * np.eye(size)
    coefficients = np.linalg.solve(covariance, means.T).T
    rates = counts / counts.sum()
    return Decoder(names, coefficients, np.log(rates) - (coefficients * means).sum(-1) / 2, rates)
