"""Uploaded files: size-limited while received, stored under a generated name, inspected, deleted after a day."""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, HTTPException, Query, Request

from assay.errors import AssayError
from assay.files import write_text
from assay.serve.inspection import inspected
from assay.serve.settings import Limits

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
