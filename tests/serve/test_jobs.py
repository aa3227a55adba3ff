"""Jobs: from the request to the process and back, over restarts of the server."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from assay.errors import AssayError
from assay.serve import job_runner, jobs
from assay.serve import job_runner as processes
from assay.serve.job_runner import JobRunner, duration
from assay.serve.job_store import Job, JobStore, Order
from assay.serve.jobs import overall_progress, status_text
from assay.serve.safety import Limits, Settings
from assay.serve.server import create
from tests.serve import working
from tests.serve.working import CONTINUES, FAILS, GOES_WELL, IS_DEAF, IS_KILLED, WAITS

FAKE = (sys.executable, "-S", str(Path(working.__file__)))
OVER = ("finished", "failed", "cancelled", "timed out")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_runner, "TICK", 0.02)


@contextmanager
def app_over(folder: Path, program: tuple[str, ...] = FAKE, **limits: int) -> Iterator[TestClient]:
    """A running app whose jobs are done by the stand-in."""
    app = create(Settings((folder,), limits=Limits(**limits)), {})
    app.state.job_runner.program = program
    with TestClient(app, base_url="http://127.0.0.1:8765") as client:
        yield client


def until(client: TestClient, id: str, *states: str) -> dict:
    """The job once it is in one of the states."""
    for _ in range(3000):
        job = client.get(f"/api/jobs/{id}").json()
        if job["state"] in states:
            return job
        assert job["state"] not in OVER, job
        time.sleep(0.02)
    raise AssertionError(f"still {job['state']}")


def wait_for(path: Path) -> Path:
    for _ in range(3000):
        if path.exists():
            return path
        time.sleep(0.02)
    raise AssertionError(path.name)


def asked(client: TestClient, way: int = GOES_WELL, **options: object) -> str:
    answer = client.post("/api/jobs", json={"corpus": "planted:keyword", "seed": way} | options)
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


def child_of(folder: Path, id: str) -> int:
    place = wait_for(folder / "jobs" / id / "run" / "child")
    while not place.read_text():
        time.sleep(0.02)
    return int(place.read_text())


def test_a_job_is_started_followed_and_finished(tmp_path):
    with app_over(tmp_path) as client:
        job = until(client, asked(client), "finished")
        assert client.get("/api/jobs").json()["jobs"][0]["id"] == job["id"]
    assert job["title"] == "planted:keyword"
    assert job["log"] == "way 0\n"
    assert job["report"] == f"/jobs/{job['id']}/report"
    assert job["command"].startswith("assay audit --data=planted:keyword --explainers=usual --audits=usual --limit=200")


def test_jobs_run_one_by_one_in_their_order(tmp_path):
    with app_over(tmp_path) as client:
        first, second, third = asked(client, WAITS), asked(client), asked(client)
        until(client, first, "running")
        assert client.get(f"/api/jobs/{third}").json()["words"] == "waits for 2 other jobs"
        child_of(tmp_path, first)
        (tmp_path / "jobs" / first / "run" / "enough").touch()
        until(client, third, "finished")
        ended = [client.get(f"/api/jobs/{id}").json()["ended"] for id in (first, second, third)]
    assert ended == sorted(ended)


def test_the_sentence_of_a_failed_job_is_its_last_word_without_paths(tmp_path):
    with app_over(tmp_path) as client:
        job = until(client, asked(client, FAILS), "failed")
        assert job["words"].endswith("has no column 'x'; it has <b>.")
        upload = client.put("/api/uploads?kind=csv", content=b"text,label\na b,x\nc d,y\n" * 1).json()
        job = until(client, asked(client, FAILS, corpus=None, upload=upload["id"]), "failed")
    assert job["words"] == "The file has no column 'x'; it has <b>."


def test_a_killed_process_is_told_from_one_that_failed(tmp_path):
    with app_over(tmp_path) as client:
        job = until(client, asked(client, IS_KILLED), "failed")
    assert "signal 9" in job["words"]


def test_cancelling_ends_the_process_and_what_it_started(tmp_path):
    with app_over(tmp_path) as client:
        id = asked(client, WAITS)
        child = child_of(tmp_path, id)
        assert client.post(f"/api/jobs/{id}/cancel").status_code == 200
        until(client, id, "cancelled")
        gone(child)
        assert client.post(f"/api/jobs/{id}/cancel").status_code == 422


def gone(process: int) -> None:
    for _ in range(500):
        if processes.born(process) is None:
            return
        time.sleep(0.02)
    raise AssertionError("a process is left")


def test_a_process_that_will_not_end_is_made_to(tmp_path, monkeypatch):
    monkeypatch.setattr(job_runner, "GRACE", 0.1)
    with app_over(tmp_path) as client:
        id = asked(client, IS_DEAF)
        child = child_of(tmp_path, id)
        client.post(f"/api/jobs/{id}/cancel")
        until(client, id, "cancelled")
        gone(child)


def test_a_job_that_waits_is_cancelled_without_a_start(tmp_path):
    with app_over(tmp_path) as client:
        first, second = asked(client, WAITS), asked(client)
        until(client, first, "running")
        assert client.post(f"/api/jobs/{second}/cancel").json()["state"] == "cancelled"
        client.post(f"/api/jobs/{first}/cancel")
        until(client, first, "cancelled")
    assert not (tmp_path / "jobs" / second / "log.txt").exists()


def test_a_job_that_takes_too_long_is_stopped(tmp_path):
    with app_over(tmp_path, seconds=0) as client:
        job = until(client, asked(client, WAITS), "timed out")
    assert "the longest that a job may run" in job["words"]


def test_a_job_goes_on_without_the_server_and_is_found_again(tmp_path):
    with app_over(tmp_path) as client:
        id = asked(client, WAITS)
        child_of(tmp_path, id)
        assert until(client, id, "running")["progress"]["total"] == 200
    with app_over(tmp_path) as client:
        job = until(client, id, "running")
        assert job["words"] == "auditing 9 explainers, 35 of 200, about 1 minute left"
        (tmp_path / "jobs" / id / "run" / "enough").touch()
        until(client, id, "finished")


def test_a_job_can_be_cancelled_after_a_restart(tmp_path):
    with app_over(tmp_path) as client:
        id = asked(client, WAITS)
        child = child_of(tmp_path, id)
    processes._children.clear()  # a new server is not the parent
    with app_over(tmp_path) as client:
        client.post(f"/api/jobs/{id}/cancel")
        until(client, id, "cancelled")
        gone(child)


def test_a_process_that_vanished_meanwhile_is_noticed_and_can_go_on(tmp_path):
    with app_over(tmp_path) as client:
        id = asked(client, WAITS)
        os.kill(child_of(tmp_path, id), signal.SIGKILL)
    card = tmp_path / "jobs" / id / "job.json"
    os.killpg(json.loads(card.read_text())["process"], signal.SIGKILL)
    processes._children.clear()
    with app_over(tmp_path) as client:
        job = until(client, id, "failed")
        assert job["words"] == "way 1"
        assert job["broke"]
        (tmp_path / "jobs" / id / "run" / "enough").touch()
        assert client.post(f"/api/jobs/{id}/resume").json()["state"] == "queued"
        until(client, id, "finished")


def test_a_job_that_broke_off_goes_on_with_the_same_command(tmp_path):
    with app_over(tmp_path) as client:
        id = asked(client, CONTINUES)
        first = until(client, id, "failed")
        assert first["words"] == "broke off"
        client.post(f"/api/jobs/{id}/resume")
        second = until(client, id, "queued", "running", "finished")
        until(client, id, "finished")
        assert second["command"] == first["command"]
        assert client.post(f"/api/jobs/{id}/resume").status_code == 422


def test_another_process_with_the_same_number_is_neither_followed_nor_ended(tmp_path):
    job_store = JobStore(tmp_path)
    job_store.claim()
    own = os.getpid()
    job = Job(
        id="0" * 16, title="t", order=Order(corpus="planted:keyword"), created=1, state="running", started=time.time()
    )
    job_store.put(job.model_copy(update={"process": own, "birth": "another time", "stopping": "cancelled"}))
    JobRunner(job_store, Limits(), {}).look()
    assert job_store.get(job.id).state == "cancelled"
    assert processes.born(own) is not None
    job_store.release()


def test_a_signal_goes_to_the_process_that_was_meant_or_to_none(tmp_path):
    sleeping = [sys.executable, "-S", "-c", "import time; time.sleep(120)"]
    process = processes.start(sleeping, tmp_path / "log.txt", os.environ)
    birth = processes.born(process)
    processes.stop(process, "another time", signal.SIGKILL)
    processes.stop(process, None, signal.SIGKILL)
    processes.stop(process, birth, signal.SIGTERM)
    gone(process)
    assert processes.ended(process, birth) == (True, -signal.SIGTERM)


def test_a_second_server_looks_on_and_takes_over(tmp_path):
    with app_over(tmp_path) as second:
        with app_over(tmp_path) as first:
            pass
        id = asked(second, WAITS)
        child_of(tmp_path, id)
        with app_over(tmp_path) as first:
            assert first.get(f"/api/jobs/{id}").json()["state"] == "running"
            assert first.post("/api/jobs", json={"corpus": "planted:keyword"}).status_code == 422
            assert first.post(f"/api/jobs/{id}/cancel").status_code == 422
        second.post(f"/api/jobs/{id}/cancel")
        until(second, id, "cancelled")


def test_the_events_of_a_job_end_with_it(tmp_path):
    with app_over(tmp_path) as client:
        id = asked(client)
        until(client, id, "finished")
        answer = client.get(f"/api/jobs/{id}/events", headers={"last-event-id": "7"})
        first = asked(client, WAITS)
        child_of(tmp_path, first)
        (tmp_path / "jobs" / first / "run" / "enough").touch()
        whole = client.get(f"/api/jobs/{first}/events").text
    assert answer.headers["content-type"].startswith("text/event-stream")
    retry, event, end = answer.text.split("\n\n")
    assert (retry, end) == ("retry: 1000", "")
    assert event.startswith("id: 8\ndata: {")
    states = [json.loads(line[6:])["state"] for line in whole.splitlines() if line.startswith("data: ")]
    assert states[-1] == "finished"


def test_a_silent_stream_says_that_it_is_alive_and_ends_in_time(tmp_path, monkeypatch):
    for name, seconds in (("LOOK", 0.02), ("BREATH", 0.1), ("LONGEST", 0.5)):
        monkeypatch.setattr(jobs, name, seconds)
    with app_over(tmp_path) as client:
        id = asked(client, WAITS)
        child_of(tmp_path, id)
        until(client, id, "running")
        assert ": still here\n\n" in client.get(f"/api/jobs/{id}/events").text
        client.post(f"/api/jobs/{id}/cancel")
        until(client, id, "cancelled")


def test_too_many_jobs_are_refused(tmp_path):
    with app_over(tmp_path, jobs=1) as client:
        id = asked(client, WAITS)
        answer = client.post("/api/jobs", json={"corpus": "planted:keyword"})
        assert answer.status_code == 422
        assert answer.json()["detail"].startswith("1 jobs wait already")
        client.post(f"/api/jobs/{id}/cancel")
        until(client, id, "cancelled")
    assert len(list((tmp_path / "jobs").glob("*/job.json"))) == 1


def test_a_job_that_has_ended_can_be_removed(tmp_path):
    with app_over(tmp_path) as client:
        id = asked(client, WAITS)
        assert client.delete(f"/api/jobs/{id}").status_code == 422
        client.post(f"/api/jobs/{id}/cancel")
        until(client, id, "cancelled")
        assert client.delete(f"/api/jobs/{id}").status_code == 200
        assert client.get(f"/api/jobs/{id}").status_code == 404
    assert not (tmp_path / "jobs" / id).exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"corpus": None}, "Choose a file"),
        ({"corpus": "planted:keyward"}, "did you mean 'planted:keyword'?"),
        ({"corpus": "/etc/passwd"}, "Unknown corpus"),
        ({"corpus": "hf:some/thing"}, "Unknown corpus"),
        ({"model": "/elsewhere/model"}, "Unknown model"),
        ({"explainers": ["attention", "--out=/tmp"]}, "Unknown explainer"),
        ({"explainers": ["lime(samples=9)"]}, "Unknown explainer"),
        ({"explainers": []}, "at least one explainer"),
        ({"audits": ["agreement", "agreement"]}, "each once"),
        ({"limit": 0}, "limit"),
        ({"seed": -1}, "seed"),
        ({"limit": "5; rm"}, "limit"),
        ({"command": ["rm"]}, "command"),
        ({"upload": "../../etc/passwd", "corpus": None}, "upload"),
        ({"upload": "0" * 32, "corpus": None}, "not here any more"),
        ({"text_column": "x" * 300}, "text_column"),
    ],
)
def test_an_order_that_means_nothing_is_refused_in_a_sentence(tmp_path, change, said):
    with app_over(tmp_path) as client:
        answer = client.post("/api/jobs", json={"corpus": "planted:keyword"} | change)
    assert answer.status_code == 422
    assert said in answer.json()["detail"]
    assert not list((tmp_path / "jobs").glob("*/job.json"))


@pytest.mark.parametrize("id", ["..", "%2e%2e", "0" * 16, "..%2f..%2fetc", "0123", "job.json"])
def test_ids_that_are_not_on_the_list_lead_nowhere(tmp_path, id):
    (tmp_path / "job.json").write_text("{}")
    with app_over(tmp_path) as client:
        for method, place in (
            ("GET", ""),
            ("GET", "/events"),
            ("POST", "/cancel"),
            ("POST", "/resume"),
            ("DELETE", ""),
        ):
            assert client.request(method, f"/api/jobs/{id}{place}").status_code in (404, 405)
        assert client.get(f"/jobs/{id}/report").status_code == 404


def test_a_card_cannot_make_the_server_run_something_else(tmp_path):
    """A folder of runs may come from anywhere: only the order is read, and checked again."""
    bad = {"corpus": "planted:keyword", "explainers": ["attention", "x,--out=/tmp"]}
    for id, order, extra in (
        ("a" * 16, bad, {}),
        ("b" * 16, {"corpus": "planted:keyword"}, {"command": ["/bin/false"]}),
    ):
        place = tmp_path / "jobs" / id
        place.mkdir(parents=True)
        card = {"id": id, "title": "t", "order": order, "created": 1.0, "state": "queued"} | extra
        (place / "job.json").write_text(json.dumps(card))
    for name, text in (("c" * 16, "not json"), ("d" * 16, '{"id": "../../x"}'), ("elsewhere", "{}")):
        (tmp_path / "jobs" / name).mkdir()
        (tmp_path / "jobs" / name / "job.json").write_text(text)
    with app_over(tmp_path) as client:
        assert "Unknown explainer" in until(client, "a" * 16, "failed")["words"]
        until(client, "b" * 16, "finished")
        assert len(client.get("/api/jobs").json()["jobs"]) == 2


def test_no_value_of_an_order_can_become_an_option(tmp_path):
    order = Order(upload="0" * 32, text_column="--out", label_column="-x; rm -rf /", query_column=None)
    words = order.arguments(tmp_path)
    assert words[0] == "audit"
    assert words[2:5] == ["--text-column=--out", "--label-column=-x; rm -rf /", "--query-column="]
    assert all(word.startswith("--") and "=" in word for word in words[1:])


def test_a_live_model_is_audited_as_it_was_opened(tmp_path):
    job_runner = JobRunner(JobStore(tmp_path), Limits(), {"mine": ("--device", "cuda"), "other": ()})
    for model, said in (("mine", "--model=mine --device cuda"), ("other", "--model=other"), ("train", "")):
        job = Job(id="0" * 16, title="t", order=Order(corpus="planted:keyword", model=model), created=1)
        assert f"--data=planted:keyword {said}".rstrip() + " --explainers" in " ".join(job_runner.arguments(job))


def test_columns_must_be_in_the_file_and_differ():
    order = Order(upload="0" * 32, text_column="a", label_column="a")
    with pytest.raises(AssayError, match="different columns"):
        order.check_columns(["a", "b"])
    with pytest.raises(AssayError, match="no column 'a'"):
        order.check_columns(["b"])


def test_where_a_job_stands_is_said_in_words():
    job = Job(id="0" * 16, title="t", order=Order(), created=1, state="running", started=1.0)
    assert status_text(job, None, 0) == "starting"
    training = {"task": "epoch 3/20", "done": 1.0, "total": 4.0, "left": 9.0}
    assert status_text(job, overall_progress(training), 0) == "training the model, epoch 3/20"
    assert overall_progress(training)["done"] == 2.25
    auditing = {"task": "auditing 9 explainers", "done": 1035.4, "total": 2000.0, "left": 61.0}
    assert (
        status_text(job, overall_progress(auditing), 0) == "auditing 9 explainers, 1,035 of 2,000, about 1 minute left"
    )
    assert status_text(job.model_copy(update={"state": "finished", "ended": 91.0}), None, 0) == "took 2 minutes"
    assert [duration(each) for each in (0.2, 1, 59, 61, 3600, 7300)] == [
        "0 seconds",
        "1 second",
        "59 seconds",
        "1 minute",
        "1 hour",
        "2 hours",
    ]


@pytest.mark.slow
def test_an_uploaded_file_is_audited_in_earnest(tmp_path):
    """The command line itself, on a file whose column is called like an option."""
    rows = [
        f"text number {i % 17} is {('dull', 'fine')[i % 2]} and has row {i},{('no', 'yes')[i % 2]}" for i in range(60)
    ]
    with app_over(tmp_path, program=job_runner.PROGRAM) as client:
        body = "\n".join(["--out,label", *rows]).encode()
        upload = client.put("/api/uploads?kind=csv&name=../../films.csv", content=body).json()
        chosen = {"explainers": ["attention", "leave_one_out"], "audits": ["agreement"], "limit": 4, "seed": 0}
        columns = {"text_column": "--out", "label_column": "label"}
        answer = client.post("/api/jobs", json={"upload": upload["id"]} | columns | chosen)
        job = until(client, answer.json()["id"], "finished")
        assert job["title"] == "films.csv"
        report = client.get(job["report"], follow_redirects=False)
        assert report.status_code == 303
        assert client.get(report.headers["location"]).status_code == 200
    folder = tmp_path / "jobs" / job["id"]
    assert json.loads((folder / "run" / "summary.json").read_text())["corpus"]["audited"] == 4
    assert json.loads((folder / "progress.json").read_text())["done"] == 4
