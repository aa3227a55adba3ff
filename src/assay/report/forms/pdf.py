"""The report as a PDF for paper and post; all text goes to the template as data, never as markup."""

from __future__ import annotations

import json
import re
import unicodedata
from functools import partial
from pathlib import Path
from typing import Any, Literal

from assay.errors import AssayError
from assay.files import whole
from assay.records import Record
from assay.report.forms.document import document
from assay.report.forms.tabled import over_all
from assay.report.sections import CARD_MARKS
from assay.writing import encodable, finite, line, lines

TEMPLATE = Path(__file__).parent.parent / "templates" / "report.typ"
FONT = "Libertinus Serif"
"""It comes with typst, so that pages look the same everywhere."""

WIDE, NARROW = 60, 22
"""A longer word gets places where a line may end, in text and in columns."""

COLUMNS = ("rows", "columns", "glossary", "left_out", "plan")


def render(record: Record) -> bytes:
    """The file; the same record gives the same bytes."""
    return pages(given(record))[0]


def pages(told: dict[str, Any], kind: Literal["pdf", "png"] = "pdf") -> list[bytes]:
    """What the template makes of what it is given: the file, or its pages as pictures."""
    import typst

    inputs = {"report": json.dumps(told, ensure_ascii=False, allow_nan=False)}
    try:
        made = typst.compile(TEMPLATE.read_bytes(), format=kind, sys_inputs=inputs, timestamp=0)
    except typst.TypstError as fault:
        raise AssayError(f"Typst could not set the report ({fault.message}); --format html holds the same.") from fault
    return [made] if isinstance(made, bytes) else made


def write(record: Record, path: Path) -> None:
    """Writes the report, whole or not at all."""
    with whole(path) as scratch:
        scratch.write_bytes(render(record))


def given(record: Record) -> dict[str, Any]:
    """What the template reads: the document, each text on one line that can be broken, and the figures as SVG."""
    told = document(record)
    pairs = [(name, meaning) for name, meaning in told["glossary"].items()]
    plan = [(name, line(json.dumps(value, ensure_ascii=False))) for name, value in told["provenance"]["plan"].items()]
    told |= {"glossary": pairs, "provenance": told["provenance"] | {"plan": plan}}
    for section in told["audits"]:
        section["numbers"] = over_all(section["numbers"])
    for sample in (sample for group in told["examples"] for sample in group["examples"]):
        sample |= {"rtl": rightward(" ".join(sample["words"])), "sure": f"{sample['probability']:.2f}"}
    return {**_broken(lines(finite(told))), "marks": CARD_MARKS, "drawn": _drawn(record)}


def rightward(text: str) -> bool:
    """Whether a text is written from right to left: whether its first letter is."""
    kinds = (unicodedata.bidirectional(character) for character in text)
    return next((kind for kind in kinds if kind in ("L", "R", "AL")), "L") != "L"


def _drawn(record: Record) -> dict[str, str]:
    """Every figure that the record has, on no ground, in the font of the pages."""
    from assay.report.canvas import INK
    from assay.report.figures import figures, svg

    return {
        name: encodable(svg(figure)).replace("currentColor", INK).replace("sans-serif", FONT)
        for name, figure in figures(record).items()
    }


def _broken(value: Any, run: int = WIDE) -> Any:
    """The same data, with places in very long words where a line may end."""
    if isinstance(value, dict):
        return {key: _broken(held, NARROW if key in COLUMNS else run) for key, held in value.items()}
    if isinstance(value, list):
        return [_broken(held, run) for held in value]
    return re.sub(rf"[!-~]{{{run + 1},}}", partial(_parted, run=run), value) if isinstance(value, str) else value


def _parted(word: re.Match[str], run: int) -> str:
    """A long word that may be broken at the joints of a name or a path, or else anywhere."""
    return re.sub(rf"[_(=/]|[^_(=/]{{{run}}}", "\\g<0>\u200b", word[0])
