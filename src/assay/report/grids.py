"""A table as text, for the page and for the terminal."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Grid:
    """Column heads and rows; columns from `first_number` on hold numbers."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    first_number: int = 2
