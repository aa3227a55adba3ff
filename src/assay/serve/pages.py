"""Renders pages from templates; everything from outside is escaped as text."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import Any

from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment

from assay.report.html import environment
from assay.serve.reading import plain
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
