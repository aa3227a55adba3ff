"""What the README shows is what happens."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import assay
from assay.data.corpora import corpus
from assay.data.examples import thinned

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def _thinned(name, texts):
    fewer = thinned(corpus(name), texts, 0)
    return replace(fewer, test=fewer.test[: texts // 6])


@pytest.mark.parametrize("texts", [240, pytest.param(None, marks=pytest.mark.slow)])
def test_the_python_of_the_readme_runs_and_leaves_a_report(texts, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    if texts is not None:  # to learn from, and a sixth of them to audit; the rest is as it is shown
        monkeypatch.setattr(assay, "corpus", lambda name: _thinned(name, texts), raising=False)
    (block,) = re.findall(r"```python\n(.*?)```", README, flags=re.S)
    exec(compile(block, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "leave_one_out" in printed
    assert "attention" in printed
    assert "<html" in Path("report.html").read_text(encoding="utf-8")


def test_every_link_of_the_documents_leads_somewhere():
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_readme_names_targets_that_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^ {4}make (\w+)", README, flags=re.M):
        assert re.search(rf"^{target}:", makefile, flags=re.M)


def test_the_table_of_the_readme_is_the_study_s():
    study = (ROOT / "studies/jain_wallace/README.md").read_text(encoding="utf-8")
    titles = {"SST": "SST", "20News": "20News, as packaged", "20News, bodies": "20News, as the paper prepared it"}
    for name, title in (titles | {"IMDB": "IMDB", "AG News": "AG News"}).items():
        row = next(line for line in README.splitlines() if line.startswith(f"| {title} |"))
        shown = re.findall(r"\.\d\d", row)
        measured = []
        for encoder in ("BiLSTM", "Average"):
            cells = re.search(rf"^\| {name} \| {encoder} .*attention ~ gradient \|(.*)$", study, flags=re.M)
            numbers = re.findall(r"0(\.\d\d) ±", cells[1])
            measured += numbers[:4]
        assert shown == measured


def test_the_error_of_the_verdict_is_that_of_the_table():
    from assay.grading.grade import known_reasons

    known = known_reasons()
    told = known["explainer"]["held_out"]
    assert f"{known['models']} models whose reasons are known" in README
    assert f"{100 * told['wrong']:.1f} of 100 passes were wrong" in README
    assert f"{100 * told['failed']:.1f} of 100 explainers that had found the words failed" in README
    assert f"{100 * told['warned']:.0f} of 100 got a warning" in README
