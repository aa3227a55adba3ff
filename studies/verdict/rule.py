"""From a measure to the probability that an explainer finds the deciding words: fitted, and judged on new families."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import expit
from scipy.stats import rankdata

FOUND = 0.8  # from this average precision on, an explainer has found the words that decide
WRONG, LOST = 0.02, 0.02
"""The shares of wrong passes, and of finders that fail, that limits are set to: on new families there will be more."""

RIDGE = 1e-4  # keeps the coefficients of a separable family finite, and changes no other
BINS = 10  # of equal width, of the error of calibration


@dataclass(frozen=True)
class Cases:
    """Measures [n, k] of explainers or of texts, the family of each, and whether the words that decide were found."""

    family: np.ndarray
    x: Float[np.ndarray, "n k"]
    found: Bool[np.ndarray, " n"]

    def __getitem__(self, chosen: Bool[np.ndarray, " n"]) -> Cases:
        return Cases(self.family[chosen], self.x[chosen], self.found[chosen])

    @property
    def families(self) -> list[str]:
        return sorted(set(self.family.tolist()))

    @property
    def weights(self) -> Float[np.ndarray, " n"]:
        """Every family weighs the same; the weights add up to the number of cases."""
        _, place, sizes = np.unique(self.family, return_inverse=True, return_counts=True)
        return np.asarray(len(self.found) / (len(sizes) * sizes[place]))


@dataclass(frozen=True)
class Rule:
    """A logistic regression, and the probabilities from which an explainer passes and below which it fails."""

    coefficients: Float[np.ndarray, " k+1"]
    passes: float
    fails: float

    def __call__(self, x: Float[np.ndarray, "n k"]) -> Float[np.ndarray, " n"]:
        return probability(self.coefficients, x)


@dataclass(frozen=True)
class Judged:
    """How a rule does on families that it has not seen."""

    auroc: float
    wrong: float  # share of passes that had not found the words
    failed: float  # share of finders that fail
    warned: float
    calibration: float
    passed: float


def fit(cases: Cases) -> Rule:
    """The rule of these cases, limits and all."""
    coefficients = logistic(with_one(cases.x), cases.found.astype(float), cases.weights)
    sure = probability(coefficients, cases.x)
    return Rule(coefficients, *limits(sure, cases.found, cases.weights))


def limits(
    sure: Float[np.ndarray, " n"], found: Bool[np.ndarray, " n"], weights: Float[np.ndarray, " n"]
) -> tuple[float, float]:
    """The lowest limit of a pass with few wrong ones, and the highest limit of a fail that loses few finders."""
    order = np.argsort(-sure, kind="stable")
    share = np.cumsum(np.where(found, 0, weights)[order]) / np.cumsum(weights[order])
    good = np.flatnonzero(share <= WRONG)
    passes = float(sure[order][good[-1]]) if len(good) else 1.0
    mine = np.argsort(sure[found], kind="stable")
    lost = np.cumsum(weights[found][mine]) / weights[found].sum()
    fails = float(sure[found][mine][np.searchsorted(lost, LOST)])
    return max(passes, fails), min(passes, fails)


def held_out(cases: Cases) -> tuple[Float[np.ndarray, " n"], np.ndarray]:
    """Probability and grade of each case by the rule of all families but its own."""
    sure, grades = np.empty(len(cases.found)), np.empty(len(cases.found), dtype="<U4")
    for family in cases.families:
        own = cases.family == family
        rule = fit(cases[~own])
        sure[own] = rule(cases.x[own])
        grades[own] = graded(sure[own], rule.passes, rule.fails)
    return sure, grades


def graded(sure: Float[np.ndarray, " n"], passes: float, fails: float) -> np.ndarray:
    return np.select([sure >= passes, sure < fails], ["pass", "fail"], "warn")


def judged(sure: Float[np.ndarray, " n"], grades: np.ndarray, cases: Cases) -> Judged:
    """The figures of a rule, every family with the same weight."""
    weights, found = cases.weights, cases.found
    passed = grades == "pass"
    return Judged(
        auroc=auroc(sure, found),
        wrong=_share(passed & ~found, passed, weights),
        failed=_share(found & (grades == "fail"), found, weights),
        warned=_share(grades == "warn", np.ones_like(found), weights),
        calibration=calibration(sure, found, weights),
        passed=_share(passed, np.ones_like(found), weights),
    )


def _share(part: Bool[np.ndarray, " n"], whole: Bool[np.ndarray, " n"], weights: Float[np.ndarray, " n"]) -> float:
    return float(weights[part].sum() / weights[whole].sum()) if whole.any() else float("nan")


def calibration(
    sure: Float[np.ndarray, " n"], found: Bool[np.ndarray, " n"], weights: Float[np.ndarray, " n"]
) -> float:
    """The mean gap between the probability that is said and the share that is right, over bins of that probability."""
    place = np.minimum((sure * BINS).astype(int), BINS - 1)
    gap = np.bincount(place, weights * (sure - found), BINS)
    return float(np.abs(gap).sum() / weights.sum())


def auroc(values: Float[np.ndarray, " n"], positive: Bool[np.ndarray, " n"]) -> float:
    """The chance that a value of a positive case is above that of another; a tie counts half (Mann and Whitney)."""
    known = np.isfinite(values)
    values, positive = values[known], positive[known]
    some, others = positive.sum(), (~positive).sum()
    if not some or not others:
        return float("nan")
    return float((rankdata(values)[positive].sum() - some * (some + 1) / 2) / (some * others))


def with_one(x: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "n k+1"]:
    return np.column_stack([np.ones(len(x)), x])


def probability(coefficients: Float[np.ndarray, " k+1"], x: Float[np.ndarray, "n k"]) -> Float[np.ndarray, " n"]:
    return np.asarray(expit(with_one(x) @ coefficients))


def logistic(
    x: Float[np.ndarray, "n k"], y: Float[np.ndarray, " n"], weight: Float[np.ndarray, " n"]
) -> Float[np.ndarray, " k"]:
    """The coefficients of a logistic regression with a tiny ridge, by Newton's method."""
    found = np.zeros(x.shape[1])
    for _ in range(100):
        p = expit(x @ found)
        slope = x.T @ (weight * (p - y)) + RIDGE * found
        bend = (x * (weight * p * (1 - p))[:, None]).T @ x + RIDGE * np.eye(x.shape[1])
        step = np.linalg.solve(bend, slope)
        found = found - step
        if np.abs(step).max() < 1e-12:
            break
    return found
