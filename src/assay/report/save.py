"""A document as a file, in the form that its name ends in."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from assay.document import Document
from assay.errors import AssayError
from assay.files import write_text
from assay.report import html, markdown
from assay.writing import finite


def save(document: Document, path: Path, form: str = "") -> None:
    """Writes the document, whole or not at all; without a form, in that of the name."""
    form = form or path.suffix.lower().lstrip(".")
    if form not in FORMS:
        raise AssayError(
            f"Cannot write a page as {path.name!r}; end the name in {', '.join(f'.{name}' for name in FORMS)}."
        )
    FORMS[form](document, path)


def as_json(document: Document) -> str:
    """The numbers of the document, or else its blocks, as JSON text; numbers are finite or null."""
    held = tree(document) if document.data is None else document.data
    return json.dumps(finite(held), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def tree(
    value: Any,
    draw: Callable[[Any], str | None] = lambda drawing: None,
    own: Mapping[type, Callable[[Any], Any]] = MappingProxyType({}),
) -> Any:
    """Blocks as plain data, each with its kind; drawings and `own` blocks are what is made of them."""
    if type(value) in own and (made := own[type(value)](value)) is not value:
        return tree(made, draw, own)
    if is_dataclass(value) and not isinstance(value, type):
        held = {each.name: getattr(value, each.name) for each in fields(value) if each.name != "data"}
        if "drawing" in held:
            held["drawing"] = draw(held["drawing"]) if held["drawing"] else None
        return {"block": type(value).__name__.lower()} | {name: tree(each, draw, own) for name, each in held.items()}
    if isinstance(value, Mapping):
        return {str(name): tree(each, draw, own) for name, each in value.items()}
    return [tree(each, draw, own) for each in value] if isinstance(value, list | tuple) else value


def _write_json(document: Document, path: Path) -> None:
    write_text(path, as_json(document))


def _write_pdf(document: Document, path: Path) -> None:
    from assay.report.pdf import write

    write(document, path)


FORMS: dict[str, Callable[[Document, Path], None]] = {
    "html": html.write,
    "pdf": _write_pdf,
    "md": markdown.write,
    "json": _write_json,
}
"""By the ending of the file."""
