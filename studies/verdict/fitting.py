"""What the bank tells: a row for each explainer of each cell, and one for each of its texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Float

from assay.audits.deciding import REFERENCES, Curves, measures
from assay.records import read_table
from studies.verdict.bank import Cell
from studies.verdict.cells import CURVES, SHUFFLES, TABLE, VOCABULARY

ABOUT = ("cell", "family", "corpus", "network", "seed", "classes", "accuracy", "texts", "length", "verified", "device")
OTHER = ("seconds", "task", "text", "words", "holds", "explainer")
LEARNT, HELD = 0.95, 20
"""The accuracy of a model, and the number of its verified texts, from which its cell counts."""

TEXTS = pa.schema(
    [
        *((name, pa.string()) for name in ("cell", "family")),
        ("accuracy", pa.float64()),
        ("verified", pa.int64()),
        ("explainer", pa.string()),
        *((name, pa.float32()) for name in ("precision", "economy", "economy alone", "mean")),
    ]
)
NULL = "random"
ALONE = "economy alone"  # with words of the vocabulary in place of those of other texts


def gathered(runs: Path, wanted: Sequence[Cell]) -> tuple[pa.Table, pa.Table]:
    """The two tables of all cells that are there: of explainers, and of their verified texts."""
    there = [runs / cell.name for cell in wanted if (runs / cell.name / TABLE).exists()]
    pairs = [_cell(folder) for folder in there]
    explainers = pa.Table.from_pylist([row for rows, _ in pairs for row in rows])
    return explainers, pa.concat_tables([texts for _, texts in pairs])


def counts(rows: pa.Table) -> pa.Table:
    """The rows of the cells whose model has learnt its corpus, and that have enough verified texts."""
    return rows.filter((rows["accuracy"].to_numpy() >= LEARNT) & (rows["verified"].to_numpy() >= HELD))


def _cell(folder: Path) -> tuple[list[dict[str, Any]], pa.Table]:
    texts = read_table(folder / TABLE)
    names = list(dict.fromkeys(texts["explainer"].to_pylist()))
    shape = (-1, len(names))
    values = {
        name: texts[name].to_numpy().reshape(shape) for name in texts.column_names if name not in (*ABOUT, *OTHER)
    }
    values |= followed(folder / CURVES, names)
    holds = texts["holds"].to_numpy(zero_copy_only=False).reshape(shape)
    precision = np.where(holds, values.pop("precision"), np.nan)
    means = {name: _means(each) for name, each in {"precision": precision, **values}.items()}
    usable = np.isfinite(values["economy"]).sum(0)
    about = {name: texts[name][0].as_py() for name in ABOUT}
    about["task"] = texts["task"][0].as_py() if "task" in texts.column_names else about["accuracy"]
    rows = [
        about
        | {"explainer": name, "usable": int(usable[place])}
        | {key: round(float(each[place]), 5) for key, each in means.items()}
        for place, name in enumerate(names)
    ]
    kept = holds.ravel() & np.isfinite(values["economy"]).ravel()
    columns: dict[str, Any] = {
        name: pa.array([about[name]] * int(kept.sum())) for name in ("cell", "family", "accuracy")
    }
    columns["verified"] = np.full(int(kept.sum()), about["verified"])
    columns["explainer"] = [name for name, keep in zip(names * len(holds), kept, strict=True) if keep]
    for name, each in {"precision": precision, "economy": values["economy"], ALONE: values[ALONE]}.items():
        columns[name] = each.ravel()[kept].round(4).astype(np.float32)
    columns["mean"] = np.broadcast_to(means["economy"], holds.shape).ravel()[kept].round(4).astype(np.float32)
    return rows, pa.table(columns, TEXTS)


def followed(path: Path, names: Sequence[str]) -> dict[str, Float[np.ndarray, "N E"]]:
    """The measures of the audit of the words that decide, and its economy with words of the vocabulary."""
    stored = np.load(path)
    known = np.isin([*names, *["shuffle"] * SHUFFLES], list(REFERENCES))
    found = _read(stored, "", known)
    alone = f"{VOCABULARY}whole" in stored
    found[ALONE] = _read(stored, VOCABULARY, known)["economy"] if alone else np.full_like(found["economy"], np.nan)
    return {name: each[:, : len(names)] for name, each in found.items()}


def _read(stored: Mapping[str, Any], pool: str, known: Bool[np.ndarray, " R"]) -> dict[str, Float[np.ndarray, "N R"]]:
    return measures(Curves(**{name: stored[f"{pool}{name}"] for name in Curves.__annotations__}), known)


def _means(values: Float[np.ndarray, "N E"]) -> Float[np.ndarray, " E"]:
    """The means over texts of what there is."""
    there = np.isfinite(values)
    return np.where(there.any(0), np.where(there, values, 0).sum(0) / np.maximum(there.sum(0), 1), np.nan)
