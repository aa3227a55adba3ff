"""Progress bars on the terminal, optionally mirrored to a JSON file for a parent process."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, Task, TextColumn, TimeRemainingColumn

console = Console(stderr=True)
PROGRESS_FILE = "ASSAY_PROGRESS"
"""The environment variable that names the JSON file to which progress is written; the parent process reads it."""

_open: ContextVar[bool] = ContextVar("a bar is shown", default=False)


class FileProgress(Progress):
    """A progress bar that also writes its state to a JSON file whenever it is redrawn and has changed."""

    _last = ""

    def get_renderable(self) -> RenderableType:
        """Called by rich's refresh timer several times a second, also where there is no terminal."""
        path = os.environ.get(PROGRESS_FILE)
        if path and not self.disable and self.tasks:
            self._write(Path(path), self.tasks[-1])
        return super().get_renderable()

    def _write(self, path: Path, task: Task) -> None:
        left = task.time_remaining
        state = {"task": task.description, "done": task.completed, "total": task.total, "left": left}
        if (text := json.dumps(state) + "\n") != self._last:
            self._last = text
            with suppress(OSError):  # a full disk must not stop the work
                scratch = path.with_name(f".{path.name}.{os.getpid()}")
                scratch.write_text(text, encoding="utf-8")
                scratch.replace(path)  # atomic, but without an fsync


@contextmanager
def bar(*columns: str) -> Iterator[Progress]:
    """A progress bar on standard error; `columns` name extra task fields to show, such as loss.

    A nested bar is not shown: the outer one counts the work.
    """
    extra = [TextColumn(f"{{task.fields[{name}]}}") for name in columns]
    shown = FileProgress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        *extra,
        TimeRemainingColumn(elapsed_when_finished=True),
        console=console,
        transient=False,
        disable=_open.get(),
    )
    token = _open.set(True)
    try:
        with shown:
            yield shown
    finally:
        _open.reset(token)
