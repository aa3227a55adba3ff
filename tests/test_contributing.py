"""The examples of CONTRIBUTING.md: each is one file and one line, and passes the contracts as it is."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from assay.data.planted import PLANTED
from assay.data.subsets import thinned
from assay.models.architecture import Architecture
from assay.models.options import Training
from assay.models.recipes import Recipe, train
from assay.models.store import Trained
from assay.run import listings, verbs
from assay.run.explanation import explain

ROOT = Path(__file__).parent.parent
EXAMPLE = re.compile(
    r"`src/(assay/\S+)\.py`:\n\n```python\n(.*?)```\n\n"
    r"and in `(\w+)` of `src/(assay/\S+)/__init__\.py`:\n\n```python\n +\"(\S+)\": (\S+),\n```",
    re.S,
)
CONTRACTS = {
    "EXPLAINERS": ("tests/contracts/test_explainers.py", "tests/contracts/test_explainers_of_pretrained.py"),
    "CHEAP": ("tests/contracts/test_audits.py",),
    "METHODS": ("tests/contracts/test_methods.py",),
    "PLANTED": ("tests/data/test_planted.py",),
}
DICTS = {"CHEAP": ("CHEAP", "AUDITS")}
"""Where a line makes another dict longer, too."""


@dataclass(frozen=True)
class Example:
    """A file, the dict that it is entered in, and the line that does it."""

    file: str
    source: str
    entry: str
    room: str
    name: str
    value: str

    @property
    def member(self) -> Any:
        return eval(self.value, _module(self).__dict__)


EXAMPLES = {found[4]: Example(*found) for found in EXAMPLE.findall((ROOT / "CONTRIBUTING.md").read_text("utf-8"))}


@cache
def _module(example: Example) -> ModuleType:
    """The file of an example, as if it stood in the package."""
    spec = importlib.util.spec_from_loader(example.file.replace("/", "."), loader=None)
    assert spec is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[made.__name__] = made
    exec(compile(example.source, f"{example.file}.py", "exec"), made.__dict__)
    return made


@pytest.fixture(autouse=True)
def _entered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line stands in its dict."""
    for example in EXAMPLES.values():
        room = importlib.import_module(example.room.replace("/", "."))
        for each in DICTS.get(example.entry, (example.entry,)):
            monkeypatch.setitem(getattr(room, each), example.name, example.member)


class Counted:
    """What became of the tests of a run."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.failed:
            self.outcomes[report.outcome] += 1


def test_each_kind_of_member_has_an_example() -> None:
    assert {example.entry for example in EXAMPLES.values()} == CONTRACTS.keys()


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_member_passes_the_contracts_as_it_is(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = CONTRACTS[EXAMPLES[name].entry]
    for path in paths:  # they are read anew, so that they meet the new member
        monkeypatch.delitem(sys.modules, path.removesuffix(".py").replace("/", "."), raising=False)
    monkeypatch.chdir(ROOT)
    found = Counted()
    options = ["-qq", "-m", "not slow and not gpu", "-k", name, "-p", "no:cacheprovider", "-p", "no:xdist"]
    assert pytest.main([*options, *paths], plugins=[found]) == pytest.ExitCode.OK
    assert found.outcomes["passed"] >= 5 and set(found.outcomes) <= {"passed", "skipped"}


@pytest.mark.parametrize(
    ("name", "listing"),
    [
        ("embedding_norm", listings.explainers),
        ("concentration", listings.audits),
        ("shared_words", listings.methods),
        ("planted:animal", listings.corpora),
    ],
)
def test_a_member_is_listed_with_what_it_is(name: str, listing: Any) -> None:
    meaning, _ = listing()[name]
    assert len(meaning) > 20


@cache
def _model() -> Trained:
    corpus = thinned(EXAMPLES["planted:animal"].member(0), 24, 0)
    small = Architecture(encoder="average", embedding=6, hidden=4, alignment_size=4)
    return train(corpus, Recipe(small, training=Training(epochs=1)))


def test_members_are_asked_for_by_name_and_stand_in_the_report(tmp_path: Path) -> None:
    corpus = thinned(PLANTED["planted:animal"](0), 24, 0)
    result = verbs.audit(_model(), corpus, ["embedding_norm", "gradient"], ["agreement", "concentration"], limit=8)
    result.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "embedding norm" in page.replace("_", " ")
    assert "How few words hold half of an explanation?" in page


def test_an_explainer_can_be_passed_as_it_is() -> None:
    explainer, text = EXAMPLES["embedding_norm"].member, "The baker saw an old wolf near the bridge."
    found = explain(_model(), text, [explainer])
    (scores,) = found.scores.values()
    assert len(scores) == len(found.words) and min(scores) > 0
