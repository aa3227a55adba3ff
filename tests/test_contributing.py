"""The examples of CONTRIBUTING.md: each is one file and one line, and passes the contracts as it is."""

from __future__ import annotations

import html
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
from fastapi.testclient import TestClient

import assay
from assay import cli, explain, influence, report, study
from assay.data.examples import Corpus, thinned
from assay.data.planted import PLANTED
from assay.models.config import Architecture, Training
from assay.models.recipes import Recipe, train
from assay.models.store import Trained
from assay.run.api import listing
from assay.serve.safety import Settings
from assay.serve.server import create
from tests.calling import call
from tests.study import small

ROOT = Path(__file__).parent.parent
EXAMPLE = re.compile(
    r"`src/(assay/\S+)\.py`:\n\n```python\n(.*?)```\n\n"
    r"and in `(\w+)` of `src/(assay/\S+?)(?:/__init__)?\.py`:\n\n```python\n +\"(\S+)\": (\S+),\n```",
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
    ("name", "verb"),
    [
        ("embedding_norm", "explainers"),
        ("concentration", "audits"),
        ("shared_words", "methods"),
        ("planted:animal", "corpora"),
    ],
)
def test_the_command_line_lists_a_member_with_what_it_is(
    name: str, verb: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli.console, "width", 100)
    code, out, _ = call(monkeypatch, capsys, verb)
    meaning, _ = listing(verb)[name]
    assert code == 0 and len(meaning) > 20
    assert name in out.split() and meaning in " ".join(out.split())


def few(seed: int) -> Corpus:
    """Texts of the planted corpus for a model that need not learn much."""
    return thinned(EXAMPLES["planted:animal"].member(seed), 24, 0)


@pytest.fixture(scope="module")
def model() -> Trained:
    tiny = Architecture(encoder="average", embedding=6, hidden=4, alignment_size=4)
    return train(few(0), Recipe(tiny, training=Training(epochs=1)))


def _shown(path: Path) -> str:
    """A page as text, where a figure is a word."""
    figures = re.sub(r"<svg.*?</svg>", " FIGURE ", path.read_text("utf-8"), flags=re.S)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", figures)).split())


@pytest.fixture
def runs(model: Trained, tmp_path: Path) -> list[Path]:
    """Two audits in which explainer, audit and corpus are named."""
    places = [tmp_path / name for name in ("runs/first", "runs/second")]
    for seed, place in enumerate(places):
        data, explainers = few(0), ["embedding_norm", "gradient"]
        assay.audit(model, data, explainers, ["agreement", "concentration"], seed, limit=8, out=place)
    return places


TITLE = "How few words hold half of an explanation?"
MEASURE = "share of words that hold half"
READING = "How to read this. The further left, the fewer words hold half of what all scores sum up to."


def test_members_that_are_named_stand_in_report_comparison_and_app(runs: list[Path], tmp_path: Path) -> None:
    report(runs[0], out=tmp_path / "report.html")
    page = _shown(tmp_path / "report.html")
    assert "Audit of planted:animal" in page
    card = page[page.index(f"{TITLE} Not graded") :]
    assert card.index("FIGURE") < card.index(READING) < card.index(f"embedding_norm {MEASURE}")
    report(*runs, out=tmp_path / "compared.html")
    page = _shown(tmp_path / "compared.html")
    assert "planted:animal" in page
    assert re.search(rf"{MEASURE}.*embedding_norm", page)
    app = TestClient(create(Settings((runs[0].parent,)), {}), base_url="http://127.0.0.1:8765")
    asked = app.get("/jobs").text
    assert [name for name in ("embedding_norm", "concentration", "planted:animal") if name not in asked] == []
    run = re.search(r'href="(/runs/\w+)"', app.get("/runs").text)
    assert run is not None
    about = html.unescape(app.get(run[1]).text)
    assert "planted:animal" in about and "embedding_norm" in about and TITLE in about


def test_members_that_are_named_stand_in_a_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PLANTED, "planted:animal", few)
    plan = small.PLAN.replace("texts.csv", "planted:animal").replace("[0, 1]", "[0]")
    plan = plan.replace('"attention", "random"', '"embedding_norm", "random"').replace("agreement", "concentration")
    done = study(small.planned(tmp_path, plan), tmp_path / "study", small.here)
    page = _shown(next(path for path in done.paths if path.name == "study.html"))
    table = page[page.index(f"{TITLE} {MEASURE.capitalize()}") :]
    assert "planted:animal" in table and "embedding_norm" in table and "FIGURE" in table


def test_a_method_that_is_named_stands_on_the_page_of_influence(model: Trained, tmp_path: Path) -> None:
    traced = influence(model, "The baker saw an old wolf near the bridge.", few(0), method="shared_words")
    page = _shown(traced.report(tmp_path / "influence.html"))
    meaning, _ = listing("methods")["shared_words"]
    assert "planted:animal" in page and f"shared_words: {meaning}" in page
    assert "Each number is how far the log-odds of" in page


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """No dict has the examples."""
    for example in EXAMPLES.values():
        room = importlib.import_module(example.room.replace("/", "."))
        for each in DICTS.get(example.entry, (example.entry,)):
            monkeypatch.delitem(getattr(room, each), example.name)


@pytest.mark.usefixtures("nowhere")
def test_explainer_audit_and_corpus_can_be_passed_as_they_are(model: Trained, tmp_path: Path) -> None:
    explainer, audit, corpus = (EXAMPLES[name].member for name in ("embedding_norm", "concentration", "planted:animal"))
    assay.audit(model, corpus(0), [explainer, "gradient"], [audit], limit=8).report(tmp_path / "report.html")
    page = _shown(tmp_path / "report.html")
    card = page[page.index(f"{TITLE} Not graded") :]
    assert card.index("FIGURE") < card.index(READING) < card.index(f"embedding_norm {MEASURE}")


@pytest.mark.usefixtures("nowhere")
def test_a_method_can_be_passed_as_it_is(model: Trained, tmp_path: Path) -> None:
    method = EXAMPLES["shared_words"].member
    traced = influence(model, "The baker saw an old wolf near the bridge.", few(0), method=method)
    assert "The share of words that an example has in common" in _shown(traced.report(tmp_path / "influence.html"))


@pytest.mark.usefixtures("nowhere")
def test_an_explainer_can_be_passed_for_a_single_text(model: Trained) -> None:
    explainer, text = EXAMPLES["embedding_norm"].member, "The baker saw an old wolf near the bridge."
    found = explain(model, text, [explainer])
    (scores,) = found.scores.values()
    assert len(scores) == len(found.words) and min(scores) > 0
