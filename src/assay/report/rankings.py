"""What it takes to change the decision: each ranking of the attended items beside the smallest set there is."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.stats import binomtest

from assay.records import Record
from assay.report.grids import Grid
from assay.report.instances import side_by_side
from assay.report.items import items
from assay.report.known import known
from assay.report.writing import count, evidence, interval, number, percent
from assay.report.yardsticks import LEAD_SURE

AUDIT = "minimal_set"
OPTIMUM = "optimum"
RANKINGS = {
    OPTIMUM: "smallest set (exact)",
    "attention": "attention",
    "gradient": "gradient",
    "product": "gradient × attention",
    "leave_one_out": "leave one out",
    "random": "random order",
}
"""The rankings of the audit in the order of figures and tables, and what they are called there."""


def shares(record: Record, measure: str = "fraction") -> dict[str, Float[np.ndarray, " n"]]:
    """For each ranking the share of items, or of attention mass, erased by the first flip, in texts that have one."""
    values = side_by_side(record, AUDIT, [f"{measure}:{name}" for name in RANKINGS])
    columns = {name: values[:, place] for place, name in enumerate(RANKINGS)}
    finite = {name: column[np.isfinite(column)] for name, column in columns.items()}
    return {name: column for name, column in finite.items() if len(column)}


def shortest(record: Record) -> str | None:
    """What the decision hangs on at least, how far attention goes for it, and how often that is the shortest way."""
    found, optimal, excess = shares(record), known(record, AUDIT, "optimal"), known(record, AUDIT, "excess")
    if OPTIMUM not in found or "attention" not in found:
        return None
    noun, least = items(record), percent(float(np.median(found[OPTIMUM])))
    told = (
        f"To change the decision one must erase at least {least} of the {noun.many} (median, exact); going down the "
        f"attention takes {_takes(record, 'attention', found['attention'])}"
    )
    told += f", a random order {_takes(record, 'random', found['random'])}" if "random" in found else ""
    told += f".{_everything(record)}"
    if optimal is None or excess is None:
        return told
    spread = interval(100 * optimal.low, 100 * optimal.high, 1)
    return (
        f"{told} Attention is as short as possible in {percent(optimal.mean)} of texts (95 % interval {spread} %, "
        f"n = {count(optimal.n)}) and takes {number(excess.mean, 1)} {noun.many} more than needed on average "
        f"({evidence(excess.low, excess.high, excess.n)})."
    )


def _takes(record: Record, name: str, values: Float[np.ndarray, " n"]) -> str:
    """The median of a ranking; where some texts have none, with the number of those that do, for they are others."""
    never = known(record, AUDIT, "never", name)
    some = "" if never is None or never.mean == 0 else f" in the {count(len(values))} texts where it ever does"
    return f"{percent(float(np.median(values)))}{some}"


def _everything(record: Record) -> str:
    """In how many texts nothing short of erasing everything changes the decision, if in any."""
    share, never = side_by_side(record, AUDIT, [f"fraction:{OPTIMUM}", f"never:{OPTIMUM}"]).T
    none, total = int((never == 1).sum()), int(np.isfinite(never).sum())
    whole = none + int((share == 1).sum())
    some = f"{count(whole)} of {count(total)} texts nothing short of all {items(record).many} does"
    return f" In {some}{f', in {count(none)} not even that' if none else ''}." if whole else ""


def no_sooner(record: Record) -> bool:
    """Whether attention does not surely change the decision sooner than a random order, by a sign test over texts."""
    ahead, behind = (known(record, AUDIT, "wins", pair) for pair in ("attention~random", "random~attention"))
    if ahead is None or behind is None:
        return False
    won, lost = round(ahead.mean * ahead.n), round(behind.mean * behind.n)
    if won + lost == 0:  # no text tells them apart
        return False
    return won <= lost or float(binomtest(won, won + lost).pvalue) > LEAD_SURE


def ranking_rows(record: Record) -> Grid:
    """A row for each ranking: shares erased, items more than the smallest set, how often as short, texts that never."""
    found = shares(record)
    noun = items(record)
    columns = (
        "ranking",
        f"{noun.many} erased, median",
        "mean",
        f"{noun.many} too many, mean",
        "95 % interval",
        "as short as possible",
        "never changes",
    )
    rows = [(RANKINGS[name], *_shares(found.get(name)), *_beside(record, name)) for name in RANKINGS if name in found]
    return Grid(columns, tuple(rows), first_number=1)


def _shares(values: Float[np.ndarray, " n"] | None) -> tuple[str, str]:
    if values is None:
        return "–", "–"
    return percent(float(np.median(values))), percent(float(values.mean()))


def _beside(record: Record, name: str) -> tuple[str, str, str, str]:
    """How a ranking compares with the smallest set, which itself has no such numbers, and where it never flips."""
    excess, optimal, never = (known(record, AUDIT, measure, name) for measure in ("excess", "optimal", "never"))
    return (
        "–" if excess is None else number(excess.mean, 2),
        "–" if excess is None else interval(excess.low, excess.high, 2),
        "–" if optimal is None else percent(optimal.mean),
        "–" if never is None else f"{count(round(never.mean * never.n))} of {count(never.n)}",
    )
