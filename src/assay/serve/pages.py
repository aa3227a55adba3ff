"""Renders pages from templates, and reports and figures of runs; what is from outside is escaped as text."""

from __future__ import annotations

import html
import re
import tempfile
import threading
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment

from assay.caching import LruCache
from assay.records import Record
from assay.report.canvas import Figure, save, svg
from assay.report.figures import figure
from assay.report.html import environment
from assay.serve.library import Run, plain
from assay.serve.safety import POLICY
from assay.writing import count, interval, number

HERE = Path(__file__).parent
LOOK = HERE.parent / "report"
LONG = 2000  # letters of a sentence
VIEWS = {"/": "Explain", "/runs": "Runs", "/jobs": "Jobs"}


@cache
def templates() -> Environment:
    """The template environment of the app, with those of the report."""
    made = environment(HERE / "templates", number=number, count=count, plain=partial(plain, longest=LONG))
    made.globals |= {"interval": interval, "views": VIEWS}
    return made


def page(template: str, view: str, status: int = 200, **values: Any) -> HTMLResponse:
    """One HTML page; `view` is the address of the menu entry that it belongs to."""
    text = templates().get_template(template).render(view=view, **values)
    return HTMLResponse(text.encode("utf-8", "replace"), status)


def failed(sentence: str, status: int) -> HTMLResponse:
    """An error page with one sentence."""
    return page("failed.html.jinja", "", status, sentence=sentence)


@cache
def look() -> str:
    """The base stylesheet, shared with the report."""
    return templates().get_template("report.css").render()


def stylesheet() -> Response:
    return Response(look(), media_type="text/css")


# Renders reports, comparisons and figures of runs on request, and caches them.


KINDS = {"svg": "image/svg+xml", "png": "image/png", "pdf": "application/pdf"}
MEGABYTE = 2**20
META = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')
INKS = """<style>svg { color: #26242e } @media (prefers-color-scheme: dark) { svg { color: #e9e7ee } }</style>"""
"""In a page's image nothing of the page's colours is known but whether they are dark."""


class RenderCache:
    """Caches of rendered pages, figures and images; renders one at a time, as the plotting library needs."""

    def __init__(self) -> None:
        self._drawing = threading.RLock()
        self._records: LruCache[Record] = LruCache(256 * MEGABYTE, lambda record: record.instances.nbytes)
        self._figures: LruCache[Figure | None] = LruCache(200, lambda figure: 1)
        self._images: LruCache[bytes] = LruCache(32 * MEGABYTE, len)
        self._pages: LruCache[str] = LruCache(64 * MEGABYTE, len)

    def report(self, run: Run) -> str:
        """The report of a run as one page."""
        from assay.report.audit import render

        with self._drawing:
            return self._pages.get((run.id, run.stamp), lambda: render(run.read()))

    def comparison(self, runs: Sequence[Run]) -> str:
        """One page on several runs, in this order."""
        from assay.report.compare import render

        key = tuple((run.id, run.name, run.stamp) for run in runs)
        with self._drawing:
            return self._pages.get(key, lambda: render({run.name: run.read() for run in runs}))

    def figure(self, run: Run, name: str) -> Figure | None:
        """A figure of a run by its name; None where the run does not have it."""
        with self._drawing:
            return self._figures.get((run.id, run.stamp, name), lambda: figure(self.record(run), name))

    def record(self, run: Run) -> Record:
        """The record of a run with all that figures need."""
        return self._records.get((run.id, run.stamp), lambda: run.judged(every_row=True))

    def shown(self, run: Run, name: str) -> bytes | None:
        """The figure as an SVG for a page; it follows the page's light or dark scheme."""
        with self._drawing:
            figure = self.figure(run, name)
            if figure is None:
                return None
            return self._images.get((run.id, run.stamp, name), lambda: _for_page(figure))

    def saved(self, run: Run, name: str, ending: str) -> bytes | None:
        """The figure on white, as `assay figures` writes it."""
        with self._drawing:
            figure = self.figure(run, name)
            if figure is None:
                return None
            return self._images.get((run.id, run.stamp, name, ending), lambda: _for_paper(figure, ending))


def policy_of(page: str) -> str:
    """The Content-Security-Policy of a report page, from its own meta element; else that of the app."""
    said = META.search(page)
    return f"{html.unescape(said[1])}; frame-ancestors 'none'" if said else POLICY


def _for_page(figure: Figure) -> bytes:
    opening, closing, rest = svg(figure).partition(">")
    return (opening + closing + INKS + rest).encode("utf-8", "replace")


def _for_paper(figure: Figure, ending: str) -> bytes:
    with tempfile.TemporaryDirectory(prefix="assay-") as folder:
        path = Path(folder) / f"figure.{ending}"
        save(figure, path)
        return path.read_bytes()
