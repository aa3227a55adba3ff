"""Trainings side by side: the same models as one after the other, and nothing is lost when one fails."""

from __future__ import annotations

import json
import signal
import threading
import time
from dataclasses import replace

import pytest
from safetensors import safe_open

from assay.data.examples import Corpus, Example
from assay.errors import AssayError
from assay.models import recipes, workers
from assay.models.config import Architecture, Training
from assay.models.objectives import Guided, Imitated, Labels, Without, teacher_output
from assay.models.recipes import CHECKPOINT, Recipe, train
from assay.models.store import fingerprint
from assay.models.workers import Variant, WorkerJob, WorkerPool, train_all, worker_count
from tests.builders import model, texts
from tests.models.test_training import SMALL, corpus


def variant(**changes):
    return Variant(replace(SMALL, training=replace(SMALL.training, **changes)))


def test_two_workers_train_the_same_models_as_none(monkeypatch):
    monkeypatch.setenv(workers.WORKERS, "2")
    teacher = train(corpus(), SMALL).network
    variants = {
        "guided": Variant(SMALL, Guided(teacher)),
        "adversary": Variant(SMALL, Imitated(teacher, 0.1)),
    }
    before = fingerprint(teacher)
    found = train_all(corpus(), variants)
    monkeypatch.setenv(workers.WORKERS, "1")
    expected = train_all(corpus(), variants)
    assert list(found) == list(expected) == list(variants)
    assert fingerprint(teacher) == before
    for name, trained in found.items():
        assert fingerprint(trained.network) == fingerprint(expected[name].network)
        assert trained.history["losses"] == expected[name].history["losses"]
        assert not trained.network.training
    assert len({fingerprint(each.network) for each in found.values()}) == 2


@pytest.mark.slow
def test_an_interruption_stops_all_and_keeps_the_checkpoint(tmp_path):
    chosen = variant(epochs=100_000, patience=100_000)
    pool, folder = WorkerPool(1), tmp_path / "long"
    job = WorkerJob(corpus(), chosen.recipe, folder, "cpu", None, 1)

    def interrupt():
        while not (folder / CHECKPOINT).exists():
            time.sleep(0.05)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    try:
        threading.Thread(target=interrupt, daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            pool.do_all({"long": job})
    finally:
        signal.signal(signal.SIGINT, before)
    assert [process.poll() is not None for process in pool.processes] == [True]
    assert [path.name for path in folder.iterdir()] == [CHECKPOINT]
    with safe_open(folder / CHECKPOINT, "pt") as kept:
        assert json.loads(kept.metadata()["state"])["epoch"] >= 1


def test_what_a_worker_is_refused_is_told_in_the_same_sentence(tmp_path):
    wrong = variant(avoid=("nowhere",), deceive=1.0).recipe
    with pytest.raises(AssayError) as expected:
        train(corpus(), wrong)
    with pytest.raises(AssayError, match="'nowhere'") as found:
        WorkerPool(1).do_all({"wrong": WorkerJob(corpus(), wrong, tmp_path, "cpu", None, 1)})
    assert str(found.value) == str(expected.value)


def test_what_is_finished_is_only_loaded_and_the_order_is_kept(tmp_path, monkeypatch):
    first = train_all(corpus(), {"b": variant(seed=1)}, tmp_path)["b"]
    trained = []
    original = recipes.fit
    monkeypatch.setattr(recipes, "fit", lambda *given: trained.append(1) or original(*given))
    found = train_all(corpus(), {"a": variant(), "b": variant(seed=1)}, tmp_path)
    assert list(found) == ["a", "b"]
    assert len(trained) == 1
    assert fingerprint(found["b"].network) == fingerprint(first.network)
    with pytest.raises(AssayError, match="other options or data"):
        train_all(corpus(), {"b": variant(seed=2)}, tmp_path)


def test_there_are_as_many_workers_as_cores_for_their_threads(monkeypatch):
    monkeypatch.delenv(workers.WORKERS)
    monkeypatch.setattr("os.cpu_count", lambda: 16)
    assert [worker_count(jobs, "cpu") for jobs in (0, 1, 3, 40)] == [1, 1, 3, 16]
    assert worker_count(40, "cuda:0") == workers.ON_ONE_GPU
    monkeypatch.setattr("torch.get_num_threads", lambda: 16)
    assert worker_count(40, "cpu") == 1
    monkeypatch.setenv(workers.WORKERS, "5")
    assert worker_count(40, "cuda") == 5
    assert worker_count(2, "cpu") == 2


@pytest.mark.parametrize("wrong", ["0", "-1", "many", "1.5"])
def test_a_number_of_workers_that_cannot_be_is_refused(monkeypatch, wrong):
    monkeypatch.setenv(workers.WORKERS, wrong)
    with pytest.raises(AssayError, match="must be at least 1, got"):
        worker_count(2, "cpu")


def test_a_worker_that_dies_is_told_from_one_that_fails():
    assert isinstance(workers._fault("seed-1", 2, "Do this."), AssayError)
    assert "memory" in str(workers._fault("seed-1", -9, ""))
    assert "Traceback" in str(workers._fault("seed-1", 1, "Traceback"))


@pytest.mark.parametrize("objective", [None, Labels((3,)), Without((4, 5)), Imitated(model(), 0.5), Guided(model())])
def test_a_job_is_read_as_it_was_written(objective, tmp_path):
    chosen = Recipe(Architecture(projection="sparsegen(0.5)"), training=Training(avoid=("dull",), deceive=0.1))
    asked = Example("Who won?", 1, query="@placeholder won", candidates=(0, 1))
    given = Corpus("mine", ("a", "b", "c"), (Example("One text.", 0), asked), (Example("Another.", 2),), ())
    job = WorkerJob(given, chosen, tmp_path / "model", "cpu", objective, 2)
    job.write(tmp_path)
    again = WorkerJob.read(tmp_path)
    assert (again.corpus, again.recipe, again.folder, again.device) == (given, chosen, job.folder, "cpu")
    assert again.threads == 2
    if objective is None or isinstance(objective, Labels | Without):
        assert again.objective == objective
        return
    assert again.objective.identity == objective.identity  # the weights of the teacher, and the strength
    x = texts()
    assert (teacher_output(again.objective.teacher, x).logits == teacher_output(objective.teacher, x).logits).all()
