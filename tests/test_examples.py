"""Every example runs as it stands, and ends in a figure or a page."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
ENDS = {
    "plot_three_lines": ["three-lines.html", "three-lines/verdict.svg"],
    "plot_own_explainer": ["own-explainer.svg"],
    "plot_own_csv": ["own-csv.html", "own-csv/summary.json"],
    "plot_landmarks": ["landmarks.svg"],
    "plot_influence": ["influence.html"],
    "plot_two_seeds": ["two-seeds.html"],
    "plot_edit_attention": ["edit-attention.svg"],
    "plot_verdict": ["verdict.svg"],
}
MARKS = {".svg": "<svg", ".html": "<html", ".json": '"findings"'}
LONG = ("plot_verdict", "plot_two_seeds", "plot_influence")  # these train large models, or several


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in LONG else []) for name in ENDS]
)
def test_an_example_ends_in_what_it_promises(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [f"{name}.py"])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    for end in ENDS[name]:
        assert MARKS[Path(end).suffix] in Path(end).read_text(encoding="utf-8")
    assert capsys.readouterr().out.strip(), "it tells something on the way"


def test_no_example_is_left_out():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(ENDS)


def test_every_example_says_how_it_is_run():
    for path in EXAMPLES.glob("*.py"):
        assert f"python examples/{path.name}" in path.read_text(encoding="utf-8")
