"""Who is answered, and with which headers."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from assay.serve.safety import Settings, is_loopback
from assay.serve.server import create


@pytest.fixture
def client(tmp_path):
    return TestClient(create(Settings((tmp_path,)), {}), base_url="http://127.0.0.1:8765")


def test_a_page_may_load_nothing_from_elsewhere_and_run_nothing_inline(client):
    policy = client.get("/").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8765", ""])
def test_other_host_names_are_refused(client, host):
    assert client.get("/", headers={"host": host}).status_code == 403


@pytest.mark.parametrize("host", ["localhost:8765", "[::1]:8765", "127.0.0.1"])
def test_names_of_this_machine_are_answered(client, host):
    assert client.get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "http://127.0.0.1:9999"},
    ],
)
def test_requests_from_other_sites_are_refused(client, headers):
    assert client.post("/api/anything", headers=headers).status_code == 403


def test_a_link_from_another_site_may_open_a_page(client):
    headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert client.get("/", headers=headers).status_code == 200


def test_a_token_is_asked_for_and_kept_in_a_cookie(tmp_path):
    app = create(Settings((tmp_path,), host="0.0.0.0", token="a secret"), {})
    client = TestClient(app, base_url="http://203.0.113.5", follow_redirects=False)
    assert client.get("/").status_code == 401
    assert client.get("/?token=wrong").status_code == 401
    entered = client.get("/runs?a=1&token=a%20secret")
    assert entered.status_code == 303
    assert entered.headers["location"] == "/runs?a=1"
    assert "HttpOnly" in entered.headers["set-cookie"]
    assert client.get("/runs", headers={"cookie": "assay=a wrong one"}).status_code == 401


@pytest.mark.parametrize(
    ("host", "own"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("example.org", False)],
)
def test_what_is_this_machine(host, own):
    assert is_loopback(host) is own


def test_what_is_not_there_is_said_in_a_sentence(client):
    assert client.get("/api/nothing").json() == {"detail": "There is nothing at this address."}
    assert "There is nothing at this address." in client.get("/nothing").text


@pytest.mark.parametrize("path", ["/api/explain", "/api/attend", "/api/jobs"])
def test_half_a_character_in_a_request_is_told_in_a_sentence(client, path):
    answer = client.post(path, content=b'{"\\ud800": 1}', headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert "not well formed" in answer.json()["detail"]


@pytest.mark.parametrize("path", ["/api/explain", "/api/attend", "/api/jobs"])
def test_a_request_that_is_too_large_is_not_read(client, path):
    assert client.post(path, content=b" " * (2**20 + 1)).status_code == 413
