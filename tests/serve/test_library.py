"""Finding finished audits: what is there, what is damaged, and what lies elsewhere."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay.errors import AssayError
from assay.grading.grade import standing, verdicts
from assay.records import EXAMPLES, INSTANCES, SUMMARY, Record
from assay.report.outcome import outcome
from assay.serve import library as module
from assay.serve import library as reading
from assay.serve.library import Library, plain
from tests.report.synthetic import FAITHFUL, changed, synthetic_record


@pytest.fixture(scope="module")
def record() -> Record:
    return synthetic_record(count=30)


def told(record: Record, **values: Any) -> Record:
    return replace(record, summary=record.summary | values)


@pytest.mark.parametrize("depth", range(6))
def test_runs_are_found_down_to_the_fourth_folder(record: Record, tmp_path: Path, depth: int) -> None:
    folder = tmp_path.joinpath("root", *"abcdef"[:depth])
    record.write(folder)
    found = Library([tmp_path / "root"]).runs()
    assert [run.folder for run in found] == ([folder] if depth <= 4 else [])
    assert [run.name for run in found] == (["/".join("abcdef"[:depth]) or "root"] if depth <= 4 else [])


def test_a_run_is_told_in_short(record: Record, tmp_path: Path) -> None:
    record.write(tmp_path / "one")
    (run,) = Library([tmp_path]).runs()
    assert (run.corpus, run.audited, run.accuracy) == ("planted:negation", 30, 0.842)
    assert run.model.startswith("BiLSTM")
    assert run.created == record.summary["created"]
    assert run.explainers == tuple(record.summary["explainers"])
    assert run.audits == ("deciding", "agreement", "permutation", "adversary")


KINDS: dict[str, dict[str, Any]] = {
    "usual": {},
    "faithful": {"count": 40, "audits": FAITHFUL},
    "no null": {"explainers": ("attention", "gradient"), "audits": ("agreement", "truth")},
    "erased": {"count": 40, "audits": ("agreement", "adversary", "single_weight", "minimal_set")},
    "no attention": {"explainers": ("gradient", "leave_one_out"), "audits": ("agreement",)},
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_verdict_is_that_of_the_whole_record(kind: str, tmp_path: Path) -> None:
    made = synthetic_record(**{"count": 30, **KINDS[kind]})
    made.write(tmp_path / "run")
    (run,) = Library([tmp_path]).runs()
    assert run.headline == plain(outcome(made).headline, 10**6)
    assert run.grade == standing(made)
    assert verdicts(run.judged()) == verdicts(made)
    assert run.read().examples.equals(made.examples)


def test_a_model_near_chance_is_noticed_without_reading_all(record: Record, tmp_path: Path) -> None:
    model = record.summary["model"] | {"test": {"accuracy": 0.5, "auc": 0.5}}
    told(record, model=model).write(tmp_path / "run")
    (run,) = Library([tmp_path]).runs()
    assert "hardly better than chance" in run.headline


def test_a_run_is_read_once_for_each_state_of_its_files(
    record: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        record.write(tmp_path / name)
    reads = []
    read = module._run
    monkeypatch.setattr(module, "_run", lambda folder, *rest: reads.append(folder.name) or read(folder, *rest))
    library = Library([tmp_path])
    before = library.look()
    assert library.look() == before
    assert library.run(before.runs[0].id) == before.runs[0]
    assert sorted(reads) == ["a", "b", "c"]
    other = changed(record, "agreement", "attention~leave_one_out", "tau", mean=0.99, low=0.98, high=1.0)
    other.write(tmp_path / "b")
    after = {run.name: run for run in library.runs()}
    assert sorted(reads) == ["a", "b", "b", "c"]
    (old,) = (run for run in before.runs if run.name == "b")
    assert after["b"].id == old.id
    assert after["b"].stamp != old.stamp
    assert library.run(old.id) == after["b"]


def test_what_came_and_went_is_noticed_by_its_id(record: Record, tmp_path: Path) -> None:
    library = Library([tmp_path])
    assert library.runs() == []
    record.write(tmp_path / "late")
    (id,) = (run.id for run in Library([tmp_path]).runs())
    found = library.run(id)
    assert found is not None and found.name == "late"
    shutil.rmtree(tmp_path / "late")
    assert library.run(id) is None


def test_the_newest_comes_first(record: Record, tmp_path: Path) -> None:
    for name, day in (("a", "2026-01-05"), ("b", "2026-03-01"), ("c", "2025-12-31")):
        told(record, created=f"{day}T00:00:00+00:00").write(tmp_path / name)
    assert [run.name for run in Library([tmp_path]).runs()] == ["b", "a", "c"]


def test_several_folders_are_told_apart_and_none_counts_twice(record: Record, tmp_path: Path) -> None:
    for place in ("x/runs", "y/runs"):
        record.write(tmp_path / place / "first")
    roots = [tmp_path / "x/runs", tmp_path / "y/runs", tmp_path / "x/runs/first", tmp_path / "absent"]
    names = sorted(run.name for run in Library(roots).runs())
    assert names == ["runs/first", "runs/first (2)"]


DAMAGES = {
    "no JSON": (lambda folder: (folder / SUMMARY).write_text("{"), "not JSON"),
    "deep JSON": (lambda folder: (folder / SUMMARY).write_text("[" * 10**5), "not JSON"),
    "no text": (lambda folder: (folder / SUMMARY).write_bytes(b"\xff\xfe\x00"), "not JSON"),
    "a list": (lambda folder: (folder / SUMMARY).write_text("[]"), "lacks corpus, explainers, audits, findings"),
    "a number": (lambda folder: (folder / SUMMARY).write_text("7"), "does not hold"),
    "a folder": (lambda folder: ((folder / SUMMARY).unlink(), (folder / SUMMARY).mkdir()), "summary.json is missing"),
    "no rows": (lambda folder: (folder / INSTANCES).unlink(), "instances.parquet is missing"),
    "no texts": (lambda folder: (folder / EXAMPLES).unlink(), "examples.parquet is missing"),
    "cut rows": (lambda folder: os.truncate(folder / INSTANCES, 100), "instances.parquet is damaged"),
    "no parquet": (lambda folder: (folder / EXAMPLES).write_bytes(b"PAR1" * 9), "examples.parquet is damaged"),
}
WRONG: dict[str, dict[str, Any]] = {
    "corpus is a text": {"corpus": "sst"},
    "corpus has no name": {"corpus": {}},
    "findings of another kind": {"findings": [{"audit": "x", "evil": 1}]},
    "findings are no list": {"findings": 3},
    "audits are a list": {"audits": ["agreement"]},
    "model is a text": {"model": "bert"},
    "a number is a text": {"corpus": {"name": "x", "classes": [], "audited": "many"}},
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_folders_are_listed_with_the_reason(record: Record, tmp_path: Path, damage: str) -> None:
    for name in ("good", "bad"):
        record.write(tmp_path / name)
    harm, reason = DAMAGES[damage]
    harm(tmp_path / "bad")
    listing = Library([tmp_path]).look()
    assert [run.name for run in listing.runs] == ["good"]
    assert [folder.name for folder in listing.damaged] == ["bad"]
    assert reason in listing.damaged[0].reason


@pytest.mark.parametrize("wrong", WRONG)
def test_summaries_of_another_shape_do_not_hide_the_others(record: Record, tmp_path: Path, wrong: str) -> None:
    record.write(tmp_path / "good")
    told(record, **WRONG[wrong]).write(tmp_path / "bad")
    listing = Library([tmp_path]).look()
    assert [run.name for run in listing.runs] == ["good"]
    assert [folder.name for folder in listing.damaged] == ["bad"]
    assert len(listing.damaged[0].reason) < 200


def test_a_summary_that_is_too_large_is_not_read(
    record: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record.write(tmp_path / "run")
    monkeypatch.setattr(reading, "LARGEST", 100)
    (damaged,) = Library([tmp_path]).look().damaged
    assert "larger than" in damaged.reason


def test_texts_of_a_summary_that_are_far_too_long_are_cut(record: Record, tmp_path: Path) -> None:
    endless = "n" * 10**5
    told(record, corpus=record.summary["corpus"] | {"name": "films", "classes": [endless, "b"]}).write(tmp_path / "run")
    (run,) = Library([tmp_path]).runs()
    for made in (run.read(), run.judged()):
        assert made.summary["corpus"]["classes"] == [endless[: reading.ENOUGH] + "…", "b"]
        assert made.summary["findings"] == record.summary["findings"]


def test_links_are_not_followed_out_of_the_folder(record: Record, tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    record.write(outside / "secret")
    record.write(inside / "own")
    (inside / "link").symlink_to(outside / "secret")
    (inside / "loop").symlink_to(inside)
    for name in (SUMMARY, INSTANCES, EXAMPLES):
        half = inside / f"half {name}"
        record.write(half)
        (half / name).unlink()
        (half / name).symlink_to(outside / "secret" / name)
    listing = Library([inside]).look()
    assert [run.name for run in listing.runs] == ["own"]
    assert len(listing.damaged) == 3
    assert all("leads out of the folder" in folder.reason for folder in listing.damaged)


def test_a_file_that_becomes_a_link_out_is_not_handed_out(record: Record, tmp_path: Path) -> None:
    record.write(tmp_path / "root" / "run")
    (run,) = Library([tmp_path / "root"]).runs()
    assert run.file(SUMMARY) == tmp_path / "root" / "run" / SUMMARY
    secret = tmp_path / "secret"
    secret.write_text("secret")
    run.file(SUMMARY).unlink()
    (run.folder / SUMMARY).symlink_to(secret)
    for take in (lambda: run.file(SUMMARY), run.read, run.judged):
        with pytest.raises(AssayError, match="leads out"):
            take()
    with pytest.raises(ValueError, match="not in"):
        run.file("../secret")


def test_a_link_within_the_folder_is_fine(record: Record, tmp_path: Path) -> None:
    record.write(tmp_path / "run")
    (tmp_path / "run" / EXAMPLES).rename(tmp_path / "kept.parquet")
    (tmp_path / "run" / EXAMPLES).symlink_to(tmp_path / "kept.parquet")
    assert [run.name for run in Library([tmp_path]).runs()] == ["run"]


def test_hidden_folders_are_left_alone_and_very_many_are_cut(
    record: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (".hidden", "a", "b", "c"):
        record.write(tmp_path / name)
    assert sorted(run.name for run in Library([tmp_path]).runs()) == ["a", "b", "c"]
    monkeypatch.setattr(module, "FOLDERS", 3)
    listing = Library([tmp_path]).look()
    assert sorted(run.name for run in listing.runs) == ["a", "b"]
    assert listing.cut


def test_long_names_are_cut_and_still_differ(record: Record, tmp_path: Path) -> None:
    for ending in "xy":
        record.write(tmp_path / ("n" * 100) / ("m" * 100 + ending))
    names = sorted(run.name for run in Library([tmp_path]).runs())
    assert len(set(names)) == 2
    assert all(len(name) < 180 for name in names)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb\tc", "a b c"),
        ("a\x00b\x1bc\x9bd", "a�b�c�d"),
        ("\udcff", "�"),
        ("سلام\u200cدنیا", "سلام\u200cدنیا"),
        (7, "7"),
        ("x" * 200, "x" * 160 + "…"),
    ],
)
def test_texts_are_made_to_fit_a_line(text: object, shown: str) -> None:
    assert plain(text) == shown
