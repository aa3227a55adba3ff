"""A document as a PDF for paper and post; all text goes to the template as data, never as markup."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

from assay.document import MARKS, Bar, Document, Example, Group, Passage, Phrases, Table
from assay.errors import AssayError
from assay.files import whole
from assay.report.heatmaps import richest, sampled, strengths, window
from assay.report.html import TEMPLATES, drawn
from assay.report.save import tree
from assay.report.trees import outline
from assay.writing import encodable, finite, lines

FONT = "Libertinus Serif"
"""It comes with typst, so that pages look the same everywhere."""

WIDE, NARROW = 60, 22
"""A longer word gets places where a line may end, in text and in columns."""

PRINTED = "".join(
    f".{sign}{level}{{fill:{colour};fill-opacity:{level / 8:.3f}}}"
    for sign, colour in (("p", "#d9760f"), ("n", "#3a7ccd"))
    for level in range(1, 9)
)
"""How drawings are shaded where there is no style sheet."""


def render(document: Document) -> bytes:
    """The file; the same document gives the same bytes."""
    return pages(document)[0]


def pages(document: Document, kind: Literal["pdf", "png"] = "pdf") -> list[bytes]:
    """The file, or its pages as pictures."""
    import typst

    inputs = {"report": json.dumps(given(document), ensure_ascii=False, allow_nan=False)}
    try:
        made = typst.compile((TEMPLATES / "document.typ").read_bytes(), format=kind, sys_inputs=inputs, timestamp=0)
    except typst.TypstError as fault:
        raise AssayError(f"Typst could not set the report ({fault.message}); --format html holds the same.") from fault
    return [made] if isinstance(made, bytes) else made


def write(document: Document, path: Path) -> None:
    """Writes the document, whole or not at all."""
    with whole(path) as scratch:
        scratch.write_bytes(render(document))


def given(document: Document) -> dict[str, Any]:
    """What the template reads: the blocks, each text on one line that can be broken, and the figures as SVG."""
    drawings: list[str] = []

    def draw(drawing: Any) -> str:
        drawings.append(_drawn(drawing))
        return f"drawing {len(drawings) - 1}"

    held = _broken(lines(finite(tree(document, draw, OWN))))
    return {**held, "marks": MARKS, "drawings": drawings}


def rightward(text: str) -> bool:
    """Whether a text is written from right to left: whether its first letter is."""
    kinds = (unicodedata.bidirectional(character) for character in text)
    return next((kind for kind in kinds if kind in ("L", "R", "AL")), "L") != "L"


def _drawn(drawing: Any) -> str:
    """A figure on no ground, in the font of the pages."""
    from assay.report.canvas import INK

    markup = drawn(drawing)
    if not isinstance(drawing, str | Bar):
        return encodable(markup).replace("currentColor", INK).replace("sans-serif", FONT)
    opened = markup.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    head, _, rest = opened.partition(">")
    return encodable(f"{head}><style>{PRINTED}{DRAWN}</style>{rest}")


DRAWN = (
    f"rect{{fill:#d9760f}}text{{font-family:'{FONT}';font-size:10px}}.ground{{fill:none;stroke:#ccc}}.ring{{fill:none;stroke:#26242e}}"
    ".rest line{stroke:#999;opacity:.4}.other line{stroke:#3a7ccd}.true line{stroke:#d9760f}"
    ".wrong{fill:none;stroke:#bb3129}.tick{fill:none;stroke:#1f7a46}.axis{stroke:#ccc}"
    ".interval{stroke:#d9760f;stroke-width:7;opacity:.55}.found{fill:#d9760f}.offset{stroke:#26242e}"
    ".control{fill:none;stroke:#6a45ad}.track{fill:#ddd}.spread{fill:#26242e}"
)


def _passage(given: Passage) -> dict[str, Any]:
    """The words of a passage, and how strong each is."""
    first, last = (richest if given.selected else window)(given.scores, given.size)
    levels = [5 * bool(flag) for flag in given.scores] if given.selected else strengths(given.scores)
    words = [given.text[start:end] for start, end in zip(given.starts, given.ends, strict=True)]
    cut = {"before": first, "after": len(words) - last, "rtl": rightward(given.text)}
    return {"block": "passage", "words": words[first:last], "levels": levels[first:last], **cut}


def _example(given: Example) -> dict[str, Any]:
    found = sampled(given)
    sure, rtl = f"{given.probability:.2f}", rightward(" ".join(found["words"]))
    return {"block": "example", **found, "probability": sure, "rtl": rtl}


def _phrases(given: Phrases) -> dict[str, Any]:
    """A line a phrase, with blanks that stay."""
    told = (each.replace(" ", "\u00a0") for each in outline(given.tree, given.words))
    return {"block": "phrases", "lines": list(told)}


def _table(given: Table) -> Any:
    table, below = given.parted
    return given if below is None else Group((table, below), "")


OWN: dict[type, Callable[[Any], Any]] = {Passage: _passage, Example: _example, Phrases: _phrases, Table: _table}
"""Blocks that the template reads otherwise than they are."""


def _broken(value: Any, run: int = WIDE) -> Any:
    """The same data, with places in very long words where a line may end."""
    if isinstance(value, dict):
        return {key: _broken(held, NARROW if key in ("rows", "columns") else run) for key, held in value.items()}
    if isinstance(value, list):
        return [_broken(held, run) for held in value]
    return re.sub(rf"[!-~]{{{run + 1},}}", partial(_parted, run=run), value) if isinstance(value, str) else value


def _parted(word: re.Match[str], run: int) -> str:
    """A long word that may be broken at the joints of a name or a path, or else anywhere."""
    return re.sub(rf"[_(=/]|[^_(=/]{{{run}}}", "\\g<0>\u200b", word[0])
