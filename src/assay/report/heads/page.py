"""The probes of heads as one offline HTML file that needs no script and asks for nothing."""

from __future__ import annotations

from pathlib import Path

from assay.files import write_text
from assay.report import drawings as drawn
from assay.report.heads import blocks, words
from assay.report.heads.answers import origins
from assay.report.heads.probe import Probe, relations
from assay.report.heads.sentences import sentences
from assay.report.heads.verdict import NAMES, caveats, headline, leading, model, step
from assay.report.templating import environment
from assay.report.writing import count, interval, percent


def render(probe: Probe) -> str:
    """The page as the text of one HTML file; the same probe gives the same text."""
    from markupsafe import Markup

    from assay.report.canvas import svg

    templates = environment(percent=percent, count=count, html=Markup, tight=_tight, step=step)
    templates.filters |= {"bar": lambda found: Markup(drawn.bar(found)), "figure": lambda made: Markup(svg(made))}
    found = relations(probe)
    page = templates.get_template("heads.html.jinja").render(
        probe=probe,
        model=model(probe),
        headline=headline(probe),
        leading=leading(found),
        caveats=caveats(probe),
        relations=found,
        first=blocks.FIRST,
        squares=blocks.squares(found),
        numbers=blocks.numbers(found),
        sentences=sentences(probe),
        blocks=blocks.blocks(probe),
        readings=words.READINGS,
        limits=words.LIMITS,
        papers=words.PAPERS,
        names=NAMES,
        origins=origins(probe),
        interval=interval,
    )
    # words may hold what is no text; they must not keep the rest from being written
    return page.encode("utf-8", "replace").decode("utf-8")


def write(probe: Probe, path: Path) -> None:
    """Writes the page, whole or not at all."""
    write_text(path, render(probe))


def _tight(text: str) -> str:
    """Keeps a number on one line with its percent sign or its name."""
    return text.replace(" %", "\u00a0%").replace("n = ", "n\u00a0=\u00a0")
