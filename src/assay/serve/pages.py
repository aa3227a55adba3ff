"""Pages from templates: everything that comes from outside is text."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import Any

from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment

from assay.report.templating import environment
from assay.report.trees import style as tree_style
from assay.serve.reading import plain
from assay.writing import count, interval, number

HERE = Path(__file__).parent
LOOK = HERE.parent / "report"
LONG = 2000  # letters of a sentence
VIEWS = {"/": "Explain", "/runs": "Runs", "/jobs": "Jobs"}


@cache
def templates() -> Environment:
    """The templates of the app, and those that it shares with the report."""
    made = environment(HERE / "templates", number=number, count=count, plain=partial(plain, longest=LONG))
    made.globals |= {"interval": interval, "views": VIEWS}
    return made


def page(template: str, view: str, status: int = 200, **values: Any) -> HTMLResponse:
    """One page; `view` is the address of the menu that it belongs to."""
    text = templates().get_template(template).render(view=view, **values)
    return HTMLResponse(text.encode("utf-8", "replace"), status)


def failed(sentence: str, status: int) -> HTMLResponse:
    """A page with one sentence on what went wrong."""
    return page("failed.html.jinja", "", status, sentence=sentence)


@cache
def look() -> str:
    """The colours and the type of the report."""
    return templates().get_template("report.css").render() + tree_style("body")


def stylesheet() -> Response:
    return Response(look(), media_type="text/css")
