"""Agreement of tokens and spans with evidence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from assay.metrics import TextValues, TokenMask, TokenRanks, TokenScores
from assay.metrics.agreement import levelled
from assay.metrics.erasure import ranks


def average_precision(scores: TokenScores, truth: TokenMask, mask: TokenMask) -> TextValues:
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


def auprc(scores: TokenScores, truth: TokenMask, mask: TokenMask) -> TextValues:
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


def precision_at_truth(scores: TokenScores, truth: TokenMask, mask: TokenMask) -> TextValues:
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


def _last_of_run(ordered: TokenScores) -> TokenRanks:
    """For each element of a sorted row, the index of the last one equal to it."""
    positions = np.broadcast_to(np.arange(ordered.shape[1]), ordered.shape)
    ends = np.ones(ordered.shape, dtype=bool)
    ends[:, :-1] = ordered[:, 1:] != ordered[:, :-1]
    last = np.where(ends, positions, ordered.shape[1])
    return np.minimum.accumulate(last[:, ::-1], axis=-1)[:, ::-1]


def _share(
    found: TextValues,
    truth: TokenMask,
    scores: TokenScores,
    mask: TokenMask,
) -> TextValues:
    """`found` divided by the number of relevant tokens; nan where there is none or a score is missing."""
    size = truth.sum(-1)
    undefined = (size == 0) | (np.isnan(scores) & mask).any(-1)
    return np.where(undefined, np.nan, found / np.maximum(size, 1))


# Agreement of tokens and spans with human rationales; DeYoung et al. (2020), section 4.1

PerDocument = Int[np.ndarray, " N"]
Spans = Int[np.ndarray, "_ 3"]
"""One span a row: the number of its document, its first token, and the token after its last."""


@dataclass(frozen=True)
class Counts:
    """The number of predictions, marked items and hits of each of N documents."""

    hits: PerDocument
    predicted: PerDocument
    marked: PerDocument


@dataclass(frozen=True)
class Scores:
    """Precision, recall and F1, per document or overall."""

    precision: Float[np.ndarray, "*N"]
    recall: Float[np.ndarray, "*N"]
    f1: Float[np.ndarray, "*N"]


def top(scores: TokenScores, mask: TokenMask, share: float) -> TokenMask:
    """The highest round(share × tokens) tokens of each row, at least one; ties in order of position."""
    lengths = mask.sum(-1, keepdims=True)
    size = np.maximum(1, np.floor(share * lengths + 0.5))
    return np.asarray((ranks(scores, mask) < size) & mask)


def spans(chosen: TokenMask) -> Spans:
    """The maximal runs of chosen tokens."""
    edged = np.pad(chosen, ((0, 0), (1, 1))).astype(np.int8)
    change = np.diff(edged, axis=-1)
    row, start = np.nonzero(change == 1)
    _, end = np.nonzero(change == -1)
    return np.stack([row, start, end], axis=-1)


def token_counts(chosen: TokenMask, truth: TokenMask) -> Counts:
    """Counts of tokens; a hit is a marked token."""
    return Counts((chosen & truth).sum(-1), chosen.sum(-1), truth.sum(-1))


def span_counts(predicted: Spans, marked: Spans, documents: int, threshold: float = 0.5) -> Counts:
    """Counts of spans; a hit is a span whose IOU with some marked span is at least `threshold`."""
    marked = marked[marked[:, 0].argsort(kind="stable")]
    first, stop = (np.searchsorted(marked[:, 0], predicted[:, 0], side) for side in ("left", "right"))
    count = stop - first
    # every pair of a predicted and a marked span of one document, one after another
    owner = np.repeat(np.arange(len(predicted)), count)
    other = np.arange(len(owner)) - np.repeat(count.cumsum() - count - first, count)
    (_, start, end), (_, from_, to) = predicted[owner].T, marked[other].T
    shared = np.maximum(0, np.minimum(end, to) - np.maximum(start, from_))
    union = (end - start) + (to - from_) - shared
    hit = np.unique(owner[(shared > 0) & (shared >= threshold * union)])
    documents_of = (predicted[hit, 0], predicted[:, 0], marked[:, 0])
    return Counts(*(np.bincount(of, minlength=documents) for of in documents_of))


def scores(counts: Counts, clipped: bool = True) -> Scores:
    """Precision, recall and F1 of each document; 0 where undefined.

    `clipped` counts no more hits for recall than a document has marks, where several predictions hit one span.
    """
    # differs from DeYoung et al. (2020): they do not clip, so that two halves of a span have a recall of 2
    found = np.minimum(counts.hits, counts.marked) if clipped else counts.hits
    precision, recall = counts.hits / np.maximum(counts.predicted, 1), found / np.maximum(counts.marked, 1)
    return Scores(precision, recall, _f1(precision, recall))


def macro_spans(counts: Counts, clipped: bool = True) -> Scores:
    """Precision averaged over documents with predictions, recall over those with marks, and their F1."""
    each = scores(counts, clipped)
    precision, recall = _mean(each.precision[counts.predicted > 0]), _mean(each.recall[counts.marked > 0])
    return Scores(precision, recall, _f1(precision, recall))


def _f1(precision: np.ndarray, recall: np.ndarray) -> np.ndarray:
    total = np.asarray(precision + recall)
    return np.asarray(2 * precision * recall / np.where(total > 0, total, 1))


def _mean(values: np.ndarray) -> np.ndarray:
    """The mean; 0 without values."""
    return np.asarray(values.mean() if len(values) else 0.0)
