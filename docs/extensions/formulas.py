"""Formulas as MathML, which browsers draw themselves: no script, nothing to be fetched."""

from __future__ import annotations

import re
from typing import Any

from docutils.nodes import SkipNode
from latex2mathml.converter import convert


def mathml(formula: str, display: str) -> str:
    """The formula, with some room around the names of functions, which the converter takes for variables."""
    function = r'<mo lspace="0.17em" rspace="0.17em" form="prefix">\1</mo>'
    return re.sub(r"<mi>(log|exp|max)</mi>", function, str(convert(formula, display=display)))


def inline(writer: Any, node: Any) -> None:
    """A formula within a sentence."""
    writer.body.append(mathml(node.astext(), "inline"))
    raise SkipNode


def apart(writer: Any, node: Any) -> None:
    """A formula in lines of its own."""
    writer.body.append(f'<div class="formula">{mathml(node.astext(), "block")}</div>\n')
    raise SkipNode


def setup(app: Any) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (inline, None), (apart, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
