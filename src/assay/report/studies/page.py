"""A study as one offline HTML file that needs no script and asks for nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assay import __version__
from assay.files import write_text
from assay.report.plain import encodable, line
from assay.report.studies import words
from assay.report.studies.answers import Answer, Study
from assay.report.studies.tables import DIFFERENCES, Shown, differences, shown
from assay.report.templating import environment

if TYPE_CHECKING:
    from markupsafe import Markup

OPEN = 30
"""A table of more rows is folded away."""


@dataclass(frozen=True)
class Section:
    """One question as the page shows it."""

    title: str
    measured: str
    sentence: str
    based: str
    legend: str
    against: str | None
    columns: list[str]
    rows: list[tuple[str, list[Shown | str]]]
    panels: list[tuple[str, Markup]]
    apart: bool  # whether each panel has its own scale
    left: int
    tested: list[tuple[str, ...]]
    missing: list[tuple[str, str]]
    notes: list[str]


def render(study: Study) -> str:
    """The page as the text of one HTML file; the same study gives the same text."""
    templates = environment(tight=_tight)
    written = templates.get_template("study.html.jinja").render(
        version=__version__,
        name=line(study.name),
        headline=words.headline(study),
        grid=words.grid(study),
        caveats=words.caveats(study),
        sections=[_section(answer) for answer in study.answers],
        heads=DIFFERENCES,
        facts=_facts(study),
        missing=words.lacking(study.missing),
        rules=words.RULES,
        limits=words.LIMITS,
        most=OPEN,
    )
    return encodable(written)


def write(study: Study, path: Path) -> None:
    """Writes the page, whole or not at all."""
    write_text(path, render(study))


def _section(answer: Answer) -> Section:
    from markupsafe import Markup

    from assay.report.canvas import svg
    from assay.report.studies.figures import apart, left, panels

    return Section(
        line(answer.title),
        words.measured(answer),
        words.sentence(answer),
        words.based(answer),
        words.legend(answer),
        None if answer.against is None else line(answer.against),
        [line(column.title) for column in answer.columns],
        shown(answer),
        [(corpus, Markup(svg(figure))) for corpus, figure in panels(answer)],
        apart(answer),
        left(answer),
        differences(answer),
        words.lacking(answer.missing),
        [line(each) for each in answer.notes],
    )


def _facts(study: Study) -> list[tuple[str, str]]:
    return [
        ("Corpora", ", ".join(map(line, study.corpora))),
        ("Models", ", ".join(map(line, study.models))),
        ("Seeds", ", ".join(map(str, study.seeds))),
        ("Trials", f"{study.done} of {study.trials} finished"),
    ]


def _tight(text: str) -> str:
    """Keeps a number on one line with its percent sign, and a sign with its word."""
    return re.sub(r" (?=%)|(?<=[▲▼△▽]) ", "\u00a0", text)
