"""Uploaded tables: size-limited while received, stored under a generated name, inspected, deleted after a day."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import os
import re
import secrets
import shutil
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, HTTPException, Query, Request

from assay.data.columns import USUAL_NAMES
from assay.data.tables import MOST_CLASSES, json_value, missing, read_table, read_text
from assay.errors import AssayError
from assay.files import write_text
from assay.serve.safety import Limits

DELIMITERS = {"csv": ",", "tsv": "\t"}
KINDS = (*DELIMITERS, "jsonl")
COLUMNS = 200  # of a file
NAME = 200  # characters of a column's name
CELL = 200_000  # characters of a cell
SHOWN_ROWS, SHOWN = 5, 160  # of the preview: rows, and characters of a cell
PLACE = "The file"


def inspected(path: Path, kind: str, most_rows: int) -> dict[str, Any]:
    """A summary to choose columns by; raises one sentence for a file that cannot be audited."""
    try:
        text = read_text(path)
        _check_text(text)
        (_check_objects if kind == "jsonl" else _check_header)(text, kind, most_rows)
        table = read_table(path)
        _check_table(table, most_rows)
    except AssayError as fault:
        raise AssayError(str(fault).replace(str(path), PLACE)) from fault
    columns = [{"name": name, "classes": _classes(cells)} for name, cells in table.items()]
    rows = len(next(iter(table.values())))
    preview = [[_short(cells[row]) for cells in table.values()] for row in range(min(rows, SHOWN_ROWS))]
    return {"columns": columns, "rows": rows, "preview": preview, **_guesses(table)}


def _check_text(text: str) -> None:
    if (place := text.find("\0")) >= 0:
        line = text.count("\n", 0, place) + 1
        raise AssayError(f"{PLACE} holds a null byte (line {line:,}), as no text does; save it as UTF-8 text.")
    if not text.strip():
        raise AssayError(f"{PLACE} is empty; give at least a few labelled texts.")


def _check_header(text: str, kind: str, most_rows: int) -> None:
    """Checks the first row before the whole file is read, as very many columns would take long."""
    csv.field_size_limit(2**31 - 1)
    lines = io.StringIO(text, newline="")
    try:
        read = next((row for row in csv.reader(lines, delimiter=DELIMITERS[kind], strict=True) if row), [])
    except csv.Error:
        read = []  # told better by the reader of tables
    plain = text.lstrip("\r\n").partition("\n")[0].split(DELIMITERS[kind])
    for names in (read, plain):
        _check_names(names)


def _check_objects(text: str, kind: str, most_rows: int) -> None:
    """Checks that JSON Lines hold one object a line, with few enough distinct keys."""
    if text.lstrip().startswith("["):
        raise AssayError(f"{PLACE} is one JSON list; write one JSON object a line.")
    names: dict[str, None] = {}
    rows = 0
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        rows += 1
        item = json_value(line, f"{PLACE}, line {number:,}")
        if isinstance(item, dict):  # told better by the reader of tables where it is not
            names |= dict.fromkeys(item)
        if rows > most_rows:
            raise _many_rows(most_rows)
        if len(names) > COLUMNS:
            break
    _check_names(list(names))


def _check_names(names: Sequence[str]) -> None:
    if len(names) > COLUMNS:
        raise AssayError(f"{PLACE} has more than {COLUMNS} columns; keep those with texts and classes.")
    for number, name in enumerate(names, 1):
        if len(name) > NAME:
            raise AssayError(
                f"The name of column {number} has {len(name):,} characters; the first row must hold short names."
            )
        if not _plain(name):
            raise AssayError(f"The name of column {number} holds characters that no name can have; rename it.")


def _plain(name: str) -> bool:
    """Whether a name can be passed to a process: no null byte, no lone surrogate."""
    return "\0" not in name and not any("\ud800" <= sign <= "\udfff" for sign in name)


def _check_table(table: dict[str, Sequence[Any]], most_rows: int) -> None:
    rows = len(next(iter(table.values())))
    if rows > most_rows:
        raise _many_rows(most_rows)
    if sum(bool(name.strip()) for name in table) < 2:
        raise AssayError(f"{PLACE} has one column alone; it needs one with texts and one with classes.")
    for name, cells in table.items():
        for number, cell in enumerate(cells, 1):
            if isinstance(cell, str) and len(cell) > CELL:
                held = f"holds {len(cell):,} characters in {name!r:.40}"
                raise AssayError(f"{PLACE}, row {number:,} {held}; at most {CELL:,} are read.")
        if rows > 2 and isinstance(cells[0], str) and name in cells and len(set(cells)) <= MOST_CLASSES:
            raise AssayError(
                f"The first row must name the columns, but {name!r:.40} is also a value below it; add a row of names."
            )


def _many_rows(most: int) -> AssayError:
    return AssayError(f"{PLACE} has more than {most:,} rows; give fewer, such as a sample.")


def _classes(cells: Sequence[Any]) -> list[dict[str, Any]] | None:
    """The values of a column with their counts, if few enough to be classes."""
    values = [cell for cell in cells if not missing(cell)]
    if not all(isinstance(value, (str, int, float)) for value in values):
        return None
    counts = Counter(str(value).strip() for value in values)
    if not 2 <= len(counts) <= MOST_CLASSES or len(counts) > max(2, len(values) // 2):
        return None
    return [{"name": _short(name), "count": count} for name, count in counts.most_common(20)]


def _guesses(table: dict[str, Sequence[Any]]) -> dict[str, str | None]:
    """The columns that seem to hold texts, classes and questions, by name, else by content."""
    names = list(table)
    usual = _usual(names)
    classes = {name: found for name in names if (found := _classes(table[name])) is not None}
    fewest = min((name for name in classes if name != usual["text"]), key=lambda name: len(classes[name]), default=None)
    label = usual["label"] or fewest
    lengths = {name: _length(table[name]) for name in names if name not in (label, usual["query"])}
    text = usual["text"] or max(lengths, key=lengths.__getitem__, default=None)
    return {"text": text, "label": label if label != text else None, "query": usual["query"]}


def _usual(names: Sequence[str]) -> dict[str, str | None]:
    by_lower = {name.lower(): name for name in reversed(names)}
    return {
        purpose: next((by_lower[name] for name in USUAL_NAMES[purpose] if name in by_lower), None)
        for purpose in ("text", "label", "query")
    }


def _length(cells: Sequence[Any]) -> float:
    lengths = [len(cell) for cell in cells[:1000] if isinstance(cell, str)]
    return sum(lengths) / len(cells[:1000]) if lengths else 0.0


def _short(cell: Any) -> str:
    """A cell cut to fit a small table."""
    if isinstance(cell, str):
        text = cell
    else:
        text = "" if cell is None else json.dumps(cell, ensure_ascii=False, default=str)
    text = text.encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


# Uploaded files: size-limited while received, stored under a generated name, inspected, deleted after a day.


router = APIRouter()
ID = re.compile("[0-9a-f]{32}")
DAY = 24 * 3600
ARRIVING = 600  # seconds that a file may take
LOOKING = 60  # seconds that a look into it may take
MOST = 20  # files that are kept, the newest
PART = ".part"
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


class Uploads:
    """Uploaded files in a folder, each with the JSON summary of its inspection."""

    def __init__(self, home: Path, limits: Limits) -> None:
        self.folder = (home / "uploads").absolute()
        self.limits = limits
        self._look = asyncio.Semaphore(1)  # a large table takes memory

    def tidy(self, now: float | None = None) -> None:
        """Deletes files older than a day, incomplete ones, and the oldest of too many."""
        oldest = (time.time() if now is None else now) - DAY
        with suppress(OSError):
            cards = sorted(self.folder.glob("*.json"), key=lambda card: card.stat().st_mtime, reverse=True)
            for number, card in enumerate(cards):
                if number >= MOST or card.stat().st_mtime < oldest:
                    self._remove(card.stem)
            for left in self.folder.iterdir():
                if not left.with_suffix(".json").exists() and left.stat().st_mtime < oldest:
                    left.unlink(missing_ok=True)

    async def take(self, pieces: AsyncIterator[bytes], kind: str, name: str) -> dict[str, Any]:
        """Receives and inspects a file; one that is too large or cannot be audited is deleted."""
        self.folder.mkdir(parents=True, exist_ok=True)
        id = secrets.token_hex(16)
        place = self.folder / f"{id}.{kind}"
        part = place.with_suffix(PART)
        try:
            async with asyncio.timeout(ARRIVING):
                size = await self._receive(pieces, part)
            part.replace(place)
            facts = await self._inspect(place, kind)
            told = {"id": id, "name": shown(name, kind), "kind": kind, "bytes": size, **facts}
            write_text(place.with_suffix(".json"), json.dumps(told) + "\n")
        except TimeoutError:
            self._remove(id)
            raise HTTPException(408, "The file took too long; try a smaller one.") from None
        except BaseException:
            self._remove(id)
            raise
        await asyncio.to_thread(self.tidy)
        return told

    async def _receive(self, pieces: AsyncIterator[bytes], part: Path) -> int:
        size = 0
        with part.open("xb") as file:
            async for piece in pieces:
                size += len(piece)
                if size > self.limits.upload:
                    raise HTTPException(413, too_large(self.limits))
                file.write(piece)
        return size

    async def _inspect(self, place: Path, kind: str) -> dict[str, Any]:
        async with self._look, asyncio.timeout(LOOKING):
            return await asyncio.to_thread(inspected, place, kind, self.limits.rows)

    def get(self, id: str) -> dict[str, Any] | None:
        """The summary of a file, or None for an unknown id."""
        if not ID.fullmatch(id):
            return None
        try:
            told: dict[str, Any] = json.loads((self.folder / f"{id}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return told

    def bring(self, id: str, kind: str, folder: Path) -> None:
        """Links (or copies) the file into the folder of a job."""
        place, wanted = self.folder / f"{id}.{kind}", folder / f"upload.{kind}"
        try:
            os.link(place, wanted)
        except FileNotFoundError as fault:
            raise AssayError("The file is not here any more; choose it again.") from fault
        except OSError:  # not every disk has links
            shutil.copyfile(place, wanted)

    def _remove(self, id: str) -> None:
        for left in self.folder.glob(f"{id}.*"):
            left.unlink(missing_ok=True)


def too_large(limits: Limits) -> str:
    return f"The file is larger than {limits.upload / 2**20:.3g} MB; give a smaller one, such as a sample of its rows."


def shown(name: str, kind: str) -> str:
    """A file name for display: its last part, without control characters, cut to a length."""
    last = re.split(r"[/\\]", CONTROL.sub("", name))[-1].strip()
    return last[:120] or f"a {kind} file"


@router.put("/api/uploads", status_code=201)
async def upload(
    request: Request, kind: Literal["csv", "tsv", "jsonl"], name: Annotated[str, Query(max_length=1000)] = ""
) -> dict[str, Any]:
    """Receives a file as the request body."""
    uploads: Uploads = request.app.state.uploads
    announced = request.headers.get("content-length", "0")
    if announced.isdecimal() and int(announced) > uploads.limits.upload:
        raise HTTPException(413, too_large(uploads.limits))
    return await uploads.take(request.stream(), kind, name)


@router.get("/api/uploads/{id}")
def uploaded(request: Request, id: str) -> dict[str, Any]:
    """The summary of a file that is still stored."""
    uploads: Uploads = request.app.state.uploads
    if (told := uploads.get(id)) is None:
        raise HTTPException(404)
    return told
