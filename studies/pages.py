"""What the pages of studies share: a table with the best in bold, a line on how it was made, a place in README.md."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.files import write_text
from assay.records import Record

START, END = "<!-- made by the command above -->", "<!-- end -->"


def table(
    head: Sequence[str], titles: Sequence[str], numbers: Sequence[Sequence[float | None]], low: Collection[int] = ()
) -> list[str]:
    """Lines of a Markdown table; the best number of each column is bold, the lowest in the columns of `low`."""
    columns = list(zip(*numbers, strict=True))
    best = []
    for place, column in enumerate(columns):
        known = [f"{number:.3f}" for number in column if number is not None]
        pick = min if place in low else max
        best.append(pick(known, key=float) if known else "")
    lines = []
    for title, row in zip(titles, numbers, strict=True):
        cells = ["–" if number is None else f"{number:.3f}" for number in row]
        bold = [f"**{cell}**" if cell == top else cell for cell, top in zip(cells, best, strict=True)]
        lines.append("| " + " | ".join([title, *bold]) + " |")
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *lines]


def made(module: str, records: Iterable[Record]) -> str:
    """By which command, when and where."""
    return made_from(module, [record.summary for record in records])


def made_from(module: str, summaries: Sequence[Mapping[str, Any]]) -> str:
    """By which command, when and where, as the summaries of its runs say."""
    days, devices, versions = (
        sorted({of(summary) for summary in summaries})
        for of in (lambda s: s["created"][:10], lambda s: s["device"], lambda s: s["versions"]["torch"])
    )
    option = "" if devices == ["cpu"] else " --device cuda"
    where = ", ".join(devices).replace("cpu", "one core of an x86-64 CPU")
    return f"Made by `python -m {module}{option}` on {', '.join(days)}, {where}, torch {', '.join(versions)}."


def standing(page: Path) -> str:
    """What stands between the two marks of a page."""
    return page.read_text(encoding="utf-8").partition(START)[2].partition(END)[0].strip()


def put(page: Path, text: str, part: str = "") -> None:
    """Replaces what stands between the two marks of a page, or of a `part` of it where a page has several."""
    start, end = (f"<!-- {part}: made by its command -->", f"<!-- end of {part} -->") if part else (START, END)
    before, opened, rest = page.read_text(encoding="utf-8").partition(start)
    _, closed, after = rest.partition(end)
    if bool(opened) != bool(closed):
        raise ValueError(f"{page} has one of the marks {start} and {end}, not both; what is to be replaced?")
    write_text(page, f"{before}{start}\n\n{text}\n{end}{after}")
