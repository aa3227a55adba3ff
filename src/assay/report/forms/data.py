"""The report as one JSON document: everything that the page says, and every number behind it."""

from __future__ import annotations

import json
from pathlib import Path

from assay.files import write_text
from assay.records import Record
from assay.report.forms.document import document
from assay.writing import finite


def render(record: Record) -> str:
    """The document as text; numbers are finite or null, and the same record gives the same text."""
    told = document(record) | {"findings": record.summary["findings"]}
    return json.dumps(finite(told), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write(record: Record, path: Path) -> None:
    """Writes the document, whole or not at all."""
    write_text(path, render(record))
