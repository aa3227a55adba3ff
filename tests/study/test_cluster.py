"""Trials on a cluster of several nodes, which here are groups of processes: Ray cannot tell the difference."""

import json
import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay.errors import AssayError
from assay.records import EXAMPLES, INSTANCES
from assay.study import cluster
from assay.study.attempts import Outcome
from assay.study.cluster import MARGIN, Ray
from assay.study.engines import Engine, Local
from assay.study.plans import StudyPlan, plan_of
from assay.study.studying import run, write
from assay.study.trials import Folder, Source, Trial

pytest.importorskip("ray", reason="the extra cluster is not installed")
from ray.cluster_utils import Cluster

pytestmark = pytest.mark.cluster
ROOM = {"num_cpus": 1, "object_store_memory": 100_000_000}


@pytest.fixture(scope="module")
def nodes() -> Iterator[Cluster]:
    """Two nodes with room for one trial each."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("RAY_USAGE_STATS_ENABLED", "0")
        built = Cluster(initialize_head=True, head_node_args={**ROOM, "include_dashboard": False})
        built.add_node(**ROOM)
        yield built
        built.shutdown()


@pytest.fixture
def third(nodes: Cluster) -> Iterator[Any]:
    """A third node, for a while."""
    added = nodes.add_node(**ROOM)
    nodes.wait_for_nodes()
    yield added
    if added in nodes.worker_nodes:
        nodes.remove_node(added)


@pytest.fixture
def losses(monkeypatch: pytest.MonkeyPatch) -> list[Trial]:
    """The trials that were lost and sent again."""
    found: list[Trial] = []
    send = cluster._RunningTrials._send

    def noting(self: Any, trial: Trial, losses: int) -> None:
        found.extend([trial] if losses else [])
        send(self, trial, losses)

    monkeypatch.setattr(cluster._RunningTrials, "_send", noting)
    return found


def grid(corpora: Sequence[str], seeds: int) -> StudyPlan:
    """A plan of small models: `seeds` times four trials for each corpus."""
    small = {"embedding": 8, "hidden": 8, "epochs": 1}
    return plan_of(
        {
            "corpora": [{"name": name, "train": 32} for name in corpora],
            "models": {"lstm": {"encoder": "lstm", **small}, "average": {"encoder": "average", **small}},
            "seeds": list(range(seeds)),
            "audits": {
                "ranks": {"explainers": ["attention", "gradient", "random"], "audits": ["agreement"], "limit": 8},
                "taken": {"explainers": ["attention", "random"], "audits": ["erasure"], "limit": 8},
            },
        }
    )


class Losing:
    """An engine that loses a node in the middle, while a trial is on it."""

    def __init__(self, engine: Engine, nodes: Cluster, lost: Any, middle: int) -> None:
        self.engine, self.nodes, self.lost, self.middle = engine, nodes, lost, middle
        self.halted: list[int] = []
        self.over = threading.Event()

    def __call__(self, trials: Iterator[Trial], place: Path) -> Iterator[Outcome]:
        threading.Thread(target=self.halt).start()
        try:
            for number, outcome in enumerate(self.engine(trials, place)):
                if number >= self.middle and self.halted and self.lost in self.nodes.worker_nodes:
                    self.nodes.remove_node(self.lost, allow_graceful=False)
                    signalled(self.halted, signal.SIGKILL)
                yield outcome
        finally:
            self.over.set()

    def halt(self) -> None:
        """Makes the node stand still as soon as it has a trial, which will not end before the node is gone."""
        while not self.over.wait(0.02):
            if left_by(self.lost, "work"):
                processes = self.processes()
                signalled(processes, signal.SIGSTOP)
                time.sleep(0.05)
                if left_by(self.lost, "work"):
                    self.halted = processes
                    return
                signalled(processes, signal.SIGCONT)  # it had just ended

    def processes(self) -> list[int]:
        """Those that the node has started, from whatever thread."""
        raylet = self.lost.all_processes["raylet"][0].process.pid
        threads = Path(f"/proc/{raylet}/task").glob("*/children")
        return [int(each) for thread in threads for each in thread.read_text().split()]


def signalled(processes: list[int], number: signal.Signals) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)


def left_by(node: Any, kind: str) -> list[Path]:
    """What a node has in its temporary folder."""
    return list(Path(tempfile.gettempdir()).glob(f"assay-*/{node.node_id}/{kind}/*"))


def assert_same(plan: StudyPlan, first: Path, second: Path) -> None:
    """Every finding is the same number, and every table the same bytes."""
    for trial in plan.trials:
        one, other = Folder(first), Folder(second)
        assert one.record(trial).findings == other.record(trial).findings
        for name in (INSTANCES, EXAMPLES):
            assert (one.trial(trial) / name).read_bytes() == (other.trial(trial) / name).read_bytes(), trial.title
    written = [[path.relative_to(place) for path in write(plan, Folder(place))] for place in (first, second)]
    assert written[0] == written[1]
    for path in written[0]:
        assert (first / path).read_bytes() == (second / path).read_bytes(), path


@pytest.mark.parametrize(
    ("corpora", "seeds"),
    [
        pytest.param(["planted:negation"], 5, id="planted"),
        pytest.param(["planted:opener", "planted:negation", "sst"], 5, id="planted and SST", marks=[pytest.mark.data]),
    ],
)
def test_a_lost_node_changes_no_number(
    nodes: Cluster, third: Any, losses: list[Trial], tmp_path: Path, corpora: list[str], seeds: int
) -> None:
    plan = grid(corpora, seeds)
    losing = Losing(Ray(nodes.address), nodes, third, len(plan.trials) // 4)
    there = run(plan.trials, tmp_path / "there", losing)
    assert there.done == len(plan.trials) and not there.failed
    assert losses  # it was at work
    here = run(plan.trials, tmp_path / "here", Local(jobs=2))
    assert here.done == len(plan.trials) and not here.failed
    assert_same(plan, tmp_path / "here", tmp_path / "there")
    assert not left_by(third, "models")


def test_an_error_fails_its_own_trial_and_no_more_trials_are_claimed_than_there_is_room_for(
    nodes: Cluster, tmp_path: Path
) -> None:
    plan = grid(["planted:opener"], 2)
    wrong = replace(plan.trials[1], corpus=Source("planted:nowhere"))
    trials = [plan.trials[0], wrong, *plan.trials[2:]]
    ahead = []

    def counted(trials: Iterator[Trial], place: Path) -> Iterator[Outcome]:
        taken = given = 0

        def taking() -> Iterator[Trial]:
            nonlocal taken
            for trial in trials:
                taken += 1
                ahead.append(taken - given)
                yield trial

        for outcome in Ray(nodes.address)(taking(), place):
            given += 1
            yield outcome

    tally = run(trials, tmp_path, counted)
    assert tally.done == len(trials) - 1
    assert list(tally.failed) == [wrong.title] and "Unknown corpus 'planted:nowhere'" in tally.failed[wrong.title]
    assert max(ahead) == 2 + MARGIN


def test_nodes_that_share_the_folder_write_there_themselves(nodes: Cluster, tmp_path: Path) -> None:
    trials = grid(["planted:opener"], 1).trials
    outcomes = list(Ray(nodes.address, shared=True)(iter(trials), tmp_path))
    assert all(outcome.reason is None and outcome.files is None for outcome in outcomes)
    assert all(Folder(tmp_path).done(trial) for trial in trials)
    assert len(list((tmp_path / "models").glob("*/model.json"))) == 2  # each trained once, for two sets of audits


def test_a_trial_that_ends_every_process_is_given_up_and_says_so(
    nodes: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deadly(job: str) -> None:
        Path(tempfile.mkstemp(dir=tmp_path)[1]).write_text(job)
        os._exit(3)

    monkeypatch.setattr(cluster, "_made", deadly)
    trial = grid(["planted:opener"], 1).trials[0]
    (outcome,) = Ray(nodes.address, retries=2)(iter([trial]), tmp_path)
    assert outcome.reason == "its process or node was lost 3 times" and outcome.details
    assert len(list(tmp_path.iterdir())) == 3


def test_nodes_are_told_where_texts_are_and_how_many_threads_decide_the_numbers(
    nodes: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def telling(job: str) -> tuple[str, dict[str, bytes]]:
        names = ("ASSAY_DATA", "ASSAY_CACHE", "OMP_NUM_THREADS", "ASSAY_WORKERS")
        return json.dumps({"reason": " ".join(os.environ.get(name, "") for name in names)}), {}

    monkeypatch.setattr(cluster, "_made", telling)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ASSAY_DATA", "texts")  # now, when the nodes have been there for a while
    monkeypatch.setenv("ASSAY_CACHE", "/cache")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    trial = grid(["planted:opener"], 1).trials[0]
    (outcome,) = Ray(nodes.address)(iter([trial]), tmp_path)
    assert outcome.reason == f"{tmp_path / 'texts'} /cache 3 1"


def test_nodes_that_cannot_run_assay_or_have_no_room_stop_the_run(
    nodes: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unable(job: str) -> None:
        raise ModuleNotFoundError("No module named 'assay'")

    monkeypatch.setattr(cluster, "_made", unable)
    trials = grid(["planted:opener"], 1).trials
    with pytest.raises(AssayError, match=r"No module named 'assay'.*install"):
        list(Ray(nodes.address)(iter(trials), tmp_path))
    with pytest.raises(AssayError, match="1 CPUs and 1 GPUs"):
        list(Ray(nodes.address, gpus=1.0, device="cuda")(iter(trials), tmp_path))
