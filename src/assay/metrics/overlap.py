"""Agreement of scores with a known set of relevant tokens."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int

from assay.metrics.agreement import levelled


def average_precision(
    scores: Float[np.ndarray, "B T"], truth: Bool[np.ndarray, "B T"], mask: Bool[np.ndarray, "B T"]
) -> Float[np.ndarray, " B"]:
    """Average precision of each row: Σ (R_k - R_k-1) P_k.

    Equal scores form one threshold. It is nan in a row without a true token, or where a real token
    has no score (nan).
    """
    truth, falling = truth & mask, np.where(mask, -levelled(scores, mask), np.nan)
    order = falling.argsort(-1)  # nan, and so padding, comes last
    ordered, hits = np.take_along_axis(falling, order, -1), np.take_along_axis(truth, order, -1)
    precision = hits.cumsum(-1) / np.arange(1, scores.shape[1] + 1)
    at_threshold = np.take_along_axis(precision, _last_of_run(ordered), -1)
    return _share((at_threshold * hits).sum(-1), truth, scores, mask)


def auprc(
    scores: Float[np.ndarray, "B T"], truth: Bool[np.ndarray, "B T"], mask: Bool[np.ndarray, "B T"]
) -> Float[np.ndarray, " B"]:
    """The area under the precision-recall curve of each row by trapezoids, from precision 1 at recall 0.

    This is how DeYoung et al. (2020), section 4.1, measure soft scores; straight lines between the points make it
    differ from average precision. Equal scores form one threshold. It is nan where average precision is.
    """
    # differs from DeYoung et al. (2020): a row without a true token counts as .5 there, by its curve's two ends
    truth, falling = truth & mask, np.where(mask, -levelled(scores, mask), np.nan)
    order = falling.argsort(-1)
    ordered, hits = np.take_along_axis(falling, order, -1), np.take_along_axis(truth, order, -1)
    found = np.pad(hits.cumsum(-1), ((0, 0), (1, 0)))
    precision = found / np.maximum(1, np.arange(found.shape[1]))
    precision[:, :1] = 1
    stops = np.pad(_last_of_run(ordered) + 1, ((0, 0), (1, 0)))  # of the runs of equal scores; nothing comes first
    found, precision = (np.take_along_axis(values, stops, -1) for values in (found, precision))
    # inside a run neither changes, so its steps have no width
    doubled = np.diff(found, axis=-1) * (precision[:, 1:] + precision[:, :-1])
    return _share(doubled.sum(-1) / 2, truth, scores, mask)


def precision_at_truth(
    scores: Float[np.ndarray, "B T"], truth: Bool[np.ndarray, "B T"], mask: Bool[np.ndarray, "B T"]
) -> Float[np.ndarray, " B"]:
    """The precision of the |truth| highest tokens of each row, in expectation over the order of ties.

    It is nan in a row without a true token, or where a real token has no score (nan).
    """
    truth = truth & mask
    size = truth.sum(-1)
    falling = np.where(mask, -levelled(scores, mask), np.inf)
    last = np.arange(1, scores.shape[1] + 1) == size[:, None]
    border = np.sort(falling, axis=-1).max(-1, keepdims=True, initial=-np.inf, where=last)
    above, level = mask & (falling < border), mask & (falling == border)
    positions = size - above.sum(-1)
    chance = (level & truth).sum(-1) / np.maximum(level.sum(-1), 1)
    return _share((above & truth).sum(-1) + positions * chance, truth, scores, mask)


def _last_of_run(ordered: Float[np.ndarray, "B T"]) -> Int[np.ndarray, "B T"]:
    """For each element of a sorted row, the index of the last one equal to it."""
    positions = np.broadcast_to(np.arange(ordered.shape[1]), ordered.shape)
    ends = np.ones(ordered.shape, dtype=bool)
    ends[:, :-1] = ordered[:, 1:] != ordered[:, :-1]
    last = np.where(ends, positions, ordered.shape[1])
    return np.minimum.accumulate(last[:, ::-1], axis=-1)[:, ::-1]


def _share(
    found: Float[np.ndarray, " B"],
    truth: Bool[np.ndarray, "B T"],
    scores: Float[np.ndarray, "B T"],
    mask: Bool[np.ndarray, "B T"],
) -> Float[np.ndarray, " B"]:
    """`found` divided by the number of relevant tokens; nan where there is none or a score is missing."""
    size = truth.sum(-1)
    undefined = (size == 0) | (np.isnan(scores) & mask).any(-1)
    return np.where(undefined, np.nan, found / np.maximum(size, 1))
