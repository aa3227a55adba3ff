"""One look for everything that takes more than a few seconds."""

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
TOLD = "ASSAY_PROGRESS"
"""The environment variable that names a file; who started this process reads there how far it is."""

_open: ContextVar[bool] = ContextVar("a bar is shown", default=False)


class Told(Progress):
    """A progress bar that also writes down how far it is, as JSON, whenever it is drawn and has moved."""

    _last = ""

    def get_renderable(self) -> RenderableType:
        """What is drawn; a clock asks for it some times a second, also where no terminal shows it."""
        place = os.environ.get(TOLD)
        if place and not self.disable and self.tasks:
            self._tell(Path(place), self.tasks[-1])
        return super().get_renderable()

    def _tell(self, place: Path, task: Task) -> None:
        left = task.time_remaining
        told = {"task": task.description, "done": task.completed, "total": task.total, "left": left}
        if (text := json.dumps(told) + "\n") != self._last:
            self._last = text
            with suppress(OSError):  # a full disk stops the telling, not the work
                scratch = place.with_name(f".{place.name}.{os.getpid()}")
                scratch.write_text(text, encoding="utf-8")
                scratch.replace(place)  # whole, though not worth waiting for the disk


@contextmanager
def bar(*columns: str) -> Iterator[Progress]:
    """A progress bar on standard error; `columns` name extra task fields to show, such as loss.

    Within another bar it is not shown: the outer one knows how much there is to do.
    """
    extra = [TextColumn(f"{{task.fields[{name}]}}") for name in columns]
    shown = Told(
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
