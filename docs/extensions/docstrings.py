"""Docstrings are plain sentences with code between single backticks: anything else that rst marks is escaped."""

from __future__ import annotations

import re
from types import GenericAlias
from typing import Any

CODE = re.compile(r"`+([^`]+)`+")
MARKS = re.compile(r"(?<!\\)([*|\\]|_(?=\W|$))")


def escaped(line: str) -> str:
    """A line of a docstring in which only code is marked."""
    parts = CODE.split(line)  # sentences at even places, code at odd ones
    return "".join(f"``{part}``" if place % 2 else MARKS.sub(r"\\\1", part) for place, part in enumerate(parts))


def plain(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Lines of code are left as they are."""
    lines[:] = [line if line.lstrip().startswith((">>>", "...")) else escaped(line) for line in lines]


def foreign(app: Any, what: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """Names that a module has from elsewhere, and short names of types, are no part of its documentation."""
    home = getattr(thing, "__module__", None)
    return True if isinstance(thing, GenericAlias) or not str(home or "assay").startswith("assay") else None


def setup(app: Any) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", plain, priority=400)  # before numpydoc looks for its sections
    app.connect("autodoc-skip-member", foreign)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
