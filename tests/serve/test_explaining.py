"""What the page that explains asks for, and how it is told no."""

from __future__ import annotations

import json
import logging

import pytest
from fastapi.testclient import TestClient

from assay.intervene.edits import Act
from assay.serve.safety import LARGEST, Limits, Settings
from assay.serve.server import create
from tests.serve.counting_model import CountingModel

HOSTILE = "<img src=x onerror=alert(1)>\u202e \x00 'good' \U0001f600"
ASKED = {"model": "counted", "text": "a good film", "explainers": ["attention"]}


@pytest.fixture
def live_model():
    return CountingModel()


@pytest.fixture
def client(tmp_path, live_model):
    app = create(Settings((tmp_path,), limits=Limits(text=100)), {"counted": live_model})
    return TestClient(app, base_url="http://127.0.0.1:8765")


def test_the_models_are_told_under_the_names_by_which_they_are_asked(tmp_path):
    app = create(Settings((tmp_path,)), {"one": CountingModel(), "other": CountingModel(paired=True)})
    told = TestClient(app, base_url="http://127.0.0.1:8765").get("/api/models").json()["models"]
    assert [(each["name"], each["paired"]) for each in told] == [("one", False), ("other", True)]


def test_without_a_model_the_page_says_how_to_open_one(tmp_path):
    client = TestClient(create(Settings((tmp_path,)), {}), base_url="http://127.0.0.1:8765")
    page = client.get("/").text
    assert "assay serve --model runs/x/model" in page
    assert "<form" not in page
    assert client.get("/api/models").json() == {"models": []}


def test_a_page_has_no_script_and_no_style_of_its_own(client):
    page = client.get("/?text=<script>alert(1)</script>").text
    assert "style=" not in page
    assert "onclick" not in page
    assert "alert(1)" not in page
    assert page.count("<script") == page.count("<script src=") == 3


def test_a_text_is_explained(client, live_model):
    asked = ASKED | {"query": "", "target": "no", "explainers": ["attention", "gradient", "attention"]}
    found = client.post("/api/explain", json=asked).json()
    assert found["words"] == ["a", "good", "film"]
    assert list(found["scores"]) == ["attention", "gradient"]
    assert live_model.asked == [("explain", "a good film", None, ("attention", "gradient"), "no")]


def test_a_tree_is_asked_for_by_name_and_others_are_refused(client, live_model):
    client.post("/api/explain", json=ASKED | {"explainers": ["attention"], "tree": "hedge"}).raise_for_status()
    assert live_model.trees == ["hedge"]
    refused = client.post("/api/explain", json=ASKED | {"explainers": ["attention"], "tree": "<oak>"})
    assert refused.status_code == 422 and "tree" in refused.json()["detail"]


def test_an_act_arrives_as_it_was_sent(client, live_model):
    act = {"kind": "set", "weights": {"1": 0.75}, "items": [2], "seed": 3, "epsilon": 0.1, "layer": 1, "head": 0}
    found = client.post("/api/attend", json={"model": "counted", "text": "a good film", "query": "who?", "act": act})
    assert found.json()["weights"] == [0.125, 0.75, 0.125]
    sent = Act("set", weights={1: 0.75}, items=(2,), seed=3, epsilon=0.1, layer=1, head=0)
    assert live_model.asked == [("attend", "a good film", "who?", sent)]


@pytest.mark.parametrize("path", ["/api/explain", "/api/attend"])
@pytest.mark.parametrize(
    ("change", "status", "sentence"),
    [
        ({"text": "a" * 101}, 422, "The text has 101 characters, and this app takes at most 100."),
        ({"query": "a" * 101}, 422, "The question has 101 characters, and this app takes at most 100."),
        ({"text": " \n"}, 422, "The text is empty; type some words."),
        ({"model": "../../etc/passwd"}, 404, "No model of that name is open here; reload the page to see which are."),
        ({"more": 1}, 422, "The request is not well formed (more: Extra inputs are not permitted)."),
        ({"text": 3}, 422, "The request is not well formed (text: Input should be a valid string)."),
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_sentence(client, live_model, path, change, status, sentence):
    asked = {name: ASKED[name] for name in ("model", "text")} | change
    answer = client.post(path, json=asked | ({"explainers": []} if path.endswith("explain") else {}))
    assert (answer.status_code, answer.json()) == (status, {"detail": sentence})
    assert live_model.asked == []


def test_unknown_and_too_many_explainers_are_refused(client, live_model):
    answer = client.post("/api/explain", json=ASKED | {"explainers": ["atention"]})
    assert answer.status_code == 422
    assert answer.json() == {"detail": "Unknown explainer 'atention'; did you mean 'attention'?"}
    assert client.post("/api/explain", json=ASKED | {"explainers": ["attention"] * 41}).status_code == 422
    assert live_model.asked == []


@pytest.mark.parametrize(
    "act",
    [
        {"kind": "bend"},
        {"kind": "set", "weights": {"0": 1.5}},
        {"kind": "set", "weights": {"0": 0.6, "1": 0.6}},
        {"kind": "set", "weights": {"zero": 0.5}},
        {"layer": -1},
        {"epsilon": 2},
        {"items": ["a"]},
        {"path": "/etc/passwd"},
    ],
)
def test_acts_that_make_no_sense_are_refused(client, live_model, act):
    answer = client.post("/api/attend", json={"model": "counted", "text": "a film", "act": act})
    assert answer.status_code == 422
    assert answer.json()["detail"].endswith((".", "?"))
    assert live_model.asked == []


def test_a_weight_that_is_no_number_is_refused(client):
    body = '{"model": "counted", "text": "a", "act": {"kind": "set", "weights": {"0": NaN}}}'
    headers = {"content-type": "application/json"}
    assert client.post("/api/attend", content=body, headers=headers).status_code == 422


def test_what_the_bench_refuses_is_told(client):
    answer = client.post("/api/explain", json=ASKED | {"text": "refuse this"})
    assert (answer.status_code, answer.json()) == (422, {"detail": "This text is refused."})


def test_a_hostile_text_comes_back_as_json_only_and_is_not_logged(client, caplog):
    caplog.set_level(logging.DEBUG)
    for path, more in (("/api/explain", {"explainers": ["attention"]}), ("/api/attend", {})):
        answer = client.post(path, json={"model": "counted", "text": HOSTILE} | more)
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.json()["words"] == HOSTILE.split()
    assert "onerror" not in caplog.text


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_only_json_is_read(client, live_model, kind):
    answer = client.post("/api/explain", content=json.dumps(ASKED), headers={"content-type": kind})
    assert answer.status_code == 422
    assert live_model.asked == []


def test_a_request_that_is_too_large_is_not_read(client, live_model):
    headers = {"content-type": "application/json", "content-length": str(LARGEST + 1)}
    assert client.post("/api/explain", content=b"{}", headers=headers).status_code == 413
    unknown_size = client.post("/api/explain", content=iter([b"{}"]), headers={"content-type": "application/json"})
    assert unknown_size.status_code == 413
    assert unknown_size.json() == {"detail": "The request is too large; give a shorter text."}
    assert live_model.asked == []


def test_when_too_many_wait_one_is_sent_away_with_a_time_to_try_again(tmp_path):
    app = create(Settings((tmp_path,), limits=Limits(waiting=0)), {"counted": CountingModel()})
    answer = TestClient(app, base_url="http://127.0.0.1:8765").post("/api/explain", json=ASKED)
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) > 0
