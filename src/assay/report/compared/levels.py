"""Models whose states are kept close to their words: what that costs, and whether attention then says more."""

from __future__ import annotations

from assay.records import Finding, Record
from assay.report.compared.found import difference, subjects
from assay.report.compared.limits import NOTICED
from assay.report.grids import Grid
from assay.writing import count, interval, listed, number, percent

AUDIT = "word_level"
BASE = "base"
VARIANTS = {
    BASE: "base",
    "concat": "concat: words beside states",
    "tying": "tying: states drawn to words",
    "mlm": "mlm: states tell masked words",
    "conicity": "conicity",
    "diversity": "diversity",
}
"""What a variant is called where there is room."""

SHORT = {name: name for name in VARIANTS}


def gain(record: Record, measure: str, variant: str) -> Finding | None:
    """How much more of a measure a variant has than the base model: as the audit found it, else text by text."""
    found = subjects(record, AUDIT, f"{measure}_gain").get(variant)
    return found if found is not None else difference(record, AUDIT, measure, variant, BASE)


def variants(record: Record) -> list[str]:
    """The variants that were trained, without the base model."""
    return [name for name in subjects(record, AUDIT, "right") if name != BASE]


def words(record: Record) -> str | None:
    """Which variants keep the task score, which states know more of their words, where shuffling matters more."""
    right, names = subjects(record, AUDIT, "right"), variants(record)
    if BASE not in right or not names:
        return None
    told = _score(record, names)
    for measure, start in (
        ("information", "States tell more bits of their words (at least)"),
        ("median_tvd", "Shuffling attention moves predictions more (TVD)"),
        ("auprc", "Attention finds the deciding words better (AUPRC)"),
    ):
        told += _raised(record, names, measure, start)
    told += (
        f" The base model is right on {percent(right[BASE].mean)} of texts (n = {count(right[BASE].n)}); in brackets "
    )
    told += "stand 95 % intervals. One model was trained for each, so that part of a difference may be its seed."
    return told.strip()


def _score(record: Record, names: list[str]) -> str:
    gains = {name: found for name in names if (found := gain(record, "right", name)) is not None}
    lost = {name: found for name, found in gains.items() if found.high < 0}
    held = [name for name in gains if name not in lost]
    told = [f"not surely lower with {listed(held)}"] if held else []
    fallen = [
        f"{name} by {number(-100 * f.mean, 1)} ({interval(-100 * f.high, -100 * f.low, 1)})" for name, f in lost.items()
    ]
    told += [f"lower with {listed(fallen)} points"] if lost else []
    return f"The task score is {' and '.join(told)}." if gains else ""


def _raised(record: Record, names: list[str], measure: str, start: str) -> str:
    gains = {name: found for name in names if (found := gain(record, measure, name)) is not None}
    more = [
        f"{name} by {number(f.mean, 2)} ({interval(f.low, f.high, 2)})" for name, f in gains.items() if f.low > NOTICED
    ]
    less = [
        f"{name} by {number(-f.mean, 2)} ({interval(-f.high, -f.low, 2)})"
        for name, f in gains.items()
        if f.high < -NOTICED
    ]
    if not gains:
        return ""
    told = f" {start} with {listed(more) if more else 'none of them'}"
    return f"{told}; it is the other way round with {listed(less)}." if less else f"{told}."


def level_rows(record: Record) -> Grid:
    """A row for each model: accuracy, information with its floor, what shuffling does, and AUPRC where there is one."""
    measures = {"right": "right", "information": "information (bits)", "median_tvd": "median TVD", "auprc": "AUPRC"}
    found = {measure: subjects(record, AUDIT, measure) for measure in (*measures, "information_shuffled")}
    shown = {measure: head for measure, head in measures.items() if found[measure]}
    columns = ["model"]
    for measure, head in shown.items():
        columns += [head, "gain over base"] + (["words shuffled"] if measure == "information" else [])
    rows = []
    for name in found["right"]:
        row = [VARIANTS.get(name, name)]
        for measure in shown:
            row += [_mean(found[measure].get(name), measure), _gained(record, measure, name)]
            row += [_mean(found["information_shuffled"].get(name), "")] if measure == "information" else []
        rows.append(tuple(row))
    return Grid(tuple(columns), tuple(rows), first_number=1)


def _mean(found: Finding | None, measure: str) -> str:
    if found is None:
        return "–"
    return percent(found.mean) if measure == "right" else number(found.mean, 2)


def _gained(record: Record, measure: str, name: str) -> str:
    found = None if name == BASE else gain(record, measure, name)
    if found is None:
        return "–"
    scale, places = (100, 1) if measure == "right" else (1, 2)
    ends = interval(scale * found.low, scale * found.high, places)
    return f"{number(scale * found.mean, places)} ({ends})"
