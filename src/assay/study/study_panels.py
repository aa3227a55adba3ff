"""Small panels of a study with a dot and an interval in each line: subjects over models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import altair as alt

from assay.report.canvas import CLASS_COLOURS, Figure, Rows, drawn, ends, known, sheet, told_apart
from assay.report.figures import labels
from assay.report.sections import MOST
from assay.study import results
from assay.study.results import Answer, places, subject
from assay.writing import line, number

WIDE = 190
LETTER, LIMIT = 7.5, 170  # width of a letter of a name beside the axis, and of all
FLAT = 4  # a panel may be so many times narrower than the scale that it shares
STEP, DENSE = 22, 13  # height of a line: with one model, and of each of several
HOLDS, UNDECIDED = "holds", "open"


def study_panels(answer: Answer) -> list[tuple[str, Figure]]:
    """A figure for each corpus; of many models as many at a time as there are colours."""
    figures = []
    for corpus, models in _held(answer):
        if rows := _rows(answer, models):
            domain = _domain(answer, list(models) if apart(answer) else range(len(answer.columns)))
            figures.append((line(corpus), _study_panel(answer, rows, list(models.values()), domain)))
    return figures


def apart(answer: Answer) -> bool:
    """Whether each panel has its own scale: on one for all, some would show a single spot."""
    spans = [_domain(answer, list(models)) for _, models in _held(answer) if _cells(answer, list(models))]
    whole = _domain(answer, range(len(answer.columns)))
    return any(FLAT * (high - low) < whole[1] - whole[0] for low, high in spans)


def left(answer: Answer) -> int:
    """How many rows of the table are not drawn."""
    return max(0, len(answer.rows) - MOST)


def _held(answer: Answer) -> Iterator[tuple[str, dict[int, str]]]:
    """The corpus of each panel, and the names of its models by the places of their columns."""
    for corpus in dict.fromkeys(column.corpus for column in answer.columns):
        held = [place for place, column in enumerate(answer.columns) if column.corpus == corpus]
        for start in range(0, len(held), len(CLASS_COLOURS)):
            some = held[start : start + len(CLASS_COLOURS)]
            yield corpus, dict(zip(some, labels([_model(answer.columns[place]) for place in some]), strict=True))


def _drawn(answer: Answer) -> Sequence[results.Row]:
    """The first rows, with the one that they are tested against among them."""
    first = answer.rows[:MOST]
    if any(row.subject == answer.against for row in first):
        return first
    against = [row for row in answer.rows if row.subject == answer.against]
    return [*first[: MOST - len(against)], *against]


def _cells(answer: Answer, places: Sequence[int]) -> list[results.Cell]:
    return [cell for row in _drawn(answer) for place in places if (cell := row.cells[place]) is not None]


def _domain(answer: Answer, places: Sequence[int]) -> tuple[float, float]:
    """From the lowest end to the highest; intervals over two seeds reach so far that only their means count."""
    found = _cells(answer, places)
    ends = [end for cell in found if cell.over == "texts" or cell.seeds > 2 for end in (cell.low, cell.high)]
    ends = known(ends) + [cell.mean for cell in found]
    lowest, highest = min(ends, default=0.0), max(ends, default=0.0)
    margin = 0.08 * (highest - lowest) or 0.05
    return lowest - margin, highest + margin


def _rows(answer: Answer, models: dict[int, str]) -> Rows:
    held = _drawn(answer)
    shown_to = places(answer)
    return [
        {
            "name": name,
            "model": model,
            "state": UNDECIDED if _open(cell) else HOLDS,
            "told": number(cell.mean, shown_to),
        }
        | ends(cell)
        for name, row in zip(labels([subject(row.subject) for row in held]), held, strict=True)
        for place, model in models.items()
        if (cell := row.cells[place]) is not None
    ]


def _open(cell: results.Cell) -> bool:
    """Whether a difference was tested and does not hold; what was not tested is no open question."""
    return cell.difference is not None and not cell.difference.sure


def _study_panel(answer: Answer, rows: Rows, models: list[str], domain: tuple[float, float]) -> Figure:
    several = len(models) > 1
    legend = alt.Legend(columns=2 if max(map(len, models)) <= 20 else 1) if several else None
    colour, _ = told_apart("model:N", models, legend=legend)
    # fonts of readers are wider than the one that is measured here
    room = min(LIMIT, LETTER * max(len(row["name"]) for row in rows))
    axis = alt.Axis(labelFontSize=12, labelLimit=LIMIT, grid=False, minExtent=room)
    shared = sheet(rows).encode(y=alt.Y("name:N", sort=None, title=None, axis=axis), color=colour)
    if several:
        shared = shared.encode(yOffset=alt.YOffset("model:N", sort=models))
    x = alt.X("low:Q", scale=alt.Scale(domain=domain, nice=False), title=None, axis=alt.Axis(tickCount=4))
    spans = shared.mark_rule(strokeWidth=3, opacity=0.5, clip=True).encode(x=x, x2="high:Q")
    filled = alt.Scale(domain=[HOLDS, UNDECIDED], range=[1, 0])
    dots = shared.mark_point(size=60, opacity=1, strokeWidth=2).encode(
        x="mean:Q", fill=colour, fillOpacity=alt.FillOpacity("state:N", legend=None, scale=filled)
    )
    told = "; ".join(f"{row['name']}, {row['model']}: {row['told']}" for row in rows)
    step = alt.Step(DENSE if several else STEP)
    return drawn([spans, dots], WIDE, step, f"{line(answer.called)}, mean over seeds: {told}.")


def _model(column: results.Column) -> str:
    return line(" · ".join(filter(None, (column.model, column.asked))))
