"""What retraining said of the predictions, as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.writing import count, figures, interval, number, percent


@dataclass(frozen=True)
class Table:
    """A title, how to read it, names of columns and rows of cells."""

    title: str
    reading: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def tables(checks: Mapping[str, Any]) -> list[Table]:
    """One table for each check that was made."""
    made = {"lds": _lds, "removal": _removal}
    return [made[name](check) for name, check in checks.items() if name in made]


def _lds(check: Mapping[str, Any]) -> Table:
    rows = [
        (
            each["method"],
            number(each["lds"], 2),
            interval(each["low"], each["high"], 2),
            figures(each["seconds"]),
            percent(each["covered"]),
        )
        for each in check["methods"]
    ]
    reading = (
        f"{count(check['subsets'])} models were trained again, each without {percent(check['share'], 0)} of the texts. "
        f"The number is how well the summed scores of the removed texts rank what really happened to "
        f"{count(check['queries'])} texts (Spearman; 1 is perfect, 0 is chance)."
    )
    return Table(
        "Do the predictions come true? (linear datamodelling score)",
        reading,
        ("method", "score", "95 % interval", "seconds", "parameters"),
        rows,
    )


def _removal(check: Mapping[str, Any]) -> Table:
    rows = [
        (
            each["method"],
            count(each["count"]),
            number(each["predicted"]),
            number(each["measured"]),
            interval(each["low"], each["high"]),
        )
        for each in check["rows"]
    ]
    reading = (
        f"The texts that speak most for each of {count(check['queries'])} decisions were taken away, and the model was "
        "trained again: what was predicted, and what really happened, beside as many texts drawn by chance."
    )
    return Table(
        "What really happens without them",
        reading,
        ("method", "texts removed", "predicted change", "measured change", "95 % interval"),
        rows,
    )
