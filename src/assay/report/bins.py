"""Many examples reduced to a few numbers before they are drawn: a figure does not grow with the corpus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from assay.records import Record
from assay.writing import count

MAX_CLASSES = 6
QUARTERS = ("0 – 0.25", "0.25 – 0.5", "0.5 – 0.75", "0.75 – 1")
LABEL_LENGTH = 26


@dataclass(frozen=True)
class Column:
    """One measure of one audit: a value and a predicted class for each example where the measure exists."""

    values: Float[np.ndarray, " N"]
    predicted: Int[np.ndarray, " N"]
    attention: Float[np.ndarray, " N"] | None


def column(record: Record, audit: str, name: str) -> Column | None:
    """The measure's finite values, or None where the audit or the measure is absent."""
    table = record.audit_rows(audit)
    if name not in table.column_names:
        return None
    values = table[name].to_numpy().astype(float)
    there = np.isfinite(values)
    if not there.any():
        return None
    peaks = table["max_attention"].to_numpy().astype(float) if "max_attention" in table.column_names else None
    return Column(
        values[there],
        table["predicted"].to_numpy()[there],
        None if peaks is None else np.nan_to_num(peaks[there]),
    )


def classes(record: Record, predicted: Int[np.ndarray, " N"]) -> dict[int, str]:
    """A label with n for each predicted class; one for all of them where there are too many to tell apart."""
    names = record.summary["corpus"]["classes"]
    present, counts = np.unique(predicted, return_counts=True)
    if len(present) > MAX_CLASSES:
        return {-1: f"all {len(present)} classes (n = {count(len(predicted))})"}
    sizes = zip(present.tolist(), counts.tolist(), strict=True)
    return {label: f"{_short(str(names[label]), label)} (n = {count(n)})" for label, n in sizes}


def members(data: Column, which: int) -> Bool[np.ndarray, " N"]:
    """Which examples belong to a class of `classes`; -1 stands for all."""
    return np.full(len(data.values), True) if which < 0 else data.predicted == which


def histogram(data: Column, labels: dict[int, str], edges: Float[np.ndarray, " E"]) -> list[dict[str, Any]]:
    """The share of a class's examples in each bin, as the corners of an outline that starts and ends at 0."""
    corners: list[dict[str, Any]] = []
    for which, label in labels.items():
        values = data.values[members(data, which)]
        shares = np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0] / len(values)
        filled = np.flatnonzero(shares)
        first, last = filled[0], filled[-1] + 1
        heights = np.concatenate([[0], np.repeat(shares[first:last], 2), [0]])
        places = np.repeat(edges[first : last + 1], 2)
        corners += [
            {"x": float(x), "share": float(y), "class": label, "corner": corner}
            for corner, (x, y) in enumerate(zip(places, heights, strict=True))
        ]
    return corners


def quarters(data: Column, labels: dict[int, str]) -> list[dict[str, Any]]:
    """Quantiles of the values by class and by quarter of the largest attention weight."""
    assert data.attention is not None
    quarter = np.clip((data.attention * 4).astype(int), 0, 3)
    boxes = []
    for which, label in labels.items():
        for place, name in enumerate(QUARTERS):
            values = data.values[members(data, which) & (quarter == place)]
            if len(values) > 0:
                ends = np.quantile(values, [0.05, 0.25, 0.5, 0.75, 0.95]).tolist()
                keys = ("low", "first", "median", "third", "high")
                size = f"n = {count(len(values))}"
                boxes.append(dict(zip(keys, ends, strict=True)) | {"quarter": name, "class": label, "size": size})
    return boxes


def _short(name: str, place: int) -> str:
    """A class name that fits a legend, without control characters, which SVG cannot hold."""
    clean = "".join(letter if letter.isprintable() else "�" for letter in name)
    return clean if len(clean) <= LABEL_LENGTH else f"{clean[: LABEL_LENGTH - 4]}… #{place}"
