from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from rich.console import Console

from assay.audits import AUDITS
from assay.document import Fold
from assay.grading.grade import verdicts
from assay.records import Record
from assay.report.audit import brief
from assay.report.console import shown as printable
from assay.report.tables import agreement_rows, measure_rows
from assay.stories import story_of
from assay.writing import count, figures, interval, number, significance
from tests.report.synthetic import remade


def printed(record: Record, width: int = 100) -> str:
    console = Console(width=width, file=io.StringIO(), no_color=True)
    console.print(*printable(block for block in brief(record, width) if not isinstance(block, Fold)))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_numbers_have_a_real_minus_and_a_dash_where_there_is_none() -> None:
    assert number(-0.12345) == "−0.123"
    assert number(-0.0001) == number(-0.0) == "0.000"
    assert number(None) == number(float("nan")) == "–"
    assert interval(-0.5, 0.25) == "−0.500 to 0.250"
    assert count(1234567) == "1,234,567"
    assert interval(None, 0.25) == interval(float("nan"), 0.25) == "–"


def test_the_terminal_table_fits_and_says_in_words_what_colour_says(record: Record) -> None:
    shown = printed(record)
    assert max(map(len, shown.splitlines())) <= 100
    for verdict in verdicts(record):
        line = next(line for line in shown.splitlines() if line.strip().startswith(f"{verdict.name} "))
        assert verdict.grade in line
        assert number(verdict.effect) in line
        assert interval(verdict.low, verdict.high) in line
        assert " ".join(verdict.sentence.split()) in " ".join(shown.split())


def test_of_many_explainers_only_that_of_the_headline_is_put_into_words(crowd: Record) -> None:
    shown = printed(crowd)
    assert max(map(len, shown.splitlines())) <= 100
    for verdict in verdicts(crowd):
        assert (f"{verdict.name}: " in shown) == (verdict.name == "attention")


def test_p_values_are_written_as_people_do() -> None:
    assert [significance(p) for p in (None, float("nan"), 0.0004, 0.001, 0.0456, 1.0)] == [
        "",
        "",
        "p < 0.001",
        "p = 0.001",
        "p = 0.046",
        "p = 1.000",
    ]


def test_numbers_of_any_size_keep_three_figures() -> None:
    assert [figures(value) for value in (0.0123456, 4.2e-5, -3.0e12, 250.0, float("nan"))] == [
        "0.0123",
        "4.2 × 10⁻⁵",
        "−3 × 10¹²",
        "250",
        "–",
    ]


@pytest.mark.parametrize(
    ("audit", "measure", "words"),
    [
        ("erasure", "comprehensiveness@0.05", "comprehensiveness at 5 %"),
        ("erasure", "comprehensiveness_gain", "comprehensiveness, gain over chance"),
        ("roar", "fall_gain", "accuracy lost beyond random removal"),
        ("sanity", "similarity_encoder", "τ after randomising from the output down to the encoder"),
        ("plausibility", "token_f1", "token F1"),
        ("truth", "my_own", "my own"),
    ],
)
def test_measures_have_names_that_can_be_read(audit: str, measure: str, words: str) -> None:
    assert story_of(AUDITS[audit]).measure(measure).label == words


def test_the_paired_test_stands_beside_gains_only(contest: Record) -> None:
    grid = measure_rows(contest, "erasure")
    place = grid.columns.index("paired test")
    for row, f in zip(grid.rows, (f for f in contest.findings if f.audit == "erasure"), strict=True):
        assert row[place] == (significance(f.p_value) or "–")
        assert (row[place] != "–") == f.measure.endswith("_gain")
    assert "paired test" not in measure_rows(contest, "sanity").columns


def test_square_brackets_in_names_are_not_markup(record: Record) -> None:
    explainers = {"[red]mine[/red]": "Mine."} | record.summary["explainers"]
    assert "[red]mine[/red]" in printed(remade(record, summary=record.summary | {"explainers": explainers}))


def test_agreement_rows_have_the_shape_of_the_papers_table(record: Record) -> None:
    grid = agreement_rows(record, "agreement")
    found = [f for f in record.findings if f.audit == "agreement"]
    assert len(grid.rows) == len(found) == 15 * 3
    for row, f in zip(grid.rows, found, strict=True):
        assert f.significant is not None
        spread = f"{f.mean:.3f} ± {f.std:.3f}".replace("-", "−")
        span = f"{f.low:.3f} to {f.high:.3f}".replace("-", "−")
        expected = (f.subject.replace("~", " ~ "), f.group, spread, f"{f.significant:.3f}", span)
        assert row == (*expected, str(f.n), str(f.undefined))


def test_measure_rows_keep_every_finding_of_an_audit(make: Callable[..., Record]) -> None:
    record = make(count=40)
    for audit in ("permutation", "adversary"):
        found = [f for f in record.findings if f.audit == audit]
        grid = measure_rows(record, audit)
        assert [row[3] for row in grid.rows] == [f"{f.mean:.3f} ± {f.std:.3f}" for f in found]
        assert [row[-1] for row in grid.rows] == [f.kind for f in found]
        assert all(len(row) == len(grid.columns) for row in grid.rows)
