"""Pages from templates: everything that comes from outside is text."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from assay.report.writing import count, interval, number

HERE = Path(__file__).parent
LOOK = HERE.parent / "report"
VIEWS = {"/": "Explain", "/runs": "Runs", "/jobs": "Jobs"}


@cache
def environment() -> Environment:
    """The templates of the app, and those that it shares with the report."""
    made = Environment(
        loader=FileSystemLoader([HERE / "templates", LOOK / "templates"]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"number": number, "count": count}
    made.globals |= {"interval": interval, "views": VIEWS}
    return made


def page(template: str, view: str, status: int = 200, **values: Any) -> HTMLResponse:
    """One page; `view` is the address of the menu that it belongs to."""
    text = environment().get_template(template).render(view=view, **values)
    return HTMLResponse(text.encode("utf-8", "replace"), status)


def failed(sentence: str, status: int) -> HTMLResponse:
    """A page with one sentence on what went wrong."""
    return page("failed.html.jinja", "", status, sentence=sentence)


@cache
def look() -> str:
    """The colours and the type of the report."""
    environment_of_report = Environment(loader=FileSystemLoader(LOOK / "templates"), trim_blocks=True)
    return environment_of_report.get_template("report.css").render()


def stylesheet() -> Response:
    return Response(look(), media_type="text/css")
