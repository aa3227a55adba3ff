"""How well each measure tells the explainers that find the deciding words from the others: by family, and left out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from jaxtyping import Float
from scipy.stats import spearmanr

from studies.verdict.fitting import ALONE, NULL, counts
from studies.verdict.rule import FOUND, Cases, Judged, auroc, held_out, judged

READS = {
    "tau": "words",
    "comprehensiveness": "5",
    "sufficiency": "5",
    "log_odds": "5",
    "flip": "up to all words",
    "morf": "words",
    "lerf": "words",
    "comprehensiveness_gain": "10",
    "sufficiency_gain": "10",
    "flip_gain": "up to all words, twice",
    "morf_gain": "words, twice",
    "weighted_tau": "64, for all explainers",
    "rbo": "64, for all explainers",
    "soft_sufficiency": "8",
    "soft_comprehensiveness": "8",
    "pi_soft_sufficiency": "40",
    "pi_soft_comprehensiveness": "40",
    "ffid_plus": "32, and a training",
    "ffid_minus": "32, and a training",
    "ffid": "64, and a training",
    "sufficient": "80",
    "necessary": "80",
    "economy": "160",
    ALONE: "160",
}
"""The measures of the table, and how often each reads a text for one explainer."""

FALLING = ("sufficiency", "flip", "morf", "ffid_minus")
"""Of these less is better."""

COMBINED = {
    "τ": ("tau",),
    "comprehensiveness and sufficiency": ("comprehensiveness", "sufficiency"),
    "all of the audit of erasure, and τ": (
        *("tau", "comprehensiveness", "sufficiency", "log_odds", "flip", "morf", "lerf"),
        *("comprehensiveness_gain", "sufficiency_gain", "flip_gain", "morf_gain"),
    ),
    "weighted τ and rank-biased overlap with leave-several-out": ("weighted_tau", "rbo"),
    "F-Fidelity, both parts": ("ffid_plus", "ffid_minus"),
    "soft erasure with the π correction, both parts": ("pi_soft_sufficiency", "pi_soft_comprehensiveness"),
    "sufficient and necessary": ("sufficient", "necessary"),
    "**economy**": ("economy",),
    "economy and all of the audit of erasure, and τ": (
        *("economy", "tau", "comprehensiveness", "sufficiency", "log_odds", "flip", "morf", "lerf"),
        *("comprehensiveness_gain", "sufficiency_gain", "flip_gain", "morf_gain"),
    ),
}
"""What was fitted and tried with each family left out."""


@dataclass(frozen=True)
class Told:
    """One measure: its AUROC in each family that holds finders and others, over all of them, and its Spearman."""

    name: str
    families: dict[str, float]
    whole: float
    spearman: float  # with the average precision, mean over models


def rivals(explainers: pa.Table) -> pa.Table:
    """All explainers of the cells that count, but random ones."""
    rows = counts(explainers)
    return rows.filter(np.array(rows["explainer"].to_pylist()) != NULL)


def _whole(rows: pa.Table) -> pa.Table:
    return rows.filter(np.isfinite(rows["tau"].to_numpy().astype(float)))


def told(explainers: pa.Table) -> list[Told]:
    """Every measure, the most telling first, in the models that all of them were taken of."""
    rows = _whole(rivals(explainers))
    precision = rows["precision"].to_numpy()
    family, cell = (np.array(rows[name].to_pylist()) for name in ("family", "cell"))
    found = []
    for name in READS:
        sign = -1 if name in FALLING else 1
        values = sign * rows[name].to_numpy().astype(float)
        known = np.isfinite(values) & np.isfinite(precision)
        parts = {
            each: auroc(values[own], precision[own] >= FOUND)
            for each in sorted(set(family.tolist()))
            if (own := known & (family == each)).any()
        }
        ranks = [
            _spearman(values[own], precision[own])
            for each in set(cell.tolist())
            if (own := known & (cell == each)).any()
        ]
        whole = auroc(values[known], precision[known] >= FOUND)
        found.append(Told(name, parts, whole, float(np.nanmean(ranks))))
    return sorted(found, key=lambda each: -each.whole)


def _spearman(values: Float[np.ndarray, " n"], precision: Float[np.ndarray, " n"]) -> float:
    if len(values) < 3 or np.ptp(values) == 0 or np.ptp(precision) == 0:
        return float("nan")
    return float(spearmanr(values, precision).statistic)


def combined(explainers: pa.Table) -> dict[str, Judged]:
    """The figures of each combination with the families left out in turn, measures in units of their spread."""
    rows = _whole(rivals(explainers))
    return {title: _judged(rows, names) for title, names in COMBINED.items()}


def _judged(rows: pa.Table, names: tuple[str, ...]) -> Judged:
    x = np.column_stack([rows[name].to_numpy().astype(float) for name in names])
    precision = rows["precision"].to_numpy()
    known = np.isfinite(x).all(-1) & np.isfinite(precision)
    x = x[known]
    cases = Cases(np.array(rows["family"].to_pylist())[known], (x - x.mean(0)) / x.std(0), precision[known] >= FOUND)
    return judged(*held_out(cases), cases)
