"""The whole report as one offline HTML file that asks for nothing; what its script does can be read without it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from assay.files import write_text
from assay.grading.grade import CAPTION, yardstick
from assay.grading.leaderboard import leaderboard
from assay.grading.verdicts import leading
from assay.records import Record
from assay.report.browsing import browse
from assay.report.examples import groups, notes
from assay.report.facts import KINDS, facts, glossary, left_out, origins
from assay.report.outcome import outcome, together
from assay.report.scripts import data, policy, static
from assay.report.sections import CARD_MARKS, captions, sections
from assay.report.tables import MANY, TIE, own_rows
from assay.report.templating import environment
from assay.report.trees import divided
from assay.report.trees import style as tree_style
from assay.writing import count, interval, number

SCRIPTS = ("grid.js", "browser.js")


def render(record: Record) -> str:
    """The report as the text of one HTML file; the same record gives the same text."""
    from markupsafe import Markup

    from assay.report.figures import figures, svg

    templates = environment(number=number, count=count, html=Markup, tight=_tight)
    scripts = [static(name) for name in SCRIPTS]
    page = templates.get_template("report.html.jinja").render(
        **_judged(record),
        **_found(record),
        summary=record.summary,
        figures={name: Markup(svg(figure)) for name, figure in figures(record).items()},
        facts=facts(record),
        left_out=left_out(record),
        origins=origins(record),
        glossary=glossary(record),
        kinds=KINDS,
        plan=json.dumps(record.summary.get("plan", {}), indent=2, ensure_ascii=False),
        interval=interval,
        grid_style=Markup(static("grid.css")),
        tree_style=Markup(tree_style("body")),
        scripts=[Markup(script) for script in scripts],
        policy=Markup(policy(scripts)),
    )
    # a command line may hold bytes that are no text; they must not keep the rest from being written
    return page.encode("utf-8", "replace").decode("utf-8")


def _judged(record: Record) -> dict[str, Any]:
    """What the first section shows."""
    return {
        "outcome": outcome(record),
        "rule": yardstick(record),
        "verdict_caption": CAPTION,
        "about": leading(record) or "the explanations",
        "marks": CARD_MARKS,
    }


def _found(record: Record) -> dict[str, Any]:
    """What the sections of the audits show."""
    board = leaderboard(record)
    order = [row.name for row in board.rows] if board else []
    browser = browse(record, order)
    return {
        "board": board,
        "tie": TIE,
        "own": own_rows(record),
        "many": len(record.summary["explainers"]) > MANY,
        "sections": sections(record),
        "captions": captions(record),
        "together": together(record),
        "notes": notes(record),
        "groups": groups(record, order),
        "divided": divided(record),
        "browser": browser,
        "browser_data": data(browser),
    }


def write(record: Record, path: Path) -> None:
    """Writes the report, whole or not at all."""
    write_text(path, render(record))


def _tight(text: str) -> str:
    """Keeps a number on one line with its percent sign or its name."""
    return text.replace(" %", "\u00a0%").replace("n = ", "n\u00a0=\u00a0")
