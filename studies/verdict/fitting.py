"""From the cells of the bank to a rule: measures, what they tell of the truth, and the probability that is fitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Float
from scipy.special import expit, logit
from scipy.stats import rankdata

from assay.audits.deciding import MEASURES, Curves, measures
from assay.records import read_table
from studies.verdict.cells import CURVES, TABLE

FOUND = 0.8  # from this average precision on, an explainer has found the words that decide
LEARNT, HELD = 0.95, 20  # the accuracy, and the number of verified texts, from which a cell counts
ABOUT = ("cell", "family", "corpus", "network", "seed", "classes", "accuracy", "texts", "length", "verified", "device")


def rows(folder: Path) -> list[dict[str, Any]]:
    """One row for each explainer of a cell: its average precision over verified texts, each measure over all texts."""
    texts, curves = read_table(folder / TABLE), np.load(folder / CURVES)
    names = list(dict.fromkeys(texts["explainer"].to_pylist()))
    own = [name for name in texts.column_names if name not in (*ABOUT, "seconds", "text", "words", "holds", "explainer")]
    shape = (-1, len(names))
    values = {name: texts[name].to_numpy().reshape(shape) for name in own}
    values |= {name: found[:, : len(names)] for name, found in measures(Curves(**curves)).items()}
    holds = texts["holds"].to_numpy(zero_copy_only=False).reshape(shape)
    about = {name: texts[name][0].as_py() for name in ABOUT}
    precision = np.where(holds, values.pop("precision"), np.nan)
    means = {name: _means(each) for name, each in {"precision": precision, **values}.items()}
    usable = np.isfinite(values["economy"]).sum(0)
    return [
        about | {"explainer": name, "usable": int(usable[place])} | {key: float(each[place]) for key, each in means.items()}
        for place, name in enumerate(names)
    ]


def _means(values: Float[np.ndarray, "N E"]) -> Float[np.ndarray, " E"]:
    """The means over texts of what there is."""
    there = np.isfinite(values)
    return np.where(there.any(0), np.where(there, values, 0).sum(0) / np.maximum(there.sum(0), 1), np.nan)


def auroc(values: Float[np.ndarray, " n"], positive: Bool[np.ndarray, " n"]) -> float:
    """The chance that a value of a positive case is above that of another; a tie counts half (Mann and Whitney)."""
    known = np.isfinite(values)
    values, positive = values[known], positive[known]
    some, others = positive.sum(), (~positive).sum()
    if not some or not others:
        return float("nan")
    return float((rankdata(values)[positive].sum() - some * (some + 1) / 2) / (some * others))


def logistic(x: Float[np.ndarray, "n k"], y: Float[np.ndarray, " n"], weight: Float[np.ndarray, " n"], ridge: float = 1e-2) -> Float[np.ndarray, " k"]:
    """The coefficients of a logistic regression with a small ridge, by Newton's method."""
    found = np.zeros(x.shape[1])
    for _ in range(100):
        p = expit(x @ found)
        slope = x.T @ (weight * (p - y)) + ridge * found
        bend = (x * (weight * p * (1 - p))[:, None]).T @ x + ridge * np.eye(x.shape[1])
        step = np.linalg.solve(bend, slope)
        found = found - step
        if np.abs(step).max() < 1e-12:
            break
    return found
