"""The training texts behind a decision as one offline HTML file that needs no script and asks for nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.files import write_text
from assay.report.influence import checks, hybrid, words
from assay.report.templating import environment
from assay.writing import count, figures, interval, number, percent

LONGEST = 600  # signs of a training text that are shown


def render(answer: Mapping[str, Any]) -> str:
    """The page as the text of one HTML file; the same answer gives the same text."""
    from markupsafe import Markup

    templates = environment(percent=percent, count=count, figures=figures, number=number, cut=cut)
    tokens = answer.get("tokens")
    page = templates.get_template("influence.html.jinja").render(
        answer=answer,
        headline=words.headline(answer),
        caveats=words.caveats(answer),
        reading=words.reading(answer) if answer["kind"] == "text" else "",
        limits=words.LIMITS if answer["kind"] == "text" else words.SUSPECTED,
        facts=words.facts(answer),
        tables=tables(answer),
        tokens=Markup(hybrid.fragment(tokens)) if tokens else "",
        hybrid_css=Markup(hybrid.CSS) if tokens else "",
        checks=checks.tables(answer.get("checks") or {}),
        interval=interval,
    )
    return page.encode("utf-8", "replace").decode("utf-8")


def write(answer: Mapping[str, Any], path: Path) -> None:
    """Writes the page, whole or not at all."""
    write_text(path, render(answer))


def tables(answer: Mapping[str, Any]) -> list[tuple[str, str, Sequence[Mapping[str, Any]]]]:
    """The titles and rows of the lists of training texts, each row with the length of its bar in percent."""
    if answer["kind"] != "text":
        return []
    peak = max((abs(each["score"]) for kind in ("supporting", "opposing") for each in answer[kind]), default=0.0) or 1.0
    return [
        (title, name, [{**each, "bar": 100 * abs(each["score"]) / peak} for each in answer[name]])
        for title, name in (("Speak for it", "supporting"), ("Speak against it", "opposing"))
    ]


def cut(text: str) -> str:
    """A training text as far as it is shown."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST].rstrip()} …"
