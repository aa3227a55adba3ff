"""Plausibility: agreement of tokens and spans with human rationales (DeYoung et al., 2020, section 4.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from assay.metrics.erasure import ranks

Spans = Int[np.ndarray, "_ 3"]
"""One span a row: the number of its document, its first token, and the token after its last."""


@dataclass(frozen=True)
class Counts:
    """The number of predictions, marked items and hits of each of N documents."""

    hits: Int[np.ndarray, " N"]
    predicted: Int[np.ndarray, " N"]
    marked: Int[np.ndarray, " N"]


@dataclass(frozen=True)
class Scores:
    """Precision, recall and F1, per document or overall."""

    precision: Float[np.ndarray, "*N"]
    recall: Float[np.ndarray, "*N"]
    f1: Float[np.ndarray, "*N"]


def top(scores: Float[np.ndarray, "B T"], mask: Bool[np.ndarray, "B T"], share: float) -> Bool[np.ndarray, "B T"]:
    """The highest round(share × tokens) tokens of each row, at least one; ties in order of position."""
    lengths = mask.sum(-1, keepdims=True)
    size = np.maximum(1, np.floor(share * lengths + 0.5))
    return np.asarray((ranks(scores, mask) < size) & mask)


def spans(chosen: Bool[np.ndarray, "B T"]) -> Spans:
    """The maximal runs of chosen tokens."""
    edged = np.pad(chosen, ((0, 0), (1, 1))).astype(np.int8)
    change = np.diff(edged, axis=-1)
    row, start = np.nonzero(change == 1)
    _, end = np.nonzero(change == -1)
    return np.stack([row, start, end], axis=-1)


def token_counts(chosen: Bool[np.ndarray, "B T"], truth: Bool[np.ndarray, "B T"]) -> Counts:
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


def micro(counts: Counts, clipped: bool = True) -> Scores:
    """Micro-averaged scores over all documents."""
    found = np.minimum(counts.hits, counts.marked) if clipped else counts.hits
    precision = np.asarray(counts.hits.sum() / max(1, counts.predicted.sum()))
    recall = np.asarray(found.sum() / max(1, counts.marked.sum()))
    return Scores(precision, recall, _f1(precision, recall))


def macro_tokens(counts: Counts) -> Scores:
    """Precision, recall and F1 averaged over documents with any prediction or mark."""
    each = scores(counts)
    some = (counts.predicted + counts.marked) > 0
    return Scores(*(_mean(values[some]) for values in (each.precision, each.recall, each.f1)))


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
