"""Classifier performance; nan without examples."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int


def accuracy(labels: Int[np.ndarray, " N"], predicted: Int[np.ndarray, " N"]) -> float:
    """The share of correct predictions."""
    return float((labels == predicted).mean()) if len(labels) else np.nan


def macro_f1(labels: Int[np.ndarray, " N"], predicted: Int[np.ndarray, " N"], classes: int) -> float:
    """F1 averaged over the classes that are labelled or predicted at least once."""
    hits = np.bincount(labels[labels == predicted], minlength=classes)
    # 2 TP / (2 TP + FP + FN): the denominator counts a class in labels and in predictions
    seen = np.bincount(labels, minlength=classes) + np.bincount(predicted, minlength=classes)
    occurs = seen > 0
    return float((2 * hits[occurs] / seen[occurs]).mean()) if occurs.any() else np.nan


def auc(labels: Int[np.ndarray, " N"], probabilities: Float[np.ndarray, "N C"]) -> float:
    """The area under the ROC curve; with more than two classes, the one-vs-rest mean.

    It is the chance that an example of the class ranks above one of the rest, equal ones counted half; Mann
    and Whitney (1947). Classes without an example are left out, and so is one that holds them all.
    """
    from scipy.stats import rankdata  # slow to import, and only needed here

    examples, classes = probabilities.shape
    # of two classes, one column says all; the other may be rounded to ties near 1
    measured = np.arange(1 if classes == 2 else 0, classes)
    positive = labels[:, None] == measured
    count = positive.sum(0)
    defined = (count > 0) & (count < examples)
    if not defined.any():
        return np.nan
    positive, count = positive[:, defined], count[defined]
    ranks = rankdata(probabilities[:, measured[defined]], axis=0)
    wins = (ranks * positive).sum(0) - count * (count + 1) / 2
    return float((wins / (count * (examples - count))).mean())
