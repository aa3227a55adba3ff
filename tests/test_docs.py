"""What the documentation names is there: explainers, audits, methods, recipes, functions and tests."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from assay import AUDITS, EXPLAINERS, METHODS
from assay.data.planted import PLANTED
from assay.explainers.phrase_trees import SAMPLED, SCORERS, TREES
from assay.rationales.recipes import RECIPES
from assay.rationales.text_explanations import MODES
from assay.rationales.trainers import UNPLAYED

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
OPTIONS = {
    "--explainers": {*EXPLAINERS, "all", "usual"},
    "--audits": {*AUDITS, "all", "usual", "four_tests"},
    "--method": METHODS,
    "--recipe": {*RECIPES, *UNPLAYED, *MODES},
    "--tree": {*TREES, *SAMPLED},
    "--scorer": SCORERS,
}
BESIDE = {"tcav", "devices"}  # a module and an option, which the survey's page names in short


def code(page: str) -> list[str]:
    """What stands between backticks, and the lines of commands."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return [*re.findall(r"`([^`\n]+)`", text), *re.findall(r"^(?: {4}|\$ )(assay .+)$", text, flags=re.M)]


def found(name: str) -> bool:
    """Whether a dotted name is a module, or something that a module has."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            thing = getattr(thing, part, None)
        return thing is not None
    return False


@pytest.mark.parametrize("page", ["survey.md", "choosing.md", "papers.md", "tour.md", "index.md"])
def test_every_name_behind_an_option_is_one_of_ours(page):
    for text in code(page):
        for option, values in re.findall(r"(--[a-z]+) ([a-z_,]+)", text):
            for name in values.split(","):
                assert name in OPTIONS.get(option, {name}) or "NAME" in values, f"{page}: {text}"


@pytest.mark.parametrize("page", ["survey.md", "choosing.md"])
def test_every_name_by_itself_is_one_of_ours(page):
    known = {*EXPLAINERS, *AUDITS, *METHODS, *RECIPES, *UNPLAYED, *TREES, *SCORERS, *MODES, *BESIDE}
    planted = {name.removeprefix("planted:") for name in PLANTED}
    for name in code(page):
        if re.fullmatch(r"[a-z][a-z0-9_]*", name):
            assert name in known | planted, f"{page}: {name}"


@pytest.mark.parametrize("page", ["survey.md", "theory.md"])
def test_every_dotted_name_of_the_pages_can_be_imported(page):
    for name in code(page):
        if re.fullmatch(r"assay\.[\w.]+", name):
            assert found(name), f"{page}: {name}"


def test_every_test_that_the_proofs_name_is_there():
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    named = [name for name in code("theory.md") if re.fullmatch(r"test_\w+", name)]
    assert len(named) > 20
    for name in named:
        assert f"def {name}(" in tests, name


def test_the_number_of_explainers_is_that_of_the_dict():
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
    pages += sorted((ROOT / "src/assay/cli").glob("*.py"))
    told = [
        (path.name, int(size))
        for path in pages
        for size in re.findall(
            r"(?im)(?:\ball|\bthe|^-) (\d+)(?= explainers| side by side)", path.read_text(encoding="utf-8")
        )
    ]
    assert len(told) >= 3
    assert [each for each in told if each[1] != len(EXPLAINERS)] == []
