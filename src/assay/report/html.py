"""A document as one offline HTML file that asks for nothing, and its blocks as parts of other pages."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.document import MARKS, Bar, Block, Chart, Document, Phrases, Section, Span, Words, parts
from assay.files import write_text
from assay.report import heatmaps
from assay.writing import encodable

if TYPE_CHECKING:
    from jinja2 import Environment
    from jinja2.environment import TemplateModule
    from markupsafe import Markup

TEMPLATES, STATIC = Path(__file__).parent / "templates", Path(__file__).parent / "static"
ESCAPED = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}
SHADES = [f"{sign}{level}" for sign in "pn" for level in range(1, 9)]
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
} | {shade: (f'<mark class="{shade}">', "</mark>") for shade in SHADES}
NAMES = ("name", "called", "code")
SIGNS = ("▲", "▼", "△", "▽")


def render(document: Document) -> str:
    """The page as text; the same document gives the same text."""
    scripts = [static(name) for name in document.scripts]
    template = _templates().get_template("document.html.jinja")
    page = template.render(document=document, policy=policy(scripts), scripts=scripts, grid=static("grid.css"))
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


def drawn(drawing: Any) -> str:
    """The SVG of what is to be drawn; nothing where there are too few numbers."""
    if isinstance(drawing, str):
        return drawing
    if isinstance(drawing, Bar):
        return _bar(drawing)
    from assay.report.canvas import svg
    from assay.report.model_figures import pruning

    return svg({"pruning": pruning}[drawing.kind](drawing.numbers) if isinstance(drawing, Chart) else drawing)


def environment(*before: Path, **filters: Callable[..., Any]) -> Environment:
    """The templates of the report, with those of other folders before them; they escape all and refuse the unknown."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader([*before, TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= filters
    return made


@cache
def static(name: str) -> str:
    """The text of one of the files that pages share."""
    return (STATIC / name).read_text(encoding="utf-8")


def policy(scripts: Sequence[str] = ()) -> str:
    """A content security policy under which a page asks for nothing and runs these inlined scripts only."""
    hashes = " ".join(f"'sha256-{_hash(script)}'" for script in scripts)
    allowed = f"script-src {hashes}; " if hashes else ""
    return f"default-src 'none'; {allowed}style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def data(value: Any) -> str:
    """A value as JSON that no parser of HTML takes for markup."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).translate(ESCAPED)


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


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


def _bar(bar: Bar) -> str:
    inside = f'<rect width="{100 * bar.share:.1f}" height="10"/>'
    if bar.ends is not None:
        low, high = (100 * end for end in bar.ends)
        spread = f'<rect class="spread" x="{low:.1f}" y="3.5" width="{high - low:.1f}" height="3"/>'
        inside = f'<rect class="track" width="100" height="10"/>{inside}{spread}'
    return f'<svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">{inside}</svg>'


def _divided(phrases: Phrases) -> str:
    from assay.report.trees import drawn

    return drawn(phrases.tree, phrases.words)


@cache
def _templates() -> Environment:
    return environment(
        inline=inline,
        passage=lambda passage: _safe(heatmaps.passage(passage)),
        line=lambda line, example: _safe(heatmaps.line(example, line)),
        drawing=lambda drawing: _safe(drawn(drawing)),
        phrases=lambda phrases: _safe(_divided(phrases)),
        inert=lambda value: _safe(data(value)),
        kind=lambda block: type(block).__name__.lower(),
        mark=lambda grade: MARKS.get(grade, ""),
        named=lambda sections: [each for each in sections if isinstance(each, Section) and each.short],
    )


@cache
def _macros() -> TemplateModule:
    made: TemplateModule = _templates().get_template("blocks.html.jinja").module
    return made
