"""How much states tell of the words that they stand for: a lower bound on mutual information, in bits."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int

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
