"""Reads untrusted records: only the columns that a page needs, with limits on sizes, and only inside the folder."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from assay.audits.findings import tell
from assay.errors import AssayError
from assay.records import EXAMPLES, FIRST_LAYER, INSTANCES, NEEDED, SUMMARY, Record, from_zero

LARGEST = 64 * 2**20  # bytes of a summary
LONGEST = 160  # letters of a name
ENOUGH = 2000  # letters of any text in a summary
ENDLESS = re.compile(rb'[^"]{%d}' % ENOUGH)
JUDGED = {
    EXAMPLES: ("label", "predicted", "starts", "truth"),
    INSTANCES: ("audit", "erased:", "fraction:", "never:", "right:"),
}
"""The columns that verdicts are made of, by how their names start: far fewer than a file holds."""


def plain(text: object, longest: int = LONGEST) -> str:
    """One line of text: control characters made visible, whitespace collapsed, cut to a length."""
    whole = str(text)
    shown = whole[:longest] + ("…" if len(whole) > longest else "")
    return "".join(" " if letter.isspace() else "�" if _unprinted(letter) else letter for letter in shown)


def _unprinted(letter: str) -> bool:
    return letter < " " or "\x7f" <= letter < "\xa0" or "\ud800" <= letter <= "\udfff"


def within(path: Path, root: Path) -> Path:
    """The path of a file inside the folder; raises where a link leads out of it."""
    if not path.resolve().is_relative_to(root):
        raise AssayError(f"{path.name} is a link that leads out of the folder.")
    if not path.is_file():
        raise AssayError(f"{path.name} is missing.")
    return path


def judged(folder: Path, root: Path, every_row: bool = False) -> Record:
    """A record with only the columns that verdicts need."""
    summary = summarised(within(folder / SUMMARY, root))
    instances = _columns(within(folder / INSTANCES, root), None if every_row else JUDGED[INSTANCES])
    return tell(Record(summary, instances, _columns(within(folder / EXAMPLES, root), JUDGED[EXAMPLES])))


def summarised(path: Path) -> dict[str, Any]:
    """A summary checked for the required fields, with overlong texts cut."""
    if path.stat().st_size > LARGEST:
        raise AssayError(f"{SUMMARY} is larger than {LARGEST // 2**20} MB.")
    text = path.read_bytes()
    try:
        summary: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise AssayError(f"{SUMMARY} is not JSON.") from fault
    if lacking := [key for key in NEEDED if key not in summary]:
        raise AssayError(f"{SUMMARY} lacks {', '.join(lacking)}.")
    summary = summary if FIRST_LAYER in summary else from_zero(summary)
    return _cut(summary) if ENDLESS.search(text) else summary


def _cut(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _cut(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_cut(inner) for inner in value]
    return f"{value[:ENOUGH]}…" if isinstance(value, str) and len(value) > ENOUGH else value


def _columns(path: Path, starts: tuple[str, ...] | None) -> pa.Table:
    try:
        with pq.ParquetFile(path.absolute()) as file:
            names = file.schema_arrow.names
            return file.read([each for each in names if starts is None or each.startswith(starts)])
    except (OSError, pa.ArrowException) as fault:
        raise AssayError(f"{path.name} is damaged.") from fault
