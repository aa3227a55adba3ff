"""A document as one offline HTML file that asks for nothing, and its blocks as parts of other pages."""

from __future__ import annotations

import html
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.document import Bar, Block, Chart, Document, Section, Span, Words, parts
from assay.files import write_text
from assay.report import passages
from assay.report.scripts import policy
from assay.report.tables import MARKS
from assay.report.templating import environment
from assay.writing import encodable

if TYPE_CHECKING:
    from jinja2.environment import TemplateModule
    from markupsafe import Markup

TAGS = {
    "strong": ("<b>", "</b>"),
    "name": ("<bdi>", "</bdi>"),
    "called": ("<b><bdi>", "</bdi></b>"),
    "code": ("<code>", "</code>"),
    "hidden": ('<span aria-hidden="true">', "</span>"),  # from those who hear what it says
    "selected": ('<mark class="selected">', "</mark>"),
    "marked": ('<u class="marked">', "</u>"),
    "both": ('<mark class="selected"><u class="marked">', "</u></mark>"),
    "nth": ('<sup class="nth">', "</sup>"),
}
NAMES = ("name", "called", "code")
SIGNS = ("▲", "▼", "△", "▽")


def render(document: Document) -> str:
    """The page as text; the same document gives the same text."""
    page = _templates().get_template("document.html.jinja").render(document=document, policy=policy())
    # texts may hold what is no text; it must not keep the rest from being written
    return encodable(page)


def write(document: Document, path: Path) -> None:
    """Writes the page, whole or not at all."""
    write_text(path, render(document))


def fragment(blocks: Iterable[Block]) -> Markup:
    """Blocks as part of a page that has the style of the report."""
    made: Markup = _macros().blocks(tuple(blocks))  # type: ignore[attr-defined]
    return made


def inline(words: Words) -> Markup:
    """A sentence with its parts set apart, and numbers on one line with their percent signs."""
    return _safe("".join(map(_part, parts(words))))


def _part(part: str | Span) -> str:
    if isinstance(part, str):
        return html.escape(_tight(part))
    text = html.escape(part.text if part.kind in NAMES else _tight(part.text))
    if part.kind == "link":
        return f'<a href="#{html.escape(part.target)}"><bdi>{text}</bdi></a>'
    opening, closing = TAGS.get(part.kind) or (f'<span class="{part.kind}">', "</span>")
    return f"{opening}{text}{closing}"


def _tight(text: str) -> str:
    made = text.replace(" %", "\u00a0%").replace("n = ", "n\u00a0=\u00a0")
    for sign in SIGNS:
        made = made.replace(f"{sign} ", f"{sign}\u00a0")
    return made


def _safe(markup: str) -> Markup:
    from markupsafe import Markup

    return Markup(markup)


def drawn(drawing: Any) -> str:
    """The SVG of what is to be drawn; nothing where there are too few numbers."""
    if isinstance(drawing, str):
        return drawing
    if isinstance(drawing, Bar):
        return _bar(drawing)
    from assay.report.canvas import svg
    from assay.report.model_figures import pruning

    return svg({"pruning": pruning}[drawing.kind](drawing.numbers) if isinstance(drawing, Chart) else drawing)


def _bar(bar: Bar) -> str:
    inside = f'<rect width="{100 * bar.share:.1f}" height="10"/>'
    if bar.ends is not None:
        low, high = (100 * end for end in bar.ends)
        spread = f'<rect class="spread" x="{low:.1f}" y="3.5" width="{high - low:.1f}" height="3"/>'
        inside = f'<rect class="track" width="100" height="10"/>{inside}{spread}'
    return f'<svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">{inside}</svg>'


@cache
def _templates() -> Any:
    return environment(
        inline=inline,
        passage=lambda passage: _safe(passages.html(passage)),
        drawing=lambda drawing: _safe(drawn(drawing)),
        kind=lambda block: type(block).__name__.lower(),
        mark=lambda grade: MARKS.get(grade, ""),
        named=lambda sections: [each for each in sections if isinstance(each, Section) and each.short],
    )


@cache
def _macros() -> TemplateModule:
    made: TemplateModule = _templates().get_template("blocks.html.jinja").module
    return made
