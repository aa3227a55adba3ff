"""Reports and figures on the command line: what is written, what is told, and what each mistake says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from assay import cli
from assay.records import SUMMARY, Record
from assay.report.figures import figures
from assay.report.outcome import outcome
from tests.calling import call
from tests.report.synthetic import synthetic_record

Called = tuple[int, str, str]
Caller = Callable[..., Called]
STARTS = {"html": b"<!doctype html>", "pdf": b"%PDF-", "md": b"# Audit of", "json": b"{\n"}


@pytest.fixture(scope="module")
def made() -> Record:
    return synthetic_record(count=30, audits=("deciding", "permutation"))


@pytest.fixture(autouse=True)
def folder(made: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished audit in the folder `run`, beside which commands are given."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli.console, "width", 100)
    made.write(tmp_path / "run")
    return tmp_path


@pytest.fixture
def assay(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Caller:
    def calling(*words: str) -> Called:
        return call(monkeypatch, capsys, *words)

    return calling


@pytest.mark.parametrize("form", STARTS)
def test_a_report_lies_beside_its_audit_and_the_verdict_is_told(assay: Caller, made: Record, form: str) -> None:
    code, out, told = assay("report", "run", "--format", form)
    assert (code, told) == (0, "")
    path = Path("run") / f"report.{form}"
    assert path.read_bytes().startswith(STARTS[form])
    assert " ".join(outcome(made).headline.split()) in " ".join(out.split())
    assert out.splitlines()[-1] == f"Report: {path}"


@pytest.mark.parametrize("form", STARTS)
def test_the_name_of_the_file_tells_the_form(assay: Caller, form: str) -> None:
    code, out, _ = assay("report", "run", "--out", f"mine.{form.upper()}")
    assert code == 0
    assert out.splitlines()[-1] == f"Report: mine.{form.upper()}"
    assert Path(f"mine.{form.upper()}").read_bytes().startswith(STARTS[form])
    assert not (Path("run") / f"report.{form}").exists()


@pytest.mark.parametrize("form", ["svg", "png", "pdf"])
def test_every_figure_of_an_audit_is_written_and_listed(assay: Caller, made: Record, form: str) -> None:
    code, out, _ = assay("figures", "run", "--format", form, "--out", "deep/down")
    assert code == 0
    wanted = {f"{name}.{form}" for name in figures(made)}
    assert {path.name for path in Path("deep/down").iterdir()} == wanted
    assert len(wanted) == 3
    assert all(name in out for name in wanted)
    assert out.splitlines()[-1] == "Figures: deep/down (3)"
    for path in Path("deep/down").iterdir():
        _check(path)


def _check(path: Path) -> None:
    if path.suffix == ".svg":
        assert ElementTree.parse(path).getroot().tag.endswith("svg")
    else:
        start = b"%PDF-" if path.suffix == ".pdf" else b"\x89PNG\r\n\x1a\n"
        assert path.read_bytes().startswith(start)


def test_figures_lie_beside_their_audit_where_no_place_is_named(assay: Caller) -> None:
    assert assay("figures", "run")[0] == 0
    assert (Path("run") / "figures" / "verdict.svg").is_file()


MISTAKES = {
    "no folder named": (["report"], "Name the folder"),
    "no such folder": (["report", "nowhere"], "no folder nowhere"),
    "a file": (["report", f"run/{SUMMARY}"], "is a file"),
    "not finished": (["report", "unfinished"], "no finished audit"),
    "one of several is bad": (["report", "run", "nowhere"], "nowhere"),
    "no place to write": (["report", "run", "--out", "not/there/report.md"], "no folder not/there"),
    "a folder to write": (["report", "run", "--out", "unfinished"], "is a folder"),
    "two forms": (["report", "run", "--format", "md", "--out", "report.pdf"], "would end in .pdf"),
    "over the audit": (["report", "run", "--out", f"run/{SUMMARY}"], "the audit itself"),
    "unknown form": (["report", "run", "--format", "docx"], "docx"),
    "figures of nowhere": (["figures", "nowhere"], "no folder nowhere"),
    "figures not finished": (["figures", "unfinished"], "no finished audit"),
    "figures into a file": (["figures", "run", "--out", "taken"], "taken is a file"),
    "figures below a file": (["figures", "run", "--out", "taken/deep"], "taken"),
    "unknown kind of figure": (["figures", "run", "--format", "gif"], "gif"),
    "no figures": (["figures", "bare"], "has no figures"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_gets_one_sentence_and_exit_code_2(assay: Caller, made: Record, case: str) -> None:
    Path("unfinished").mkdir()
    Path("taken").write_text("mine")
    bare = made.summary | {"audits": {}, "findings": []}
    Record(bare, made.instances.slice(0, 0), made.examples).write(Path("bare"))
    words, hint = MISTAKES[case]
    code, out, told = assay(*words)
    assert code == 2
    assert hint in told
    assert len(told.strip().splitlines()) == 1
    assert "Traceback" not in told + out
    assert Path("taken").read_text() == "mine"
    assert {path.name for path in Path("run").iterdir()} == {SUMMARY, "instances.parquet", "examples.parquet"}


def test_without_a_folder_one_that_is_there_is_named(assay: Caller, made: Record) -> None:
    made.write(Path("runs") / "first")
    assert "assay report runs/first" in assay("report")[2]


def test_what_was_written_before_stays_when_a_report_fails(assay: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    assert assay("report", "run", "--format", "json")[0] == 0
    before = (Path("run") / "report.json").read_bytes()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    code, _, told = assay("report", "run", "--format", "json")
    assert (code, "disk is full" in told) == (2, True)
    assert (Path("run") / "report.json").read_bytes() == before
    assert json.loads(before)["schema"] == "assay.report"
