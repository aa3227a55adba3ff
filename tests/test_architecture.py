"""docs/architecture.md says what is so: its rooms are the folders, and its files are those that commands run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from assay.models import store
from assay.models.store import Trained
from tests import builders
from tests.workbenches import CLASSES, tokeniser

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
FIGURE = PAGE.split("```text")[1].split("```")[0]
ALWAYS = {"costs", "progress", "plugins", "errors", "files"}  # used by all, and in no figure


def path(title: str) -> list[str]:
    """The files of a reader's path, in its order."""
    section = PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]
    return re.findall(r"^\d+\. `(src/assay/[\w/]+\.py)`", section, flags=re.MULTILINE)


WALK = """
import json, sys
seen = set()
def look(frame, event, _):
    if event == "call" and frame.f_code.co_name != "<module>":
        seen.add(frame.f_code.co_filename)
from assay.cli import main
sys.setprofile(look)
try:
    main()
except SystemExit as end:
    assert not end.code
finally:
    sys.setprofile(None)
    print("\\n" + json.dumps(sorted(seen)))
"""
"""A command, and the files whose functions it ran, in a process that nothing else has touched."""


@pytest.fixture
def walked(tmp_path):
    """The files of the package whose functions a command runs, imports apart."""
    folder = tmp_path / "model"
    store.save(Trained(builders.kind("lstm"), tokeniser(), CLASSES[:2]), folder)

    def walk(verb: str, *words: str) -> set[str]:
        command = [sys.executable, "-c", WALK, verb, "--model", str(folder), *words]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        seen = json.loads(done.stdout.splitlines()[-1])
        ran = {f"src/assay/{name.rpartition('/assay/')[2]}" for name in seen if "/assay/" in name}
        assert ran, f"{seen}"
        return ran

    return walk


def test_the_figure_names_every_room_of_the_layers():
    (layers,) = (
        each["layers"]
        for each in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
        if each["type"] == "layers" and each["containers"] == ["assay"]
    )
    rooms = {room.strip() for layer in layers for room in layer.split("|")} - ALWAYS
    assert rooms <= set(re.findall(r"\w+", FIGURE))


def test_the_path_of_an_audit_is_the_one_that_it_takes(walked, tmp_path):
    files = path("What happens in `assay audit`")
    table = tmp_path / "texts.csv"
    table.write_text("text,label\n" + "".join(f"w{n} w2 w3,{CLASSES[n % 2]}\n" for n in range(8)))
    explainers = ("--explainers", "attention,gradient", "--audits", "agreement", "--out", str(tmp_path / "run"))
    seen = walked("audit", "--corpus", str(table), *explainers)
    assert 3 <= len(files) <= 6
    assert set(files) <= seen


def test_the_path_of_a_rule_is_the_one_that_relevance_takes(walked):
    files = path("Adding a rule of relevance propagation for a new layer")
    seen = walked("explain", "--explainers", "lrp", "w1 w2 w3")
    assert 3 <= len(files) <= 6
    assert set(files) <= seen
