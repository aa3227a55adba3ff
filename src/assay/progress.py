"""One look for everything that takes more than a few seconds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

console = Console(stderr=True)
_open: ContextVar[bool] = ContextVar("a bar is shown", default=False)


@contextmanager
def bar(*columns: str) -> Iterator[Progress]:
    """A progress bar on standard error; `columns` name extra task fields to show, such as loss.

    Within another bar it is not shown: the outer one knows how much there is to do.
    """
    extra = [TextColumn(f"{{task.fields[{name}]}}") for name in columns]
    shown = Progress(
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
