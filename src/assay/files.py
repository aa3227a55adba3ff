"""Atomic file writes: a file is written completely or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Context manager: a temporary path that is renamed to `path` on success, and removed on an exception."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    scratch = Path(name)
    try:
        yield scratch
        scratch.chmod(0o644)
        with scratch.open("rb") as written:
            os.fsync(written.fileno())
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Writes `text` as UTF-8, atomically."""
    with whole(path) as scratch:
        scratch.write_text(text, encoding="utf-8")
