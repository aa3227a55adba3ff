"""The pages of runs, asked for as a browser would."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from fastapi.testclient import TestClient

from assay.caching import LruCache
from assay.grading.grade import verdicts
from assay.intervene.edits import Act
from assay.records import Record
from assay.report import audit
from assay.report.audit import render
from assay.serve.library import A_PAGE, Library, Run
from assay.serve.pages import RenderCache, policy_of
from assay.serve.safety import POLICY, Settings
from assay.serve.server import create
from tests.report.parsed import Page
from tests.report.synthetic import failing, synthetic_record

HOME = "http://127.0.0.1:8765"


class Live:
    """A live model of which only its name matters here."""

    def __init__(self, **about: Any) -> None:
        self.about = {"name": "live"} | about

    def explain(
        self, text: str, query: str | None, explainers: Sequence[str], target: str | None, tree: str | None = None
    ) -> dict[str, Any]:
        raise NotImplementedError

    def attend(self, text: str, query: str | None, act: Act) -> dict[str, Any]:
        raise NotImplementedError


@pytest.fixture(scope="module")
def record() -> Record:
    return synthetic_record(count=30)


@pytest.fixture(scope="module")
def folder(record: Record, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four runs of two corpora, one of which passes."""
    home = tmp_path_factory.mktemp("runs")
    weak = failing(record)
    films = record.summary["corpus"] | {"name": "films"}
    other = {"description": "Transformer", "test": {"accuracy": 0.9}, "parameters": 7}
    for name, made, told in (
        ("a/first", weak, {"created": "2026-01-01T00:00:00Z"}),
        ("a/second", weak, {"created": "2026-01-02T00:00:00Z"}),
        ("films", record, {"created": "2026-01-03T00:00:00Z", "corpus": films}),
        ("other", weak, {"created": "2026-01-04T00:00:00Z", "model": other}),
    ):
        replace(made, summary=made.summary | told).write(home / name)
    (home / "a" / "model").mkdir()
    return home


@pytest.fixture(scope="module")
def client(folder: Path) -> TestClient:
    return TestClient(create(Settings((folder,)), {}), base_url=HOME)


@pytest.fixture(scope="module")
def runs(folder: Path) -> dict[str, Run]:
    return {run.name: run for run in Library([folder]).runs()}


def listed(client: TestClient, **asked: Any) -> list[str]:
    """The names in the list, in its order."""
    answer = client.get("/runs", params=asked)
    assert answer.status_code == 200
    rows = [part for tag, part, _ in Page(answer.text).elements if tag == "input" and part.get("type") == "checkbox"]
    return [str(row["aria-label"]).removeprefix("Choose ") for row in rows if "aria-label" in row]


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ({}, ["other", "films", "a/second", "a/first"]),
        ({"sort": "oldest"}, ["a/first", "a/second", "films", "other"]),
        ({"sort": "name"}, ["a/first", "a/second", "films", "other"]),
        ({"sort": "corpus"}, ["films", "a/first", "a/second", "other"]),
        ({"sort": "accuracy"}, ["other", "films", "a/second", "a/first"]),
        ({"sort": "grade"}, ["films", "other", "a/second", "a/first"]),
        ({"corpus": "films"}, ["films"]),
        ({"model": "Transformer"}, ["other"]),
        ({"grade": "pass"}, ["films"]),
        ({"grade": "pass", "model": "Transformer"}, []),
        ({"search": "FIRST"}, ["a/first"]),
        ({"search": "planted transformer"}, ["other"]),
        ({"search": "leave_one_out", "corpus": "films"}, ["films"]),
        ({"search": "nothing of the kind"}, []),
        ({"search": "", "corpus": "", "sort": "", "grade": ""}, ["other", "films", "a/second", "a/first"]),
        ({"page": 99}, ["other", "films", "a/second", "a/first"]),
    ],
)
def test_runs_are_searched_filtered_and_sorted(client: TestClient, asked: dict[str, str], names: list[str]) -> None:
    assert listed(client, **asked) == names


def test_counts_tell_what_each_choice_would_show(client: TestClient) -> None:
    options = Page(client.get("/runs", params={"model": "Transformer"}).text).texts("option")
    assert "planted:negation (1)" in options
    assert not any(option.startswith("films") for option in options)
    assert "Transformer (1)" in options
    assert any(option.startswith("BiLSTM") and option.endswith("(3)") for option in options)


def test_a_page_says_how_many_there_are(client: TestClient) -> None:
    assert Page(client.get("/runs").text).texts("p", "count") == ["4 runs"]
    (few,) = Page(client.get("/runs", params={"corpus": "films"}).text).texts("p", "count")
    assert few.startswith("1 of 4 runs")


def test_what_is_chosen_stays_chosen(client: TestClient, runs: dict[str, Run]) -> None:
    chosen = [runs["films"].id, runs["other"].id, "no such run"]
    text = client.get("/runs", params={"run": chosen, "corpus": "films"}).text
    boxes = [part for tag, part, _ in Page(text).elements if tag == "input" and part.get("name") == "run"]
    assert [box["value"] for box in boxes if "checked" in box] == [runs["other"].id, runs["films"].id]


@pytest.mark.parametrize(
    "asked", [{"sort": "size"}, {"grade": "A+"}, {"page": "0"}, {"page": "x"}, {"search": "x" * 401}]
)
def test_what_cannot_be_asked_is_said_in_a_sentence(client: TestClient, asked: dict[str, str]) -> None:
    answer = client.get("/runs", params=asked)
    assert answer.status_code == 422
    assert "That did not work" in answer.text


def test_a_long_list_is_paged(record: Record, tmp_path: Path) -> None:
    small = synthetic_record(count=8, explainers=("attention", "leave_one_out"), audits=("agreement",))
    for place in range(A_PAGE + 3):
        small.write(tmp_path / f"run {place:03}")
    client = TestClient(create(Settings((tmp_path,)), {}), base_url=HOME)
    first, second = listed(client, sort="name"), listed(client, sort="name", page=2)
    assert (len(first), len(second)) == (A_PAGE, 3)
    assert [*first, *second] == [f"run {place:03}" for place in range(A_PAGE + 3)]


def test_an_empty_library_says_how_to_make_a_run(tmp_path: Path) -> None:
    client = TestClient(create(Settings((tmp_path / "absent",)), {}), base_url=HOME)
    assert "assay audit --corpus" in client.get("/runs").text
    assert client.get("/plots").status_code == 200
    assert "choose 2 to 12" in client.get("/compare").text.lower()


def test_damaged_folders_stand_below_the_list(record: Record, tmp_path: Path) -> None:
    record.write(tmp_path / "good")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "summary.json").write_text("{}")
    page = Page(TestClient(create(Settings((tmp_path,)), {}), base_url=HOME).get("/runs").text)
    assert page.texts("dt") == ["bad"]
    assert page.texts("dd") == ["summary.json lacks corpus, explainers, audits, findings."]


def test_a_run_shows_its_verdict_and_its_files(client: TestClient, runs: dict[str, Run], record: Record) -> None:
    run = runs["a/first"]
    text = client.get(f"/runs/{run.id}").text
    page = Page(text)
    assert (
        page.texts("h1") == [run.headline.replace(": ", ":", 1)] or run.headline.split(": ")[0] in page.texts("h1")[0]
    )
    cells = [cell.replace("\u00a0", " ") for cell in page.texts("td")]
    for verdict in verdicts(run.judged()):
        assert any(verdict.sentence in cell for cell in cells)
    assert record.summary["command"] in page.texts("pre")
    assert f"assay report {run.folder}" in page.texts("code")
    assert f"assay serve {run.root} --model {run.folder.parent / 'model'}" in page.texts("code")
    assert record.summary["model"]["description"] in page.texts("dd")
    links = {part["href"] for tag, part, _ in page.elements if tag == "a"}
    for link in links - {"#main"}:
        assert client.get(str(link)).status_code == 200, link
    assert f"/plots?figure=adversary&run={run.id}" in links


def test_files_are_handed_out_whole_under_names_of_ours(client: TestClient, runs: dict[str, Run]) -> None:
    run = runs["a/first"]
    for name in ("summary.json", "instances.parquet", "examples.parquet"):
        answer = client.get(f"/runs/{run.id}/files/{name}")
        assert answer.content == (run.folder / name).read_bytes()
        assert answer.headers["content-disposition"] == f'attachment; filename="assay-{run.id}-{name}"'
    assert json.loads(client.get(f"/runs/{run.id}/files/summary.json").text)["corpus"]["name"] == "planted:negation"


def test_the_report_is_the_one_that_the_command_writes(client: TestClient, runs: dict[str, Run]) -> None:
    run = runs["films"]
    answer = client.get(f"/runs/{run.id}/report")
    page = render(run.read())
    assert answer.text == page
    assert answer.headers["content-security-policy"] == policy_of(page)
    assert answer.headers["content-security-policy"].endswith("frame-ancestors 'none'")
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_a_page_without_a_policy_of_its_own_gets_that_of_the_app() -> None:
    assert policy_of("<p>") == POLICY
    page = '<meta http-equiv="Content-Security-Policy" content="script-src &#39;sha256-x&#39;">'
    assert policy_of(page) == "script-src 'sha256-x'; frame-ancestors 'none'"


def test_reports_are_made_once_for_each_state_of_the_files(
    runs: dict[str, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    monkeypatch.setattr(audit, "render", lambda record: made.append(record) or "page")
    render_cache, run = RenderCache(), runs["films"]
    assert render_cache.report(run) == render_cache.report(run) == "page"
    render_cache.report(replace(run, stamp=()))
    assert len(made) == 2


def test_what_is_kept_goes_when_there_is_no_room() -> None:
    kept, made = LruCache(10, len), []
    for key in "abacba":
        kept.get(key, lambda key=key: made.append(key) or key * 4)
    assert "".join(made) == "abcba"
    assert kept.get("large", lambda: "x" * 99) == "x" * 99


def test_runs_are_compared_on_one_page(client: TestClient, runs: dict[str, Run]) -> None:
    chosen = [runs["films"].id, runs["a/first"].id]
    answer = client.get("/compare", params={"run": [*chosen, chosen[0]], "search": "ignored"})
    assert answer.status_code == 200
    assert "films" in answer.text and "a/first" in answer.text
    assert answer.headers["content-security-policy"] == policy_of(answer.text)
    assert answer.headers["content-security-policy"] != POLICY


@pytest.mark.parametrize("count", [0, 1, 13])
def test_too_few_or_too_many_are_not_compared(client: TestClient, record: Record, tmp_path: Path, count: int) -> None:
    small = synthetic_record(count=8, explainers=("attention", "leave_one_out"), audits=("agreement",))
    for place in range(count):
        small.write(tmp_path / str(place))
    client = TestClient(create(Settings((tmp_path,)), {}), base_url=HOME)
    chosen = [run.id for run in Library([tmp_path]).runs()]
    answer = client.get("/compare", params={"run": chosen})
    assert answer.status_code == 422
    assert "Choose 2 to 12 runs" in answer.text
    assert client.get("/plots", params={"run": chosen}).status_code == (422 if count > 12 else 200)


def test_a_run_that_is_gone_is_said(client: TestClient, runs: dict[str, Run]) -> None:
    for address in ("/compare", "/plots"):
        answer = client.get(address, params={"run": [runs["films"].id, "0123456789abcdef"]})
        assert answer.status_code == 422
        assert "not there any more" in answer.text


def test_plots_put_one_figure_of_each_run_side_by_side(client: TestClient, runs: dict[str, Run]) -> None:
    chosen = [runs["films"].id, runs["other"].id]
    page = Page(client.get("/plots", params={"figure": "adversary", "run": chosen}).text)
    images = [part for tag, part, _ in page.elements if tag == "img"]
    assert [image["src"] for image in images] == [f"/runs/{id}/figures/adversary.svg" for id in chosen]
    assert all("Histogram" in str(image["alt"]) for image in images)
    links = [str(part["href"]) for tag, part, _ in page.elements if tag == "a"]
    assert f"/plots?figure=permutation&run={chosen[0]}&run={chosen[1]}" in links
    assert f"/plots?figure=adversary_by_attention&run={chosen[0]}&run={chosen[1]}" in links
    assert f"/runs/{chosen[0]}/figures/adversary.pdf?download=1" in links
    boxes = [part for tag, part, _ in page.elements if tag == "input" and "checked" in part]
    assert [box["value"] for box in boxes] == chosen


def test_a_figure_that_a_run_lacks_is_said(client: TestClient, runs: dict[str, Run]) -> None:
    page = Page(client.get("/plots", params={"figure": "roar", "run": runs["films"].id}).text)
    assert page.texts("p", "none") == ["This run has no such figure."]
    assert client.get(f"/runs/{runs['films'].id}/figures/roar.svg").status_code == 404


def test_figures_are_offered_by_the_audits_that_were_run(runs: dict[str, Run]) -> None:
    found = list(runs["films"].figures)
    render_cache = RenderCache()
    assert found[0] == "verdict"
    assert "truth" not in found
    assert all(render_cache.figure(runs["films"], name) is not None for name in found)


def test_a_figure_on_a_page_follows_its_colours_and_asks_for_nothing(client: TestClient, runs: dict[str, Run]) -> None:
    answer = client.get(f"/runs/{runs['films'].id}/figures/verdict.svg")
    root = ElementTree.fromstring(answer.text)
    assert root.tag.endswith("svg")
    assert "prefers-color-scheme: dark" in answer.text
    assert answer.headers["content-type"].startswith("image/svg+xml")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'")
    assert "script-src" not in policy
    assert not re.search(r"<script|href=|url\(http", answer.text)


@pytest.mark.parametrize(("ending", "start"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_figures_are_handed_out_for_papers(client: TestClient, runs: dict[str, Run], ending: str, start: bytes) -> None:
    answer = client.get(f"/runs/{runs['films'].id}/figures/verdict.{ending}", params={"download": "1"})
    assert answer.content.startswith(start)
    assert answer.headers["content-disposition"].startswith("attachment; filename=")
    assert "prefers-color-scheme" not in answer.content.decode("latin-1")


def test_a_live_model_is_linked_from_its_runs(folder: Path, runs: dict[str, Run], record: Record) -> None:
    def linked(name: str, live_model: Live) -> list[bool]:
        client = TestClient(create(Settings((folder,)), {name: live_model}), base_url=HOME)
        pages = (client.get(f"/runs/{runs[each].id}").text for each in ("a/first", "films", "other"))
        return ["Explain a text with this model" in page for page in pages]

    assert linked(str(folder / "a" / "model"), Live()) == [True, False, False]
    assert linked("hf:somewhere", Live(sha256=record.summary["model"]["sha256"])) == [True, True, False]
    assert linked("hf:somewhere", Live()) == [False, False, False]
