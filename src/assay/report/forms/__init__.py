"""The forms that a report can be written in, each by a function of a record and a path."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from assay.records import Record
from assay.report.forms.data import write as write_json
from assay.report.forms.markdown import write as write_markdown
from assay.report.forms.pdf import write as write_pdf
from assay.report.page import write as write_html

FORMS: dict[str, Callable[[Record, Path], None]] = {
    "html": write_html,
    "pdf": write_pdf,
    "md": write_markdown,
    "json": write_json,
}
"""By the ending of the file; each is written whole or not at all."""
