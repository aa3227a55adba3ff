"""Rank agreement of two explanations, vectorised over examples."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import factorial, ndtr

from assay.metrics import TextCounts, TextValues, TokenMask, TokenRanks, TokenScores

EXACT_LENGTH = 33  # up to here the exact null distribution is used, as scipy does
TIED = 1e-12  # of a score: scores no further apart differ by the rounding of float64 alone


@dataclass(frozen=True)
class KendallResult:
    """Kendall's tau-b and its two-sided p-value per row; both nan where a row is constant or has no pair."""

    tau: TextValues
    p: TextValues


@dataclass(frozen=True)
class Ties:
    """Sums over tie groups of size c per row, as in the variance of tau."""

    pairs: TextCounts  # c (c - 1) / 2
    triples: TextCounts  # c (c - 1) (c - 2)
    spread: TextCounts  # c (c - 1) (2 c + 5)


@dataclass(frozen=True)
class Ranked:
    """Precomputed ranks and ties of one explanation, for repeated correlations."""

    mask: TokenMask
    ranks: TokenRanks
    ties: Ties
    missing: Bool[np.ndarray, " B"]  # some real token has no score


def ranked(values: TokenScores, mask: TokenMask) -> Ranked:
    """Precomputes ranks for `correlation`."""
    ranks = _ranks(values, mask)
    return Ranked(mask, ranks, _ties(ranks, mask), (np.isnan(values) & mask).any(-1))


def levelled(values: TokenScores, mask: TokenMask) -> TokenScores:
    """Scores in which values that differ by rounding only are made equal."""
    order, starts = _runs(np.where(mask, values, np.nan))
    lowest = np.take_along_axis(np.take_along_axis(values, order, -1), starts, -1)
    found = np.empty_like(values)
    np.put_along_axis(found, order, lowest, -1)
    return found


def kendall(x: TokenScores, y: TokenScores, mask: TokenMask) -> KendallResult:
    """Kendall's tau-b of x and y over the real tokens of each row, with its two-sided p-value."""
    return correlation(ranked(x, mask), ranked(y, mask))


def correlation(x: Ranked, y: Ranked) -> KendallResult:
    """Kendall's tau-b of two rankings of the same tokens, with its two-sided p-value.

    Kendall (1945), The treatment of ties in ranking problems. The p-value is exact for rows without ties that
    are short or all but sorted, else normal with the variance corrected for ties; Kendall (1970), Rank
    Correlation Methods. Both are nan in a row where a real token has no score (nan).
    """
    lengths = x.mask.sum(-1)
    joint, discordant = _order(x.ranks, y.ranks)
    real = np.arange(x.mask.shape[1]) < lengths[:, None]
    tied = _ties(joint, real)
    pairs = lengths * (lengths - 1) // 2
    # concordant + discordant = all pairs less those tied in x or in y, by inclusion and exclusion
    difference = pairs - x.ties.pairs - y.ties.pairs + tied.pairs - 2 * discordant
    with np.errstate(invalid="ignore"):
        # one root of the product, so that equal orders have a tau of exactly 1
        tau = difference / np.sqrt(1.0 * (pairs - x.ties.pairs) * (pairs - y.ties.pairs))
    p = _p_values(lengths, difference, discordant, x.ties, y.ties)
    constant = (x.ties.pairs == pairs) | (y.ties.pairs == pairs)
    undefined = constant | x.missing | y.missing
    return KendallResult(np.where(undefined, np.nan, tau.clip(-1, 1)), np.where(undefined, np.nan, p))


def top_overlap(x: TokenScores, y: TokenScores, mask: TokenMask, share: float = 0.2) -> TextValues:
    """The share of the highest k tokens that x and y have in common, k = round(share × tokens), at least one.

    Krishna et al. (2022), section 3.2, feature agreement; it is expected over the order of equal scores, and nan in a
    row where a real token has no score (nan) or that has no token.
    """
    size = np.maximum(1, np.rint(share * mask.sum(-1)))
    common = (_among(x, mask, size) * _among(y, mask, size)).sum(-1) / size
    undefined = ~mask.any(-1) | ((np.isnan(x) | np.isnan(y)) & mask).any(-1)
    return np.where(undefined, np.nan, common)


def sign_agreement(x: TokenScores, y: TokenScores, mask: TokenMask) -> TextValues:
    """The share of tokens with the same sign in x and y, of those where neither is 0; Krishna et al. (2022).

    It is nan in a row where x or y is nowhere negative, because scores without a sign say nothing about it, where no
    token has both signs, or where a real token has no score (nan).
    """
    # differs from Krishna et al. (2022), section 3.2: all tokens count, not only the highest
    both = mask & (x != 0) & (y != 0)
    same = both & (np.sign(x) == np.sign(y))
    signed = ((x < 0) & mask).any(-1) & ((y < 0) & mask).any(-1) & both.any(-1)
    defined = signed & ~((np.isnan(x) | np.isnan(y)) & mask).any(-1)
    return np.where(defined, same.sum(-1) / np.maximum(both.sum(-1), 1), np.nan)


def _among(values: TokenScores, mask: TokenMask, size: TextValues) -> TokenScores:
    """The probability of each token to be among the highest `size`, with ties in random order."""
    falling = np.where(mask, -levelled(values, mask), np.nan)  # nan is sorted to the end
    ordered = np.sort(falling, -1)
    border = np.take_along_axis(ordered, np.minimum(size, values.shape[1]).astype(np.int64)[:, None] - 1, -1)
    above, level = mask & (falling < border), mask & (falling == border)
    positions = size - above.sum(-1)
    return np.asarray(above + level * (positions / np.maximum(level.sum(-1), 1))[:, None])


def _ranks(values: TokenScores, mask: TokenMask) -> TokenRanks:
    """Dense ranks from 0; padding has rank T, above all real tokens."""
    order, starts = _runs(np.where(mask, values, np.nan))
    ranks = np.empty(values.shape, dtype=np.int64)
    np.put_along_axis(ranks, order, _dense(starts), -1)
    return np.where(mask, ranks, values.shape[1])


def _runs(values: TokenScores) -> tuple[TokenRanks, TokenRanks]:
    """The sort order of each row, nan last, and the start of each element's run of ties."""
    order = values.argsort(-1)
    ordered = np.take_along_axis(values, order, -1)
    lower, upper = ordered[:, :-1], ordered[:, 1:]
    positions = np.zeros(values.shape, dtype=np.int64)
    with np.errstate(invalid="ignore"):  # of two infinities
        gap = upper - lower
    begins = ~(np.isfinite(gap) & (gap <= TIED * np.minimum(np.abs(lower), np.abs(upper)))) & (upper != lower)
    positions[:, 1:] = np.where(begins, np.arange(1, values.shape[1]), 0)
    return order, np.maximum.accumulate(positions, axis=-1)


def _dense(ordered: TokenRanks) -> TokenRanks:
    """Dense ranks of sorted rows."""
    steps = np.zeros(ordered.shape, dtype=np.int64)
    steps[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    return steps.cumsum(-1)


def _order(rank_x: TokenRanks, rank_y: TokenRanks) -> tuple[TokenRanks, TextCounts]:
    """The dense ranks of the pairs (x, y) in order, padding last, and the number of discordant pairs."""
    base = rank_x.shape[1] + 1
    joint = np.sort(rank_x * base + rank_y, axis=-1)
    # sorted by x and then by y, a pair is discordant exactly when its y fall
    return _dense(joint), _inversions(joint % base)


def _inversions(values: TokenRanks) -> TextCounts:
    """The number of pairs i < j with values[i] > values[j], by a vectorised merge sort."""
    rows, size = values.shape
    width = 1 << max(size - 1, 0).bit_length()
    blocks = np.full((rows, width), 2 * size, dtype=np.int32)  # no value is above T, so the filling never counts
    blocks[:, :size] = 2 * values  # the last bit is free to mark the right half of a block
    total = np.zeros(rows, dtype=np.int64)
    half = 1
    while half < width:
        blocks = blocks.reshape(rows, width // (2 * half), 2 * half)
        blocks[:, :, half:] += 1
        blocks.sort(axis=-1, kind="stable")  # linear on two sorted halves
        right, position = blocks & 1, np.arange(2 * half)
        # each inversion moves an element of the right half one position down
        total += position[half:].sum() * blocks.shape[1] - right.sum(1) @ position
        blocks -= right
        half *= 2
    return total


def _ties(ranks: TokenRanks, mask: TokenMask) -> Ties:
    """The tie statistics of each row, from its dense ranks."""
    rows, size = ranks.shape
    cells = (np.arange(rows)[:, None] * size + ranks)[mask]
    c = np.bincount(cells, minlength=rows * size).reshape(rows, size)
    twice = c * (c - 1)
    return Ties(twice.sum(-1) // 2, (twice * (c - 2)).sum(-1), (twice * (2 * c + 5)).sum(-1))


def _p_values(
    lengths: TextCounts,
    difference: TextCounts,
    discordant: TextCounts,
    x: Ties,
    y: Ties,
) -> TextValues:
    """Two-sided p-values: exact without ties for short rows and extreme counts, else normal."""
    rare = np.minimum(discordant, lengths * (lengths - 1) // 2 - discordant)
    exact = (x.pairs == 0) & (y.pairs == 0) & ((lengths <= EXACT_LENGTH) | (rare <= 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        normal = 2 * ndtr(-abs(difference) / np.sqrt(_variance(lengths, x, y)))
    return np.where(exact, _exact(lengths, rare), normal)


def _variance(lengths: TextCounts, x: Ties, y: Ties) -> TextValues:
    """The variance of concordant minus discordant pairs under independence; Kendall (1970)."""
    n = lengths.astype(np.float64)
    m = n * (n - 1)
    variance: np.ndarray = (m * (2 * n + 5) - x.spread - y.spread) / 18
    # products of two sums leave the range of integers in long rows
    variance += 2.0 * x.pairs * y.pairs / m
    variance += x.triples.astype(np.float64) * y.triples / (9 * m * (n - 2))
    return variance


def _exact(lengths: TextCounts, rare: TextCounts) -> TextValues:
    """The exact two-sided p-value from the rarer kind of pair, for short rows and rare <= 1."""
    table = _null()
    short = table[lengths.clip(0, EXACT_LENGTH), rare.clip(0, table.shape[1] - 1)]
    # of the n! orders one has no inversion and n - 1 have one: both tails hold 2 / n! or 2 n / n!
    long: np.ndarray = 2 / factorial(lengths - (rare == 1))
    return np.where(lengths <= EXACT_LENGTH, short, long)


@cache
def _null() -> Float[np.ndarray, "N K"]:
    """Two-sided p-values by length and number of inversions: cumulative Mahonian numbers over n!."""
    width = EXACT_LENGTH * (EXACT_LENGTH - 1) // 2 + 1
    table = np.ones((EXACT_LENGTH + 1, width))
    chances = np.ones(1)
    for length in range(2, EXACT_LENGTH + 1):
        # the last of `length` elements is in 0 .. length - 1 inversions, each with the same chance
        chances = np.convolve(chances, np.full(length, 1 / length))
        table[length, : len(chances)] = np.minimum(1, 2 * chances.cumsum())
    return table
