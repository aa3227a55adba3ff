"""What it takes to change the decision: each ranking of the attended items beside the smallest set there is.

All are told of the same texts: where a ranking never changes the decision, everything was erased and did not help.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float
from scipy.stats import binomtest

from assay.records import Record
from assay.report.grids import Grid
from assay.report.instances import side_by_side
from assay.report.items import items
from assay.report.known import known
from assay.report.yardsticks import LEAD_SURE
from assay.writing import count, evidence, interval, listed, number, percent

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
"""The rankings of the audit, and what they are called in figures and tables; those that need the same stand so."""


OLDER = {"erased": "fraction", "erased_mass": "mass"}
"""What older records hold of the texts whose decision a ranking changes, and of no others."""


def shares(record: Record, measure: str = "erased") -> dict[str, Float[np.ndarray, " n"]]:
    """For each ranking the share of items, or of attention (`erased_mass`), that it erases of each text.

    The one that erases least on average comes first; of equals, the one that changes more decisions.
    """
    found = {name: values for name in RANKINGS if len(values := _counted(record, measure, name))}
    never = {name: values.mean() for name in found if len(values := _never(record, name))}
    return dict(sorted(found.items(), key=lambda each: (round(each[1].mean(), 9), never.get(each[0], 0))))


def never(record: Record, name: str) -> tuple[int, int]:
    """In how many texts the ranking never changes the decision, and of how many that is known."""
    found = _never(record, name)
    return int(found.sum()), len(found)


def _counted(record: Record, measure: str, name: str) -> Float[np.ndarray, " n"]:
    """A share of every text with several items, 1 where the decision never changes."""
    columns = [f"{measure}:{name}", f"{OLDER[measure]}:{name}", f"never:{name}"]
    values, older, lost = side_by_side(record, AUDIT, columns).T
    values = np.where(np.isfinite(values), values, np.where(lost == 1, 1.0, older))
    return np.asarray(values[np.isfinite(values)])


def _never(record: Record, name: str) -> Float[np.ndarray, " n"]:
    values = side_by_side(record, AUDIT, [f"never:{name}"])[:, 0]
    return np.asarray(values[np.isfinite(values)])


def shortest(record: Record) -> str | None:
    """What the decision hangs on at least, the rankings by what they erase, and how often attention erases least."""
    found, optimal, excess = shares(record), known(record, AUDIT, "optimal"), known(record, AUDIT, "too_many")
    if OPTIMUM not in found or "attention" not in found:
        return None
    noun, least = items(record), percent(float(np.median(found[OPTIMUM])))
    told = (
        f"To change the decision one must erase at least {least} of the {noun.many} (median, exact); going down the "
        f"attention takes {percent(float(np.median(found['attention'])))}"
    )
    told += f", a random order {percent(float(np.median(found['random'])))}" if "random" in found else ""
    told += f".{_everything(record)} {_order(record, found)}"
    if optimal is None or excess is None:
        return told
    spread = interval(100 * optimal.low, 100 * optimal.high, 1)
    return (
        f"{told} Attention is as short as possible in {percent(optimal.mean)} of the texts whose decision some set "
        f"changes (95 % interval {spread} %, n = {count(optimal.n)}) and takes {number(excess.mean, 1)} {noun.many} "
        f"more than needed on average ({evidence(excess.low, excess.high, excess.n)})."
    )


def _order(record: Record, found: Mapping[str, Float[np.ndarray, " n"]]) -> str:
    """The rankings by the mean share that they erase, with the texts that each never changes."""
    total = count(max(map(len, found.values())))
    counted = ", everything where the decision never changes" if any(never(record, name)[0] for name in found) else ""
    told = listed([_mean(record, *each) for each in found.items()])
    return f"Mean share erased, of all {total} texts{counted}: {told}."


def _mean(record: Record, name: str, values: Float[np.ndarray, " n"]) -> str:
    lost, total = never(record, name)
    some = f" (never in {percent(lost / total)})" if lost else ""
    return f"{RANKINGS[name]} {percent(float(values.mean()))}{some}"


def _everything(record: Record) -> str:
    """In how many texts nothing short of erasing everything changes the decision, if in any."""
    none, total = never(record, OPTIMUM)
    whole = int((shares(record)[OPTIMUM] == 1).sum())
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
    """A row for each ranking, the one that erases least first, beside the smallest set."""
    noun = items(record)
    columns = (
        "ranking",
        f"{noun.many} erased, median",
        "mean",
        "never changes the decision",
        f"{noun.many} too many, mean",
        "95 % interval",
        "as short as possible",
    )
    rows = [(RANKINGS[name], *_shares(values), *_beside(record, name)) for name, values in shares(record).items()]
    return Grid(columns, tuple(rows), first_number=1)


def _shares(values: Float[np.ndarray, " n"]) -> tuple[str, str]:
    return percent(float(np.median(values))), percent(float(values.mean()))


def _beside(record: Record, name: str) -> tuple[str, str, str, str]:
    """Where a ranking never changes the decision, and how it compares with the smallest set."""
    excess, optimal = (known(record, AUDIT, measure, name) for measure in ("too_many", "optimal"))
    lost, total = never(record, name)
    return (
        f"{count(lost)} of {count(total)}" if total else "–",
        "–" if excess is None else number(excess.mean, 2),
        "–" if excess is None else interval(excess.low, excess.high, 2),
        "–" if optimal is None else percent(optimal.mean),
    )
