"""Numbers as people read them, the same everywhere."""

from __future__ import annotations

import math
from collections.abc import Sequence

RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float | None, places: int = 3) -> str:
    """A number with a real minus sign; a dash where there is none."""
    if value is None or math.isnan(value):
        return "–"
    rounded = round(value, places) + 0.0  # and so no zero has a sign
    return f"{rounded:.{places}f}".replace("-", "−")


def figures(value: float) -> str:
    """A number of any size to three figures; a very small or large one as a power of ten."""
    if math.isnan(value):
        return "–"
    digits, _, power = f"{value:.3g}".partition("e")
    raised = f" × 10{str(int(power)).translate(RAISED)}" if power else ""
    return digits.replace("-", "−") + raised


def percent(share: float | None, places: int = 1) -> str:
    """A share as a percentage; a dash where there is none."""
    return "–" if share is None or math.isnan(share) else f"{number(100 * share, places)} %"


def interval(low: float | None, high: float | None, places: int = 3) -> str:
    """An interval as `low to high`; a dash where there is none."""
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return "–"
    return f"{number(low, places)} to {number(high, places)}"


def count(value: int) -> str:
    """A whole number with commas between thousands."""
    return f"{value:,}"


def evidence(low: float, high: float, n: int) -> str:
    """What stands behind a mean: `95 % interval low to high, n = n`."""
    return f"95 % interval {interval(low, high, 2)}, n = {count(n)}"


def significance(p: float | None) -> str:
    """A p-value as people write it; nothing where there is none."""
    if p is None or math.isnan(p):
        return ""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def chance(p: float) -> str:
    """A p-value under a head that says so."""
    return significance(p).removeprefix("p ").removeprefix("= ")


def listed(clauses: Sequence[str]) -> str:
    """Clauses as one enumeration."""
    return " and ".join(clauses) if len(clauses) < 3 else f"{', '.join(clauses[:-1])}, and {clauses[-1]}"
