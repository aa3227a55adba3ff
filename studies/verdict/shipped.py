"""The table in the package: the rule of the verdict, how it does on families it has not seen, what the bank holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from assay.audits import AUDITS
from assay.stories import story_of
from studies.verdict.bank import NETWORKS
from studies.verdict.fitting import ALONE, NULL, counts
from studies.verdict.rule import FOUND, Cases, auroc, fit, held_out, judged, logistic, with_one

DRAWS = 200  # of families with replacement
PLACES = 4  # of coefficients: what rounding in another library cannot reach
PATH = Path(str(files("assay.grading").joinpath("known_reasons.json")))
COMMAND = "python -m studies.verdict"


def shipped(explainers: pa.Table, texts: pa.Table) -> dict[str, Any]:
    """The whole table, as it is written."""
    rows = counts(explainers)
    cases, own, alone = of_explainers(rows), of_texts(texts, ("economy", "mean")), of_texts(texts, (ALONE,))
    rule = fit(cases)
    return {
        "command": COMMAND,
        "models": len(set(rows["cell"].to_pylist())),
        "found": FOUND,
        "explainer": {
            "coefficients": _rounded(rule.coefficients),
            "passes": round(rule.passes, PLACES),
            "fails": round(rule.fails, PLACES),
            "held_out": figures(cases),
            "draws": _drawn(cases),
        },
        "text": {"coefficients": _rounded(fit(own).coefficients), "held_out": figures(own)},
        "alone": {"coefficients": _rounded(fit(alone).coefficients), "held_out": figures(alone)},
        "measures": _alone(rows),
        "bank": _ranges(rows),
    }


def _alone(rows: pa.Table) -> dict[str, float]:
    """How surely each measure of the leaderboard by itself tells finders from others."""
    found = {}
    every = [each for audit in ("deciding", "erasure") for each in story_of(AUDITS[audit]).measures if each.column]
    for measure in every:
        cases = of_explainers(rows, (measure.name,))
        values = cases.x[:, 0] if measure.better == "high" else -cases.x[:, 0]
        found[measure.name] = round(auroc(values, cases.found), 3)
    return found


def of_explainers(rows: pa.Table, measures: tuple[str, ...] = ("economy",)) -> Cases:
    """The explainers of the bank, all but random ones, by the means of these measures."""
    return _cases(counts(rows), measures)


def of_texts(texts: pa.Table, measures: tuple[str, ...]) -> Cases:
    """The verified texts of all explainers but random ones."""
    return _cases(counts(texts), measures)


def _cases(rows: pa.Table, measures: tuple[str, ...]) -> Cases:
    x = np.column_stack([rows[name].to_numpy().astype(float) for name in measures])
    precision = rows["precision"].to_numpy().astype(float)
    kept = np.isfinite(x).all(-1) & np.isfinite(precision) & (np.array(rows["explainer"].to_pylist()) != NULL)
    return Cases(np.array(rows["family"].to_pylist()), x, precision >= FOUND)[kept]


def figures(cases: Cases) -> dict[str, float]:
    """How the rule does on each family when it is fitted to all others."""
    return {name: round(value, 3) for name, value in asdict(judged(*held_out(cases), cases)).items()}


def _drawn(cases: Cases) -> list[list[float]]:
    """The coefficients of families that are drawn with replacement (a bootstrap of whole families)."""
    chance, names = np.random.default_rng(0), cases.families
    drawn = []
    for _ in range(DRAWS):
        times = dict(
            zip(names, np.bincount(chance.integers(len(names), size=len(names)), minlength=len(names)), strict=True)
        )
        weight = cases.weights * np.array([times[family] for family in cases.family])
        drawn.append(_rounded(logistic(with_one(cases.x), cases.found.astype(float), weight)))
    return drawn


def _ranges(rows: pa.Table) -> dict[str, Any]:
    """Between what ends the models of the bank lie."""
    encoders = {name: recipe.architecture.encoder for name, recipe in NETWORKS.items()} | {"minilm": "transformer"}
    networks = {encoders[name] for name in rows["network"].to_pylist() if name in encoders}
    task = rows["task"].to_numpy()
    return {
        "words": [round(float(end(rows["length"].to_numpy())), 1) for end in (np.min, np.max)],
        "classes": [int(end(rows["classes"].to_numpy())) for end in (np.min, np.max)],
        "accuracy": [round(float(task.min()), 3), 1.0],
        "networks": sorted(networks),
    }


def write(table: Mapping[str, Any], path: Path = PATH) -> None:
    """Writes the table, a line for each of its parts."""
    parts = [f"{json.dumps(name)}: {json.dumps(part)}" for name, part in table.items()]
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", "utf-8")


def _rounded(values: np.ndarray) -> list[float]:
    return [round(float(value), PLACES) for value in values]
