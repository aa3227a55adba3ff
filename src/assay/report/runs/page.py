"""Runs side by side as one offline HTML file that needs no script and asks for nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from assay import __version__
from assay.files import write_text
from assay.records import Record
from assay.report.plain import encodable
from assay.report.runs import words
from assay.report.runs.differences import Comparison, differences
from assay.report.runs.provenance import provenance
from assay.report.runs.quantities import Quantity
from assay.report.runs.tables import COLUMNS, difference_row, matrix, run_rows, spreads
from assay.report.tables import MARKS
from assay.report.templating import environment

SHOWN = 150
"""Of more differences in one table only the surest are shown; all stand in the JSON."""


def render(records: Mapping[str, Record]) -> str:
    """The comparison as the text of one HTML file; the same records give the same text."""
    return page(differences(records))


def page(comparison: Comparison) -> str:
    """A comparison that is at hand as the text of one HTML file."""
    from markupsafe import Markup

    from assay.report.canvas import svg
    from assay.report.runs.figures import panels

    templates = environment(tight=_tight, row=difference_row)
    ordered = sorted(comparison.differences, key=lambda each: each.contrast.p)
    rest = [each for each in ordered if each.state != "exceeds noise"]
    written = templates.get_template("compare.html.jinja").render(
        comparison=comparison,
        version=__version__,
        graded=words.graded(comparison),
        tally=words.tally(comparison),
        bullets=words.bullets(comparison),
        caveats=words.caveats(comparison),
        lacking=words.lacking(comparison),
        runs=run_rows(comparison),
        names=list(comparison.records),
        matrices=[matrix(comparison, each) for each in _first(comparison)],
        panels=[(name, Markup(svg(figure))) for name, figure in panels(comparison)],
        exceeding=comparison.exceeding[:SHOWN],
        rest=rest[:SHOWN],
        left=max(0, len(comparison.exceeding) - SHOWN) + max(0, len(rest) - SHOWN),
        columns=COLUMNS,
        noises={each.noise: words.NOISE[each.noise] for each in comparison.differences},
        spreads=[(group, spreads(comparison, group)) for group in comparison.groups],
        provenance=provenance(comparison.records),
        rules=words.RULES,
        limits=words.LIMITS,
        marks=MARKS,
    )
    return encodable(written)


def write(records: Mapping[str, Record], path: Path) -> None:
    """Writes the comparison, whole or not at all."""
    write_text(path, render(records))


def _first(comparison: Comparison) -> list[Quantity]:
    """All quantities, the one of the grades first."""
    return sorted(comparison.quantities, key=lambda each: each != comparison.headline)


def _tight(text: str) -> str:
    """Keeps a number on one line with its percent sign or its name."""
    return text.replace(" %", "\u00a0%").replace("n = ", "n\u00a0=\u00a0")
