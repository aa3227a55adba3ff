"""The page of every study whose results are kept comes again from them, letter by letter."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from studies.__main__ import PAGES

ROOT = Path(__file__).parents[2]
SHIPPED = Path("src/assay/report/known_reasons.json")
TEXTS = (".md", ".csv", ".json")
DATA = {"influence": "sst"}
"""What a page shows sentences of."""


@pytest.fixture(scope="module")
def rebuilt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy in which all pages were written anew."""
    place = tmp_path_factory.mktemp("rebuilt")
    for folder in ("src", "studies"):
        shutil.copytree(ROOT / folder, place / folder)
    (place / "docs").mkdir()
    shutil.copy2(ROOT / "docs" / "choosing.md", place / "docs")
    names = [name for name in PAGES if there(name)]
    done = subprocess.run(
        [sys.executable, "-m", "studies", *names],
        cwd=place,
        env=os.environ | {"PYTHONPATH": str(place / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return place


def there(name: str) -> bool:
    """Whether a study has the data that its page shows."""
    return name not in DATA or (Path(os.environ.get("ASSAY_DATA", "")) / DATA[name]).is_dir()


@pytest.mark.parametrize("name", PAGES)
def test_the_page_of_a_study_comes_again_from_its_results(rebuilt: Path, name: str) -> None:
    if not there(name):
        pytest.skip(f"the page of {name} shows sentences of {DATA[name]}")
    same(rebuilt, [*files(ROOT / "studies" / name), *files(rebuilt / "studies" / name)])


def test_what_studies_write_elsewhere_comes_again_too(rebuilt: Path) -> None:
    same(rebuilt, [Path("docs/choosing.md"), SHIPPED])


def test_every_study_with_results_has_its_page_made() -> None:
    kept = {path.parent.name for path in ROOT.glob("studies/*/results*")}
    assert kept == set(PAGES)


def files(folder: Path) -> list[Path]:
    root = folder.parents[1]
    return [path.relative_to(root) for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]


def same(rebuilt: Path, paths: list[Path]) -> None:
    different = sorted({str(path) for path in paths if held(ROOT / path) != held(rebuilt / path)})
    assert not different


def held(path: Path) -> str | None:
    """The text of a file; of figures and binary tables, whose bytes follow versions and fonts, that they are there."""
    if not path.exists():
        return None
    return path.read_text(encoding="utf-8") if path.suffix in TEXTS else path.name
