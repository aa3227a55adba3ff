"""Numbers as people read them, the same everywhere."""

from __future__ import annotations

import math


def number(value: float | None, places: int = 3) -> str:
    """A number with a real minus sign; a dash where there is none."""
    if value is None or math.isnan(value):
        return "–"
    return f"{value:.{places}f}".replace("-", "−")


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
