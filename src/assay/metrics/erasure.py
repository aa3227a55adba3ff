"""Erasure curves, economy and cohesion."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from assay.errors import unknown
from assay.metrics import TextCounts, TextValues, TokenMask, TokenRanks, TokenScores
from assay.metrics.agreement import levelled

Values = Float[np.ndarray, "*B"]
Flags = Bool[np.ndarray, "*B"]

# Perturbation curves: a decision's probability as words are removed in the order of an explanation

THRESHOLDS = (0.01, 0.05, 0.1, 0.2, 0.5)
"""The shares of a text's tokens that ERASER removes or keeps; DeYoung et al. (2020), section 4.2."""

SMALLEST = 0.1  # a whole text must be this much surer than an empty one, or their difference divides nothing
RAREST = 1e-12  # of a probability whose logarithm is taken


def ranks(scores: TokenScores, mask: TokenMask) -> TokenRanks:
    """The rank of each token, 0 for the highest score; ties in order of position, padding last."""
    order = np.where(mask, -levelled(scores, mask), np.inf).argsort(-1, kind="stable")
    return np.asarray(order.argsort(-1))


def sizes(lengths: TextCounts, thresholds: Sequence[float] = THRESHOLDS) -> Int[np.ndarray, "B K"]:
    """The number of tokens at each threshold, ceil(threshold × tokens), at least one."""
    exact = lengths[:, None] * np.asarray(thresholds)
    return np.asarray(np.ceil(exact - 1e-9), dtype=np.int64)  # .07 × 100 is a little more than 7 to a computer


def grid(lengths: TextCounts, thresholds: Sequence[float] = THRESHOLDS, most: int = 32) -> Int[np.ndarray, "B G"]:
    """The numbers of removed tokens, from 0 to all, at which a perturbation curve is evaluated.

    They are all of them in texts of up to `most` tokens, else `most` evenly spread ones and those of the thresholds.
    Rows that need fewer points repeat their last.
    """
    steps = np.clip(lengths, 1, most)[:, None]
    spread = np.rint(lengths[:, None] * np.minimum(np.arange(most + 1), steps) / steps).astype(np.int64)
    points = np.sort(np.concatenate([spread, sizes(lengths, thresholds)], 1), 1)
    new = np.ones(points.shape, dtype=bool)
    new[:, 1:] = points[:, 1:] > points[:, :-1]
    points = np.sort(np.where(new, points, lengths[:, None]), 1)
    return points[:, : int(new.sum(1).max(initial=1))]


def aopc(drops: Float[np.ndarray, "*B K"], variant: str = "eraser") -> Values:
    """AOPC, the area over the perturbation curve, from the drops at K thresholds.

    "eraser" is the plain mean over the thresholds (DeYoung et al., 2020); "unirex" divides their sum by K + 1, as if
    nothing removed were a threshold too, whose drop is 0 (Chan et al., 2022, in their code, after Samek et
    al., 2017).
    """
    extra = {"eraser": 0, "unirex": 1}
    if variant not in extra:
        raise unknown("variant of AOPC", variant, extra)
    return np.asarray(drops.sum(-1) / (drops.shape[-1] + extra[variant]))


def normalised(drops: Values, whole: Values, empty: Values) -> Values:
    """The drop divided by p(text) − p(empty text); Carton et al. (2020).

    It is nan where the whole text adds less than SMALLEST.
    """
    # differs from Carton et al. (2020): a rise stays a negative drop, and a low sufficiency is the good one, as ever
    added = whole - empty
    defined = added >= SMALLEST
    return np.where(defined, drops / np.where(defined, added, 1), np.nan)


def log_odds(chosen: Values, others: Values) -> Values:
    """log(p / (1 - p)), from p and the sum of all other probabilities."""
    # the two are given apart, because 1 - p keeps no digits where p is near 1
    return np.asarray(np.log(np.maximum(chosen, RAREST)) - np.log(np.maximum(others, RAREST)))


def first_flip(changed: Bool[np.ndarray, "*B G"], share: Float[np.ndarray, "*#B G"]) -> tuple[Values, Flags]:
    """The share of removed tokens at the first change of decision, 1 if it never changes, and whether it does.

    Only points with something removed and something left (0 < share < 1) count: what a model says of an empty text
    is no answer to that text. On a sparse grid the share is rounded up to the next point. Decision flips: Serrano and
    Smith (2019).
    """
    seen = changed & (share > 0) & (share < 1)
    flipped: np.ndarray = np.asarray(seen.any(-1))
    first = np.take_along_axis(np.broadcast_to(share, seen.shape), seen.argmax(-1)[..., None], -1)[..., 0]
    return np.where(flipped, first, 1.0), flipped


def area(values: Float[np.ndarray, "*B G"], share: Float[np.ndarray, "*#B G"]) -> Values:
    """The area under a curve over the share of tokens, by the trapezoid rule."""
    steps = np.diff(share, axis=-1)
    return np.asarray((steps * (values[..., 1:] + values[..., :-1])).sum(-1) / 2)


# Economy: the fewest words that a ranking needs, relative to known rankings

REACHED = 0.75
"""The share of what the whole text adds to the probability of its decision that a set of words has to account for."""


def shortest(
    curve: Float[np.ndarray, "B R K"], sizes: Sequence[int], reached: float = REACHED
) -> Int[np.ndarray, "B R"]:
    """The least number of words at which each curve reaches the threshold; twice the maximum if it never does.

    A curve that has once risen so far counts as risen from there on.
    """
    there = curve >= reached
    first: np.ndarray = np.asarray(sizes)[there.argmax(-1)]
    return np.where(there.any(-1), first, 2 * max(sizes))


def economy(needed: Int[np.ndarray, "B R"], known: Int[np.ndarray, "B S"]) -> Float[np.ndarray, "B R"]:
    """The ratio of the fewest words of known rankings to those of each ranking; at most 1."""
    fewest = np.minimum(known.min(-1, keepdims=True), needed)
    return np.asarray(fewest / needed)


def cohesion(whole: TextValues, scattered: Float[np.ndarray, "B Q"]) -> TextValues:
    """The mean drop in p(class) when the words of a phrase are scattered over the text.

    The cohesion score of Chen et al. (2020); it is large where the phrase counts by its words being together.
    """
    return np.asarray(whole - scattered.mean(-1))
