"""What a node does with a job, here without a cluster."""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from assay.data import planted
from assay.errors import AssayError
from assay.models.recipes import train
from assay.records import Record
from assay.run.api import recipe
from assay.study import cluster as nodes
from assay.study.attempts import Outcome, attempt, store_outcome
from assay.study.cluster import Ray, _RunningTrials
from assay.study.plans import plan_of
from assay.study.trials import Folder, Source, Trial
from tests.study.small import texts

SMALL = {"encoder": "average", "embedding": 8, "epochs": 1}
RANKS = {"explainers": ["attention", "random"], "audits": ["agreement"], "limit": 4}


def trial_of(corpus: Any = "planted:opener", beside: Path = Path(), **model: Any) -> Trial:
    source = {"name": corpus, "train": 16}
    plan = plan_of({"corpora": [source], "models": {"small": model or SMALL}, "audits": RANKS}, beside)
    return plan.trials[0]


def job_for(trial: Trial) -> nodes.Job:
    return nodes.Job("run", trial.json(), nodes.versions())


def sent(job: nodes.Job) -> tuple[dict[str, Any], dict[str, bytes]]:
    answer, files = nodes.make(json.dumps(asdict(job)), "node")
    return json.loads(answer), files


@pytest.fixture(autouse=True)
def _scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))


def test_a_node_hands_back_what_would_be_kept_here_and_keeps_the_model_until_it_is_to_forget_it(tmp_path: Path) -> None:
    trial = trial_of()
    answer, files = sent(job_for(trial))
    left = sorted(path.name for path in (tmp_path / "scratch/assay-run/node").iterdir())
    attempt(trial, tmp_path / "here")
    store_outcome(Outcome(trial, **answer, files=files), Folder(tmp_path / "there"))
    here, there = (Folder(tmp_path / name).record(trial) for name in ("here", "there"))
    assert here.findings == there.findings and here.instances.equals(there.instances)
    assert left == ["models", "work"]
    assert not list((tmp_path / "scratch/assay-run/node/work").iterdir())
    nodes.forget("run")
    assert not list((tmp_path / "scratch").glob("assay-*"))


def test_a_node_that_shares_the_folder_writes_there_and_hands_back_no_file(tmp_path: Path) -> None:
    trial = trial_of()
    with nodes.signed(tmp_path / "study", "run"):
        answer, files = sent(replace(job_for(trial), shared=str(tmp_path / "study")))
    assert answer["reason"] is None and not files
    assert isinstance(Folder(tmp_path / "study").record(trial), Record)
    assert not list((tmp_path / "study").glob(".*"))


def test_a_folder_that_is_only_called_so_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "study").mkdir()  # on the node; that of the study is elsewhere
    answer, files = sent(replace(job_for(trial_of()), shared=str(tmp_path / "study")))
    assert "does not see the folder" in answer["unfit"] and not files
    assert not list((tmp_path / "study").iterdir())


def test_another_version_is_refused_and_another_build_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    job = job_for(replace(trial_of(), corpus=Source("planted:nowhere")))
    monkeypatch.setattr("importlib.metadata.version", lambda name: job.versions[name] + "+cu999")
    assert "planted:nowhere" in sent(job)[0]["reason"]
    monkeypatch.setattr("importlib.metadata.version", lambda name: "0.0.1")
    assert "has torch 0.0.1, and here is" in sent(job)[0]["unfit"]
    monkeypatch.setattr(nodes, "__version__", "0.0.2")
    assert "has assay 0.0.2, and here is" in sent(job)[0]["unfit"]


@pytest.mark.parametrize(
    "spoil", [Path.unlink, lambda path: path.write_text("text,label\nother,0\n", encoding="utf-8")]
)
def test_a_file_that_a_node_has_not_or_has_otherwise_fails_the_trial(
    tmp_path: Path, spoil: Callable[[Path], object]
) -> None:
    file = texts(tmp_path / "texts.csv")
    job = job_for(trial_of("texts.csv", tmp_path))
    assert sent(job)[0]["reason"] is None
    spoil(file)
    reason = sent(job)[0]["reason"]
    assert str(file) in reason and ("does not exist on the node" in reason or "is not what it is here" in reason)


def test_a_model_that_a_node_has_not_fails_the_trial(tmp_path: Path) -> None:
    train(planted.opener(0), recipe(**SMALL), tmp_path / "model")
    job = job_for(trial_of(beside=tmp_path, path="model"))
    assert sent(job)[0]["reason"] is None
    (tmp_path / "model").rename(tmp_path / "elsewhere")
    assert f"{tmp_path / 'model'} does not exist on the node" in sent(job)[0]["reason"]


def test_a_full_disk_of_a_node_stops_the_run_and_names_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "attempt", lambda trial, *_, **__: Outcome(trial, reason="the disk is full", full=True))
    monkeypatch.setattr("socket.gethostname", lambda: "n17")
    answer, _ = sent(job_for(trial_of()))
    assert "disk of the node n17 is full" in answer["unfit"]


@pytest.mark.parametrize(
    "options",
    [
        {"cpus": 0.0},
        {"cpus": 1.5},
        {"retries": -1},
        {"device": "cuda"},
        {"gpus": 1.0},
        {"device": "cuda:1", "gpus": 1.0},
    ],
)
def test_what_no_cluster_could_do_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(AssayError):
        Ray(**options)


def test_as_many_trials_fit_on_a_node_as_what_is_scarce_there_allows() -> None:
    def on(engine: Ray, **resources: float) -> int:
        return _RunningTrials(None, engine, job_for(trial_of()))._on(resources)

    halves = Ray(cpus=2.0, gpus=0.5, device="cuda")
    assert (on(halves, CPU=16.0, GPU=1.0), on(halves, CPU=3.0, GPU=4.0), on(halves, CPU=16.0)) == (2, 1, 0)
    assert (on(Ray(), CPU=3.0), on(Ray(cpus=0.1), CPU=1.0), on(Ray(), GPU=1.0)) == (3, 10, 0)


def test_nothing_to_do_needs_no_cluster(tmp_path: Path) -> None:
    assert not list(Ray("127.0.0.1:9")(iter([]), tmp_path))


def test_an_address_where_nobody_answers_is_told_at_once(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="the extra cluster is not installed")
    with pytest.raises(AssayError, match=r"No Ray cluster can be used at '127\.0\.0\.1:9'"):
        list(Ray("127.0.0.1:9")(iter([trial_of()]), tmp_path))


def test_without_the_library_the_error_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(AssayError, match=r"assay\[cluster\]"):
        list(Ray()(iter([trial_of()]), tmp_path))
