"""The files of a study: whole, the same again, and with nothing in them but numbers."""

from __future__ import annotations

import csv
import itertools
import json
import zlib
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from assay.study.plans import StudyPlan
from assay.study.studying import write
from assay.study.trials import Folder
from tests.study.invented import keep, plan, record

GIVEN = {
    "seeds": [0, 1],
    "corpora": ["planted:keyword"],
    "audits": {"explainers": ["attention", "random"], "audits": ["truth", "agreement"]},
}
PLAN = plan(**GIVEN)


def filled(place: Path, planned: StudyPlan = PLAN, backwards: bool = False) -> Folder:
    """A folder with results of all trials but the last, which depend on the trial alone."""
    folder = Folder(place / "study")
    trials = list(planned.trials[:-1])
    for number, trial in enumerate(reversed(trials) if backwards else trials):
        draw = np.random.default_rng(zlib.crc32(trial.title.encode()))
        truth = {"auprc:attention": draw.beta(5, 2, 20), "auprc:random": draw.beta(2, 5, 20)}
        agreement = {"tau:attention~random": draw.uniform(-0.3, 0.4, 20)}
        made = record({"truth": truth, "agreement": agreement}, seconds=number + 0.25, created=f"day {number}")
        keep(folder, trial, made, place / "scratch")
    return folder


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Folder, list[Path]]:
    folder = filled(tmp_path_factory.mktemp("written"))
    return folder, write(PLAN, folder)


def test_a_table_for_each_question_all_findings_and_a_page(written: tuple[Folder, list[Path]]) -> None:
    folder, paths = written
    assert [str(path.relative_to(folder.place)) for path in paths] == [
        "tables/01-model-accuracy.md",
        "tables/01-model-accuracy.csv",
        "tables/02-truth-auprc.md",
        "tables/02-truth-auprc.csv",
        "tables/03-agreement-tau.md",
        "tables/03-agreement-tau.csv",
        "findings.parquet",
        "study.html",
    ]
    assert all(path.is_file() for path in paths)


def test_the_same_trials_give_the_same_bytes_whoever_made_them_and_when(
    written: tuple[Folder, list[Path]], tmp_path: Path
) -> None:
    folder, paths = written
    before = [path.read_bytes() for path in paths]
    assert [path.read_bytes() for path in write(PLAN, folder)] == before
    other = filled(tmp_path, backwards=True)  # in another order, so that seconds and dates are others
    assert [path.read_bytes() for path in write(PLAN, other)] == before


def test_what_is_missing_stands_in_every_form(written: tuple[Folder, list[Path]]) -> None:
    _, paths = written
    missing = PLAN.trials[-1]
    for path in paths:
        if path.suffix in (".md", ".html"):
            assert missing.title in path.read_text(encoding="utf-8"), path.name
    with paths[3].open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["subject"] == "attention"]
    assert [(row["seeds"], row["seeds_planned"]) for row in rows] == [("2", "2"), ("1", "2")]


def test_all_findings_are_in_one_long_table(written: tuple[Folder, list[Path]]) -> None:
    folder, paths = written
    rows = pq.read_table(paths[-2]).to_pylist()
    expected = []
    for trial in PLAN.trials[:-1]:
        for found in folder.record(trial).findings:
            names = (trial.corpus.title, trial.kind.name, trial.seed, found.audit, found.subject, found.measure)
            expected.append((*names, found.mean, found.n))
        expected.append((*names[:3], "model", "model", "accuracy", 0.8, 20))
    keys = ("corpus", "model", "seed", "audit", "subject", "measure", "mean", "n")
    assert [tuple(row[key] for key in keys) for row in rows] == expected
    assert len(rows) == 3 * (3 + 1)


def test_tables_of_questions_that_are_asked_no_more_go_and_other_files_stay(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    write(PLAN, folder)
    (folder.place / "tables" / "my notes.md").write_text("mine")
    write(plan(**GIVEN, questions=[{"audit": "agreement", "measure": "tau", "title": "Alike?"}]), folder)
    names = sorted(path.name for path in (folder.place / "tables").iterdir())
    assert [name for name in names if "model" not in name] == [
        "02-agreement-tau.csv",
        "02-agreement-tau.md",
        "my notes.md",
    ]


def test_nothing_of_when_and_how_long_is_in_the_files(written: tuple[Folder, list[Path]]) -> None:
    folder, paths = written
    marks = [json.loads((folder.trial(trial) / "done.json").read_text()) for trial in PLAN.trials[:-1]]
    told = {str(mark["created"]) for mark in marks} | {str(folder.place), "2.5 s"}
    for path, text in itertools.product(paths, told):
        assert text.encode() not in path.read_bytes()


def test_a_study_that_has_not_begun_has_its_tables_too(tmp_path: Path) -> None:
    paths = write(PLAN, Folder(tmp_path / "study"))
    assert "No trial of this study is finished yet" in paths[-1].read_text(encoding="utf-8")
    assert pq.read_table(paths[-2]).num_rows == 0
    assert all(trial.title in paths[0].read_text(encoding="utf-8") for trial in PLAN.trials)
