"""What came of a plan is put beside it: findings, tables, figures and a page, with what holds marked in the tables."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from assay.records import read_table, write_table
from assay.study.plans import read
from assay.study.studying import run
from assay.study.trials import Folder
from studies.planned import chosen, plans, publish, table
from tests.study.small import here, planned

MANY = '["attention", "gradient", "input_x_gradient", "leave_one_out", "random"]'
ASKED = '[[questions]]\naudit = "erasure"\nmeasure = "comprehensiveness"\ntitle = "What moves?"\n'


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("planned")
    path = planned(place)
    text = path.read_text().replace('["attention", "random"]', MANY).replace('"agreement"', '"erasure"')
    path.write_text(text + ASKED)
    plan = read(path)
    run(plan.trials, place / "runs", here)
    (place / "README.md").write_text(
        "# A question\n\nOurs.\n\n<!-- made by the command above -->\n<!-- end -->\n\nEnd.\n"
    )
    (place / "results" / "tables").mkdir(parents=True)
    (place / "results" / "tables" / "09-asked-no-more.md").write_text("old")
    publish(plan, place / "runs", place)
    return place


def test_the_page_keeps_its_words_and_has_a_table_for_each_question(published: Path) -> None:
    page = (published / "README.md").read_text(encoding="utf-8")
    assert page.startswith("# A question\n\nOurs.\n") and page.endswith("<!-- end -->\n\nEnd.\n")
    assert "### How often are the models right?" in page and "### What moves?" in page
    assert "|  | model |\n| --- | --- |\n| texts.csv · average |" in page  # one subject: columns are rows
    assert "**texts.csv**\n\n|  | average |\n| --- | --- |\n| attention |" in page  # many: a table for each corpus


def test_what_the_page_links_to_is_there(published: Path) -> None:
    page = (published / "README.md").read_text(encoding="utf-8")
    links = [part.partition(")")[0] for part in page.split("](")[1:]]
    assert len(links) == 4 and all((published / link).exists() for link in links)


def test_the_findings_are_those_of_the_study(published: Path) -> None:
    kept, made = (read_table(place / "findings.parquet") for place in (published / "results", published / "runs"))
    assert kept.equals(made) and kept.num_rows > 0


def test_tables_of_questions_that_are_asked_no_more_are_gone(published: Path) -> None:
    tables = {path.name for path in (published / "results" / "tables").iterdir()}
    assert len(tables) == 4 and "09-asked-no-more.md" not in tables


def test_trials_that_are_gone_stand_as_the_results_have_them(published: Path, tmp_path: Path) -> None:
    """All numbers come again from findings alone; a trial that nobody names is missing."""
    plan = read(published / "small.toml")
    target, runs = tmp_path / "target", tmp_path / "runs"
    shutil.copytree(published, target, ignore=shutil.ignore_patterns("runs"))
    shutil.copytree(published / "runs", runs)
    gone = chosen(plan.trials, ["* seed 1 *"])
    assert 0 < len(gone) < len(plan.trials)
    for trial in gone:
        shutil.rmtree(Folder(runs).trial(trial))
    before = read_table(target / "results" / "findings.parquet")
    publish(plan, runs, target, gone)
    page = (target / "README.md").read_text(encoding="utf-8")
    assert read_table(target / "results" / "findings.parquet").equals(before)
    assert f"{len(gone)} of the {len(plan.trials)} trials stand as an earlier run left them." in page
    publish(plan, runs, target)
    rows = read_table(target / "results" / "findings.parquet").to_pylist()
    assert {row["seed"] for row in rows} == {trial.seed for trial in plan.trials} - {1}


def test_what_the_folder_has_counts_more_than_earlier_results(published: Path, tmp_path: Path) -> None:
    plan = read(published / "small.toml")
    target = tmp_path / "target"
    shutil.copytree(published, target, ignore=shutil.ignore_patterns("runs"))
    table = read_table(target / "results" / "findings.parquet")
    wrong = table.set_column(table.schema.get_field_index("mean"), "mean", pa.array([9.0] * table.num_rows))
    write_table(wrong, target / "results" / "findings.parquet")
    shutil.copytree(published / "runs", tmp_path / "runs")
    publish(plan, tmp_path / "runs", target, plan.trials)
    assert read_table(target / "results" / "findings.parquet").equals(table)


def test_a_table_has_a_column_more_than_heads() -> None:
    assert table(["one"], [("first", ["1"])]) == "|  | one |\n| --- | --- |\n| first | 1 |"


def test_a_study_with_a_command_of_its_own_keeps_its_page() -> None:
    assert {"jain_wallace_grid", "minimal_sets"} <= set(plans())
    assert not {"meister", "planted", "serrano_smith", "wiegreffe_pinter", "word_level"} & set(plans())
