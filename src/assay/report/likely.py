"""How likely an explainer finds the words that decide: read off a table of models whose reasons are known."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import expit, logit, ndtri

from assay.lookup import side_by_side, texts
from assay.records import CHANCE, Finding, Record
from assay.writing import count, listed, number

ECONOMY = ("deciding", "economy")
"""The audit and the measure that trust is read off."""

TRUST = (
    "Trust is a share of texts with known reasons: of those in which an explanation measured like this one, in how "
    "many its highest words were those that decide."
)
POINTS = ndtri((np.arange(15) + 0.5) / 15)
"""Points of a normal distribution, all as probable, that stand for the error of a mean over texts."""

WIDER = 2.0
Z = float(ndtri(0.975))


@cache
def known_reasons() -> dict[str, Any]:
    """The table that `python -m studies.verdict` writes: coefficients, limits, their errors, what the bank holds."""
    stored: dict[str, Any] = json.loads(files("assay.report").joinpath("known_reasons.json").read_text("utf-8"))
    return stored


def likely(found: Finding, unlike: Sequence[str] = ()) -> Finding:
    """The finding of a mean economy as the probability that the explainer finds the words that decide, with interval.

    The interval holds the error of the mean over texts and what other families of models in the bank would have given;
    of a model `unlike` the bank it reaches `WIDER` times as far from the estimate, in log-odds.
    """
    rule = known_reasons()["explainer"]
    error = (found.high - found.low) / (2 * Z) if math.isfinite(found.high - found.low) else 0.0
    economies = np.clip(found.mean + error * POINTS, 0, 1)
    drawn = np.array(rule["draws"])
    low, high = np.quantile(_probability(drawn, economies), (0.025, 0.975))
    mean = float(_probability(np.array([rule["coefficients"]]), np.array([found.mean]))[0, 0])
    low, high = min(float(low), mean), max(float(high), mean)
    if unlike:
        low, high = (float(expit(logit(mean) + WIDER * (logit(end) - logit(mean)))) for end in (low, high))
    return replace(found, mean=mean, low=low, high=high)


def _probability(given: Float[np.ndarray, "D 2"], economies: Float[np.ndarray, " E"]) -> Float[np.ndarray, "D E"]:
    return np.asarray(expit(given[:, :1] + given[:, 1:] * economies))


def of_text(economy: float) -> float:
    """The probability that the highest words of a single text hold what decides there.

    It is read off the text's own economy, with words of the model's vocabulary in place of those of other texts.
    """
    start, slope = known_reasons()["alone"]["coefficients"]
    return float(expit(start + slope * economy))


def trusted(trust: float) -> str:
    """How far a heatmap can be trusted, as it stands beside one."""
    return f"trust {number(trust, 2)}"


def trusts(record: Record) -> dict[int, dict[str, float]]:
    """How far each heatmap can be trusted, by text and explainer; of those that the audit of deciding words has read.

    It is read off the economy in the text and the explainer's mean over texts.
    """
    audit, measure = ECONOMY
    means = {f.subject: f.mean for f in record.findings if (f.audit, f.measure, f.group) == (*ECONOMY, "all") and f.n}
    means.pop(CHANCE, None)
    start, own, whole = known_reasons()["text"]["coefficients"]
    economies = side_by_side(record, audit, [f"{measure}:{name}" for name in means])
    sure = expit(start + own * economies + whole * np.array(list(means.values())))
    pairs = zip(texts(record, audit).tolist(), sure.tolist(), strict=True)
    told = {example: _finite(dict(zip(means, row, strict=True))) for example, row in pairs}
    return {example: numbers for example, numbers in told.items() if numbers}


def _finite(numbers: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in numbers.items() if math.isfinite(value)}


def unlike(record: Record) -> list[str]:
    """In what the audited model is unlike every model of the bank, as parts of a sentence."""
    bank, model = known_reasons()["bank"], record.summary.get("model", {})
    lengths = record.examples["starts"].combine_chunks().value_lengths().to_numpy() if len(record.examples) else []
    found = []
    if len(lengths):
        found += _outside("its texts have {} words on average", float(np.mean(lengths)), bank["words"], 0)
    found += _outside("it tells {} classes apart", float(len(record.summary["corpus"]["classes"])), bank["classes"], 0)
    accuracy = (model.get("test") or {}).get("accuracy")
    if accuracy is not None:
        found += _outside("its accuracy is {}", accuracy, bank["accuracy"], 2)
    network = kind(model)
    if network not in bank["networks"]:
        found.append(f"it is another kind of network ({network or 'not known'})")
    return found


def kind(model: dict[str, Any]) -> str:
    """What sort of network a summary tells of: its encoder where it is one of ours over words, else its shape."""
    recipe = (model.get("history") or {}).get("recipe") or {}
    encoder, shape = (recipe.get("architecture") or {}).get("encoder"), model.get("shape", "")
    return str(encoder if encoder and shape == "flat" else shape)


def _outside(words: str, value: float, ends: Sequence[int | float], digits: int) -> list[str]:
    low, high = ends
    if low <= value <= high:
        return []
    told = count(round(value)) if not digits else number(value, digits)
    return [f"{words.format(told)}, in the bank {number(float(low), digits)} to {number(float(high), digits)}"]


def told(reasons: Sequence[str]) -> str:
    """A sentence on a model that is unlike the bank."""
    return f"This model is unlike those of the bank ({listed(list(reasons))}): intervals are widened."
