"""The tables of a study as Markdown, CSV and a page: every number comes back, every name stays a name."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pytest

from assay.audits import AUDITS
from assay.document import Cell as Marked
from assay.document import Words
from assay.document import plain as said
from assay.report.html import render as rendered
from assay.report.sections import MOST
from assay.stories import story_of
from assay.study import results as words
from assay.study.results import Answer, Cell, Column, Difference, Missing, Over, Row, Study, places
from assay.study.study_page import answers, differences, document, separated
from assay.study.study_page import as_markdown as markdown
from assay.study.study_panels import apart, left
from assay.study.study_panels import study_panels as panels
from tests.report.parsed import Page
from tests.report.parsed import words as plain

HOSTILE = '<script>alert("x")</script> | \u202eesrever\u202c & "quoted"'


def render(study: Study) -> str:
    return rendered(document(study))


def judged(gap: float, p: float, over: Over = "seeds") -> Difference:
    return Difference(gap, gap - 0.1, gap + 0.1, p / 4, p, over, 3 if over == "seeds" else 40)


def reached(mean: float, difference: Difference | None = None, seeds: int = 3) -> Cell:
    over: Over = "seeds" if seeds > 1 else "texts"
    return Cell(mean, mean - 0.05, mean + 0.05, over, seeds, 40 * seeds, difference)


COLUMNS = (
    Column("sst", "lstm", "", 3, 3),
    Column("sst", "average", "", 3, 1, 1),
    Column("news", "lstm", "", 3, 0, 3),
    Column("news", "average", "", 3, 0),
)
ROWS = (
    Row("attention", (reached(0.712, judged(0.4, 0.004)), reached(0.5, judged(0.2, 0.03, "texts"), 1), None, None)),
    Row(
        "gradient",
        (reached(0.1234567890123, judged(-0.2, 0.01)), reached(0.31, judged(0.01, 0.6, "texts"), 1), None, None),
    ),
    Row("rollout", (reached(0.35, judged(0.04, 0.2)), None, None, None)),
    Row("random", (reached(0.31), reached(0.3, seeds=1), None, None)),
)
LACKING = (Missing("news · lstm · seed 0 · audits", "failed"), Missing("news · average · seed 0 · audits", "not run"))
ANSWER = Answer(
    "Do they find it?",
    "truth",
    "auprc",
    True,
    "random",
    COLUMNS,
    ROWS,
    ("exact",),
    LACKING,
    ("sst · average: rollout is left out: it has no layers.",),
)
STUDY = Study("grid", ("sst", "news"), ("lstm", "average"), (0, 1, 2), 12, 4, (ANSWER,), LACKING)


@pytest.fixture(scope="module")
def text() -> str:
    return render(STUDY)


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    return Page(text)


def as_cell(given: Words | Marked) -> Marked:
    return given if isinstance(given, Marked) else Marked(given)


# what is said


def test_what_holds_is_marked_by_its_way_and_by_what_it_rests_on() -> None:
    rows = [list(map(as_cell, row.cells)) for row in answers(ANSWER).rows]
    marks = {said(name.text): [said(each.mark if each.notes else each.text) for each in cells] for name, *cells in rows}
    assert marks == {
        "attention": ["▲ better", "△ better", "failed", "not run"],
        "gradient": ["▼ worse", "", "failed", "not run"],
        "rollout": ["", "no number", "failed", "not run"],
        "random": ["", "", "failed", "not run"],
    }


@pytest.mark.parametrize(
    ("way", "expected"), [(True, ("better", "worse")), (False, ("worse", "better")), (None, ("above", "below"))]
)
def test_which_way_is_better_is_the_measures(way: bool | None, expected: tuple[str, str]) -> None:
    turned = replace(ANSWER, rises=way)
    assert (words.way(turned, True), words.way(turned, False)) == expected


@pytest.mark.parametrize(
    ("audit", "measure", "better"),
    [
        ("erasure", "comprehensiveness@0.2", "high"),
        ("erasure", "sufficiency", "low"),
        ("erasure", "sufficiency_gain", "high"),  # less than chance loses, and so a gain
        ("agreement", "tau", None),
        ("deception", "mass_gain", None),
        ("guide", "right_gain", "high"),
    ],
)
def test_the_directions_of_measures(audit: str, measure: str, better: str | None) -> None:
    assert story_of(AUDITS[audit]).measure(measure).better == better


def test_a_table_is_told_in_a_sentence() -> None:
    assert words.sentence(ANSWER) == (
        "3 of 5 cells differ from random after correction: 2 better and 1 worse. 1 of them over texts only."
    )
    calm = replace(ANSWER, rows=(Row("rollout", ROWS[2].cells), ROWS[3]))
    assert words.sentence(calm) == "None of 1 cell differs from random after correction."
    assert "no row to test" in words.sentence(replace(ANSWER, against=None, rows=ROWS[3:]))
    assert words.sentence(replace(ANSWER, rows=())) == "No finished trial has such a number."
    assert words.sentence(replace(ANSWER, rows=(), columns=COLUMNS[2:])) == "None of its trials is finished yet."


def test_the_headline_counts_what_holds_in_all_tables() -> None:
    assert words.headline(STUDY) == "3 of 5 differences hold after correction"
    assert words.headline(replace(STUDY, answers=(ANSWER, ANSWER))) == "6 of 10 differences hold after correction"
    assert words.headline(replace(STUDY, done=0)) == "No trial of this study is finished yet"


def test_caveats_say_what_the_numbers_do_not_know() -> None:
    told = words.caveats(STUDY)
    assert any("2 of 12 trials have no result" in each for each in told)
    assert any("3 of 7 cells rest on one seed" in each for each in told)
    assert any("2 differences were tested over texts" in each for each in told)
    rows = tuple(replace(row, cells=(row.cells[0], *[None] * 3)) for row in ROWS)
    assert words.caveats(replace(STUDY, answers=(replace(ANSWER, rows=rows),), missing=())) == []


def test_numbers_show_three_figures_of_the_largest_mean() -> None:
    def largest(mean: float) -> Answer:
        return replace(ANSWER, rows=(Row("one", (reached(mean), reached(mean / 50), None, None)),))

    assert [places(largest(mean)) for mean in (123.0, 1.5, 0.73, -0.051, 0.0042, 1e-9, 0.0)] == [2, 2, 3, 4, 5, 6, 3]


# Markdown and CSV


def test_markdown_holds_every_cell_and_what_is_missing() -> None:
    told = markdown(ANSWER)
    assert (
        "| attention | 0.712 (0.662 to 0.762; 3 seeds) ▲ better | 0.500 (0.450 to 0.550; 1 of 3 seeds, 40 texts) △"
        in told
    )
    assert (
        "- news · lstm · seed 0 · audits: failed" in told and "- news · average · seed 0 · audits: not run yet" in told
    )
    assert "rollout is left out: it has no layers." in told
    lines = [line for line in told.splitlines() if line.startswith("|")]
    assert len(lines) == (2 + len(ROWS)) + (2 + len(ANSWER.differences))
    assert len({line.replace("\\|", "").count("|") for line in lines[: 2 + len(ROWS)]}) == 1


def test_csv_gives_every_number_back() -> None:
    rows = list(csv.DictReader(io.StringIO(separated(ANSWER))))
    assert len(rows) == len(ROWS) * len(COLUMNS)
    cells = [cell for row in ROWS for cell in row.cells]
    for row, cell in zip(rows, cells, strict=True):
        if cell is None:
            assert row["mean"] == "" and row["missing"] in ("failed", "not run", "no number")
            continue
        assert float(row["mean"]) == pytest.approx(cell.mean, rel=1e-9) and row["missing"] == ""
        assert (int(row["seeds"]), int(row["seeds_planned"]), int(row["texts"])) == (cell.seeds, 3, cell.texts)
        if cell.difference is None:
            assert (row["p"], row["against"], row["significant"]) == ("", "", "")
        else:
            numbers = [float(row[key]) for key in ("difference", "p", "p_corrected")]
            expected = [cell.difference.gap, cell.difference.p, cell.difference.adjusted]
            assert numbers == pytest.approx(expected, rel=1e-9)
            assert row["significant"] == ("yes" if cell.difference.adjusted <= 0.05 else "no")


def test_differences_hold_from_five_in_a_hundred_down() -> None:
    assert [row[-1] for row in differences(ANSWER)] == ["▲ better", "△ better", "▼ worse", "no", "no"]
    assert judged(1.0, 0.05).sure and not judged(1.0, 0.0501).sure


# names from anywhere


def hostile(name: str) -> Study:
    columns = (Column(name, name, name, 3, 3),)
    rows = (Row(name, (reached(0.5, judged(0.2, 0.01)),)), Row("other", (reached(0.3),)))
    answer = Answer(name, name, name, None, name, columns, rows, (name,), (Missing(name, "failed"),), (name,))
    return Study(name, (name,), (name,), (0,), 1, 1, (answer,), (Missing(name, "failed"),))


def test_names_do_nothing_on_the_page() -> None:
    text = render(hostile(HOSTILE))
    assert "<script" not in text and "\u202e" not in text
    page = Page(text)
    assert any('<script>alert("x")</script>' in told for told in page.texts("th"))


def test_names_do_nothing_in_markdown() -> None:
    told = markdown(hostile(HOSTILE).answers[0])
    assert "\\<script>" in told and "\u202e" not in told
    assert not any("<" in part and not part.endswith("\\") for part in told.split("<script>")[:-1])
    rows = [line for line in told.splitlines() if line.startswith("|")][:4]
    assert {line.replace("\\|", "").count("|") for line in rows} == {3}


@pytest.mark.parametrize("name", ["=1+1", "@SUM(A1)", "-2", "+3", 'a "quoted", name\nof two lines'])
def test_names_do_nothing_in_a_spreadsheet(name: str) -> None:
    (first, _) = list(csv.DictReader(io.StringIO(separated(hostile(name).answers[0]))))
    assert not first["subject"].startswith(("=", "+", "-", "@")) and "\n" not in first["subject"]
    assert first["subject"].lstrip("'") == name.replace("\n", " ")


# the page


def test_the_page_is_whole_and_asks_for_nothing(text: str, page: Page) -> None:
    assert "<script" not in text and "default-src 'none'" in text
    assert not any(value.startswith("http") for _, given, _ in page.elements for key, value in given.items()
                   if value and key in ("src", "href"))  # fmt: skip
    names = [given["id"] for _, given, _ in page.elements if given.get("id")]
    assert len(set(names)) == len(names)
    targets = {value[1:] for _, given, _ in page.elements if (value := given.get("href") or "").startswith("#")}
    assert targets <= set(names)


def test_the_page_shows_every_cell_and_marks_what_holds(page: Page) -> None:
    cells = [plain(each) for each in page.texts("td", "holds")]
    assert [each.split("0.")[0] + each.split()[1] for each in cells] == ["▲", "△", "▼"]
    assert sum("no number" in each for each in page.texts("td", "none")) == 1
    assert sum(each == "failed" for each in page.texts("td", "none")) == len(ROWS)


def test_the_page_names_what_is_missing_and_why(page: Page) -> None:
    told = plain(" ".join(page.texts("li")))
    assert "news · lstm · seed 0 · audits: failed; assay study status tells why." in told
    assert "sst · average: rollout is left out: it has no layers." in told


def test_the_same_study_gives_the_same_page(text: str) -> None:
    assert render(STUDY) == text


def test_a_page_without_answers_can_be_written() -> None:
    assert "No trial of this study is finished yet" in render(replace(STUDY, done=0, answers=()))


# the figures


def rows(figure: object) -> list[dict[str, object]]:
    """What a figure draws."""
    (held,) = json.loads(figure.to_json())["datasets"].values()  # type: ignore[attr-defined]
    return list(held)


def test_a_panel_for_each_corpus_with_numbers_and_a_dot_for_each_cell() -> None:
    ((corpus, figure),) = panels(ANSWER)
    assert corpus == "sst"
    drawn = {(each["name"], each["model"]): (each["mean"], each["state"]) for each in rows(figure)}
    assert len(drawn) == len(ANSWER.cells)
    assert drawn["attention", "lstm"] == (0.712, "holds")
    assert drawn["rollout", "lstm"] == (0.35, "open")
    assert drawn["random", "lstm"] == (0.31, "holds")  # it is what others are tested against


def test_of_many_rows_the_one_that_is_tested_against_is_drawn() -> None:
    many = tuple(Row(f"explainer {place}", ROWS[0].cells) for place in range(MOST + 5))
    crowded = replace(ANSWER, rows=(*many, ROWS[3]))
    ((_, figure),) = panels(crowded)
    names = list(dict.fromkeys(str(each["name"]) for each in rows(figure)))
    assert len(names) == MOST and names[-1] == "random"
    assert left(crowded) == 6


def test_long_names_are_cut_and_stay_apart() -> None:
    long = tuple(Row(f"integrated_gradients(steps={place}, baseline=mask)", ROWS[0].cells) for place in range(4))
    ((_, figure),) = panels(replace(ANSWER, rows=long))
    assert len({each["name"] for each in rows(figure)}) == 4


def test_more_models_than_colours_make_more_panels() -> None:
    columns = tuple(Column("sst", f"model {place}", "", 3, 3) for place in range(8))
    wide = replace(ANSWER, columns=columns, rows=(Row("attention", (reached(0.5),) * 8),))
    drawn = [{each["model"] for each in rows(figure)} for _, figure in panels(wide)]
    assert [len(each) for each in drawn] == [6, 2]


def test_panels_share_a_scale_unless_one_would_be_a_spot() -> None:
    def two(first: float, second: float) -> Answer:
        columns = (COLUMNS[0], replace(COLUMNS[0], corpus="news"))
        ends = [(0.0, first), (0.0, second)]
        lines = [Row(name, tuple(reached(each[place]) for each in ends)) for place, name in enumerate(("low", "high"))]
        return replace(ANSWER, columns=columns, rows=tuple(lines), against=None)

    assert not apart(two(1.0, 0.6)) and apart(two(10.0, 0.3))
    domains = [
        json.loads(figure.to_json())["layer"][0]["encoding"]["x"]["scale"]["domain"]
        for _, figure in panels(two(1.0, 0.6))
    ]
    assert domains[0] == domains[1]


def test_an_interval_over_two_seeds_does_not_stretch_the_scale() -> None:
    wide = Cell(0.5, -30.0, 31.0, "seeds", 2, 80)
    ((_, figure),) = panels(
        replace(ANSWER, columns=COLUMNS[:1], rows=(Row("one", (wide,)), Row("two", (reached(0.7),))))
    )
    low, high = json.loads(figure.to_json())["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert 0.4 < low < 0.5 and 0.7 < high < 0.8
