"""How far a study is, how long the rest takes, and whether two came out the same."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pytest

from assay.errors import AssayError
from assay.records import Finding, Record, finding_rows
from assay.study.studying import compared, seconds_left, span, untrained, work
from assay.study.trials import Folder, TrialStatus, counted, files_of, model_folder, reasons, trial_statuses
from tests.study import small


def test_every_trial_is_done_failed_under_way_or_missing(tmp_path):
    folder, trials = Folder(tmp_path), [small.trial(seed) for seed in range(5)]
    folder.keep(trials[0], small.files(), {"seconds": 2.5})
    folder.fail(trials[1], "so it was")
    folder.fail(trials[2], "but it is tried again")
    locks = [folder.claim(trials[number]) for number in (2, 3)]
    found = trial_statuses([*trials, trials[0]], folder)
    assert [each.state for each in found] == ["done", "failed", "under way", "under way", "missing"]
    assert [each.reason for each in found] == [None, "so it was", None, None, None]
    assert found[0].seconds == 2.5
    assert counted(found) == {"done": 1, "failed": 1, "under way": 2, "missing": 1}
    assert reasons(found) == {"so it was": [trials[1].title]}
    for lock in locks:
        lock.release()
    assert [each.state for each in trial_statuses(trials, folder)] == ["done", "failed", "failed", "missing", "missing"]


def grid():
    return small.grid(
        corpora=["planted:keyword", "planted:negation"],
        models={"lstm": {}, "average": {"encoder": "average"}},
        audits={"few": {"limit": 10, "explainers": ["random"]}, "many": {"explainers": ["random", "attention"]}},
        seeds=[0, 1],
    )


def test_a_trial_is_judged_by_those_that_are_most_like_it():
    def standing(corpus: str, kind: str, asked: str, seed: int, seconds: float | None) -> TrialStatus:
        (trial,) = [
            t
            for t in grid().trials
            if (t.corpus.name, t.kind.name, t.audit_set.name, t.seed) == (f"planted:{corpus}", kind, asked, seed)
        ]
        return TrialStatus(trial, "missing" if seconds is None else "done", seconds=seconds)

    known = [
        standing("keyword", "lstm", "few", 0, 1.0),
        standing("negation", "lstm", "few", 0, 4.0),
        standing("negation", "average", "few", 0, 100.0),
    ]
    for wanted, seconds in (
        (standing("keyword", "lstm", "few", 1, None), 1.0),  # the same but for the seed
        (standing("keyword", "average", "few", 1, None), 100.0),  # the same model and audits
        (standing("keyword", "average", "many", 1, None), 35.0),  # anything
    ):
        assert seconds_left([*known, wanted]) == pytest.approx(seconds)
    asked_alike = standing("keyword", "average", "few", 1, None)
    assert seconds_left([*known[:2], asked_alike]) == pytest.approx(2.5)
    both = [*known, standing("keyword", "lstm", "few", 1, None), standing("negation", "lstm", "few", 1, None)]
    assert seconds_left(both) == pytest.approx(5.0)
    assert seconds_left(both, jobs=2) == pytest.approx(4.0)  # not 2.5: the longer one is made by one process


def test_where_nothing_is_done_there_is_no_number_but_what_there_is_to_do(tmp_path):
    found = [TrialStatus(trial, "missing") for trial in grid().trials]
    assert seconds_left(found) is None
    assert seconds_left([TrialStatus(trial, "failed", "why") for trial in grid().trials]) == 0.0
    assert work(grid().trials) == ["8 × (10 test texts × 1 explainer)", "8 × (all test texts × 2 explainers)"]
    assert untrained(grid().trials, tmp_path) == 8
    folder = model_folder(tmp_path, grid().trials[0])
    folder.mkdir(parents=True)
    assert untrained(grid().trials, tmp_path) == 8
    (folder / "model.json").write_text("{}")
    assert untrained(grid().trials, tmp_path) == 7


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.2, "about 1 second"),
        (60.0, "about 60 seconds"),
        (150.0, "about 2.5 minutes"),
        (1200.0, "about 20 minutes"),
        (3600.0, "about 60 minutes"),
        (9000.0, "about 2.5 hours"),
        (864000.0, "about 10 days"),
    ],
)
def test_times_are_said_as_one_would(seconds, said):
    assert span(seconds) == said


def store_outcome(place: Path, seed: int, mean: float, measures: tuple[str, ...] = ("tau", "flip")) -> None:
    """A finished trial with some numbers."""
    findings = [Finding("erasure", "attention", name, "all", mean, 0.0, 1.0, 0.5, 3) for name in measures]
    summary = {"corpus": {}, "explainers": [], "audits": [], "findings": finding_rows(findings)}
    record = Record(summary, pa.table({"audit": ["erasure"]}), pa.table({"example": [0]}))
    Folder(place).keep(small.trial(seed), files_of(record, place / "scratch" / str(seed)), {"seconds": seed})


def test_two_studies_with_the_same_numbers_are_found_to_be_the_same(tmp_path):
    for name in ("one", "two"):
        for seed in (0, 1):
            store_outcome(tmp_path / name, seed, seed / 3)
    store_outcome(tmp_path / "one", 2, 0.5)
    result = compared(tmp_path / "one", tmp_path / "two")
    assert (result.shared, result.only_first, result.only_second) == (2, 1, 0)
    assert result.identical and result.largest is None
    assert result.findings == 2 * 2 * 8  # trials, measures, numbers of a finding


def test_the_largest_difference_of_two_studies_is_found_with_its_place(tmp_path):
    for seed, mean in enumerate((0.5, math.nextafter(0.5, 1), 0.25)):
        store_outcome(tmp_path / "one", seed, 0.5)
        store_outcome(tmp_path / "two", seed, mean)
    result = compared(tmp_path / "one", tmp_path / "two")
    assert not result.identical
    assert result.differing == 2  # by the last bit, too
    assert result.largest.where == f"{small.trial(2).title} · erasure · attention · tau · all · mean"
    assert (result.largest.first, result.largest.second, result.largest.size) == (0.5, 0.25, 0.25)


def test_a_number_that_one_study_lacks_is_the_largest_difference(tmp_path):
    store_outcome(tmp_path / "one", 0, 0.5)
    store_outcome(tmp_path / "two", 0, 0.5, ("tau",))
    result = compared(tmp_path / "one", tmp_path / "two")
    assert result.largest.second is None and result.largest.size == float("inf")
    assert "flip" in result.largest.where


def test_studies_that_share_nothing_are_not_the_same(tmp_path):
    store_outcome(tmp_path / "one", 0, 0.5)
    store_outcome(tmp_path / "two", 1, 0.5)
    assert not compared(tmp_path / "one", tmp_path / "two").identical
    with pytest.raises(AssayError, match="is no folder of a study"):
        compared(tmp_path / "one", tmp_path)
