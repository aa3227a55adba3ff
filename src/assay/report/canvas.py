"""The look that all figures share, and their way into a page or a file."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import altair as alt

from assay.errors import AssayError
from assay.files import whole
from assay.writing import finite

Figure = alt.Chart | alt.LayerChart | alt.FacetChart
Rows = list[dict[str, Any]]

INK = "#3d3b47"
CLASS_COLOURS = ("#8b68c8", "#d9760f", "#2a978b", "#cc5a86", "#5c86c5", "#8d8a3c")
"""Purple and orange as in the paper, then four more; all hold 3:1 on white and on the page's dark ground."""

SHAPES = ("circle", "diamond", "triangle-up", "square", "cross", "triangle-down")
GRADE_COLOURS = {"pass": "#2e9a5b", "warn": "#b97a00", "fail": "#d9534a", "reference": "#7d8794"}
GRADE_SHAPES = {"pass": "circle", "warn": "triangle-up", "fail": "diamond", "reference": "square"}
DASHES = [4, 3]
SVG = "http://www.w3.org/2000/svg"


def sheet(rows: Rows) -> alt.Chart:
    """An empty chart over rows that are already as few as they will be drawn."""
    return alt.Chart(alt.InlineData(values=finite(rows)))


def known(values: Iterable[float | None]) -> list[float]:
    """Those that are numbers, as the ends of an interval of a single text are not."""
    return [value for value in values if value is not None and math.isfinite(value)]


def layers(*charts: alt.Chart) -> alt.LayerChart:
    """Charts on top of each other, on the same axes."""
    return alt.LayerChart(layer=list(charts))


def ends(found: Any) -> dict[str, float]:
    """A mean and its interval, as parts of a row."""
    return {"mean": found.mean, "low": found.low, "high": found.high}


def names() -> alt.Y:
    """The explainers down the left side, in the order of the rows."""
    return alt.Y("name:N", sort=None, title=None, axis=alt.Axis(labelFontSize=12, labelLimit=165, grid=False))


def told_apart(field: str, names: Sequence[str], **options: Any) -> tuple[alt.Color, alt.Shape]:
    """A colour and a shape for each name, in the same order in every figure."""

    def scale(values: Sequence[str]) -> alt.Scale:
        return alt.Scale(domain=list(names), range=[values[place % len(values)] for place in range(len(names))])

    return alt.Color(field, scale=scale(CLASS_COLOURS), **options), alt.Shape(field, scale=scale(SHAPES), **options)


def graded() -> tuple[alt.Color, alt.Shape]:
    """A colour and a shape for each grade."""
    looks = [alt.Scale(domain=list(each), range=list(each.values())) for each in (GRADE_COLOURS, GRADE_SHAPES)]
    return alt.Color("grade:N", legend=None, scale=looks[0]), alt.Shape("grade:N", legend=None, scale=looks[1])


def null_line(**at: int | float) -> alt.Chart:
    """A dashed line through the whole figure at a number on one of its axes."""
    line: alt.Chart = sheet([at]).mark_rule(color=INK, strokeDash=DASHES)
    return line.encode(**{axis: f"{axis}:Q" for axis in at})


def intervals(rows: Rows, x: alt.X, width: int) -> list[alt.Chart]:
    """A dot with its interval for each name, and the number on the right."""
    shared, colour = sheet(rows).encode(y=names()), CLASS_COLOURS[0]
    return [
        shared.mark_rule(strokeWidth=4, opacity=0.5, color=colour).encode(x=x, x2="high:Q"),
        shared.mark_point(filled=True, size=90, opacity=1, color=colour).encode(x="mean:Q"),
        beside(shared, width + 10),
    ]


def beside(shared: alt.Chart, at: int) -> alt.Chart:
    """What stands on the right of each row."""
    words: alt.Chart = shared.mark_text(align="left", fontSize=12, color=INK)
    return words.encode(x=alt.value(at), text="label:N")


def curves(rows: Rows, names: Sequence[str], columns: int) -> list[alt.Chart]:
    """A line and its points for each name; the legend has so many columns."""
    colour, shape = told_apart("name:N", names, legend=alt.Legend(columns=columns))
    shared = sheet(rows).encode(color=colour)
    return [shared.mark_line(strokeWidth=2), shared.mark_point(filled=True, size=60, opacity=1).encode(shape=shape)]


def boxes(shared: alt.Chart, x: alt.X, height: int) -> list[alt.Chart]:
    """A line from whisker to whisker, a bar between the quartiles, a tick at the median."""
    return [
        shared.mark_rule(strokeWidth=1.5).encode(x=x, x2="high:Q"),
        shared.mark_bar(opacity=0.4, height=height).encode(x="first:Q", x2="third:Q"),
        shared.mark_tick(thickness=3, size=height, opacity=1).encode(x="median:Q"),
    ]


def listing(rows: Rows) -> str:
    """The names with their numbers, for a description."""
    return ", ".join(f"{row['name']} {row['label']}" for row in rows)


def drawn(charts: Iterable[alt.Chart], width: int, height: int | alt.Step, description: str) -> Figure:
    """Charts on top of each other as a finished figure of this size."""
    return finish(layers(*charts).properties(width=width, height=height), description)


def finish(figure: Figure, description: str) -> Figure:
    """The figure with the shared look, and a description for those who cannot see it."""
    quiet = {"domain": False, "ticks": False, "gridColor": INK, "gridOpacity": 0.13, "labelPadding": 6}
    words = {
        "labelColor": INK,
        "titleColor": INK,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": 500,
    }
    finished: Figure = (
        figure.properties(description=description)
        .configure(font="sans-serif", background="white", padding=4)
        .configure_view(stroke=None)
        .configure_axis(**quiet, **words, titlePadding=8)
        .configure_legend(
            **words, orient="top", title=None, labelLimit=0, symbolType="square", symbolOpacity=1, offset=8
        )
    )
    return finished


def svg(figure: Figure) -> str:
    """The figure as SVG for a page: the text takes the page's colour, ids are its own, nothing is fetched."""
    import vl_convert

    specification = figure.to_dict()
    root = ElementTree.fromstring(vl_convert.vegalite_to_svg(specification))
    # Vega counts its ids up through a process; a digest of the content keeps pages equal from run to run.
    prefix = "f" + hashlib.sha256(json.dumps(specification, sort_keys=True).encode()).hexdigest()[:10]
    _rename(root, prefix)
    for node in root.iter():
        _tidy(node)
    for ground in [node for node in root if node.tag == f"{{{SVG}}}rect" and node.get("fill") == "white"]:
        root.remove(ground)
    title = ElementTree.Element(f"{{{SVG}}}title", {"id": f"{prefix}-title"})
    title.text = specification.get("description", "")
    root.insert(0, title)
    root.attrib.update({"role": "img", "aria-labelledby": f"{prefix}-title"})
    ElementTree.register_namespace("", SVG)
    return ElementTree.tostring(root, encoding="unicode")


def save(figure: Figure, path: Path) -> None:
    """Writes the figure on white as SVG, PNG or PDF, by the name's ending, whole or not at all."""
    import vl_convert

    specification = figure.to_dict()
    writers = {
        ".svg": lambda: vl_convert.vegalite_to_svg(specification).encode("utf-8"),
        ".png": lambda: vl_convert.vegalite_to_png(specification, scale=2),
        ".pdf": lambda: vl_convert.vegalite_to_pdf(specification),
    }
    if path.suffix.lower() not in writers:
        raise AssayError(f"Cannot write a figure as {path.name!r}; end the name in .svg, .png or .pdf.")
    with whole(path) as scratch:
        scratch.write_bytes(writers[path.suffix.lower()]())


def _rename(root: ElementTree.Element, prefix: str) -> None:
    names = {node.get("id"): f"{prefix}-{place}" for place, node in enumerate(root.iter()) if node.get("id")}
    for node in root.iter():
        for key, value in node.attrib.items():
            inner = re.fullmatch(r"url\(#(.+)\)", value)
            if key == "id":
                node.set(key, names[value])
            elif inner:
                node.set(key, f"url(#{names[inner[1]]})")


def _tidy(node: ElementTree.Element) -> None:
    """Drops what only a live Vega view needs, shortens numbers, lets ink follow the page's colour scheme."""
    for key in [key for key in node.attrib if key in ("class", "role", "pointer-events") or key.startswith("aria-")]:
        del node.attrib[key]
    for key, value in node.attrib.items():
        if value == INK:
            node.set(key, "currentColor")
        elif key in ("d", "transform", "x2", "y2", "viewBox"):
            node.set(key, re.sub(r"\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}", value))
