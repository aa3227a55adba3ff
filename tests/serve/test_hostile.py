"""Texts, names and addresses that mean harm: shown as text, or not there."""

from __future__ import annotations

import http.client
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree

import pyarrow as pa
import pytest
from fastapi.testclient import TestClient

from assay.intervene.edits import Act
from assay.records import Record
from assay.serve.library import Library, Run
from assay.serve.safety import Settings
from assay.serve.server import create
from tests.report.parsed import Page
from tests.report.synthetic import synthetic_record
from tests.serving import served

HOME = "http://127.0.0.1:8765"
HOSTILE = {
    "script": "<script>alert(1)</script>",
    "attribute": "\"><img src=x onerror=alert(1)>' onmouseover='alert(1)",
    "closing": "</title></style></script></textarea><svg onload=alert(1)>",
    "template": "{{ 7 * 7 }}{% raw %}${7*7}#{7*7}",
    "right to left": "\u202egnp.exe\u202c \u2067سلام\u2069 \u200f",
    "null bytes": "a\x00b\x1b[31mc\x7f",
    "formula": '=HYPERLINK("http://evil.example";"x")',
    "other formula": "@SUM(1+1)*cmd|' /C calc'!A0",
    "path": "../../../../etc/passwd",
    "absolute path": "/etc/passwd",
    "escaped path": "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "lines": "one\ntwo\r\n\tthree 'four' \"five\" `six` $(seven)",
    "address": "javascript:alert(1)//http://evil.example/",
    "comment": "<!-- --!> <![CDATA[ ]]> &lt;b&gt; &#60;b&#62;",
}
CONTROL = dict.fromkeys([*range(9), *range(11, 13), *range(14, 32), 127], "\ufffd")
LONG = "<b>long</b> " * 10**6  # more than 10 MB
VIEWS = (
    "/runs",
    "/runs/{0}",
    "/runs/{0}/report",
    "/plots?run={0}&run={1}&figure=adversary",
    "/compare?run={0}&run={1}",
)


def spoilt(record: Record, text: str) -> Record:
    """The record with this text in every place that comes from outside."""
    summary = record.summary
    corpus = {"name": text, "classes": [text, f"other {text}"], "licence": text, "skipped": {text: 3}}
    model = {"description": text, "sha256": text, "folder": text}
    audits = {name: about | {"question": text, "paper": text} for name, about in summary["audits"].items()}
    told = {"command": text, "created": text, "platform": text, "versions": {text: text}, "left_out": {text: text}}
    groups = dict(zip(summary["corpus"]["classes"], corpus["classes"], strict=True))
    findings = [row | {"group": groups.get(row["group"], row["group"])} for row in summary["findings"]]
    plan = summary["plan"] | {"corpus": text, text: text}
    rows = record.examples.to_pylist()
    for row in rows[:20]:
        row |= {"text": f"{text} {row['text']}", "query": text}
        row |= {
            "starts": [at + len(text) + 1 for at in row["starts"]],
            "ends": [at + len(text) + 1 for at in row["ends"]],
        }
        row["starts"][0] = 0  # the first word holds it all
    return replace(
        record,
        summary=summary
        | told
        | {"corpus": summary["corpus"] | corpus, "model": summary["model"] | model}
        | {"audits": audits, "findings": findings, "plan": plan}
        | {"explainers": dict.fromkeys(summary["explainers"], text)},
        examples=pa.Table.from_pylist(rows),
    )


@pytest.fixture(scope="module")
def record() -> Record:
    return synthetic_record(count=30, explainers=("attention", "gradient", "leave_one_out"))


def opened(folder: Path) -> tuple[TestClient, list[Run]]:
    return TestClient(create(Settings((folder,)), {}), base_url=HOME), Library([folder]).runs()


def scripts(page: Page) -> list[str]:
    """The scripts of a page that a browser would run."""
    found = [(part, "".join(texts)) for tag, part, texts in page.elements if tag == "script"]
    return [f"{part.get('src')}: {text}" for part, text in found if part.get("type") != "application/json"]


@pytest.fixture(scope="module")
def harmless(record: Record, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The scripts of each view of runs that mean no harm."""
    folder = tmp_path_factory.mktemp("harmless")
    for name in "ab":
        record.write(folder / name)
    client, runs = opened(folder)
    return {view: scripts(Page(client.get(view.format(*(run.id for run in runs))).text)) for view in VIEWS}


def check(page: Page, own: list[str]) -> None:
    """Nothing in the page can run, or lead elsewhere, that is not there in a harmless one."""
    assert scripts(page) == own
    for tag, part, _ in page.elements:
        assert not [name for name in part if name.startswith("on")], (tag, part)
        assert tag not in ("iframe", "object", "embed", "base"), (tag, part)
        assert tag != "img" or str(part["src"]).startswith("/runs/"), part
        for name in ("href", "src", "action", "formaction"):
            address = urlsplit(str(part.get(name, "")))
            assert address.scheme in ("", "data"), (tag, part)
            assert not address.netloc, (tag, part)


@pytest.fixture(scope="module")
def spoilt_runs(record: Record, tmp_path_factory: pytest.TempPathFactory) -> tuple[TestClient, dict[str, Run]]:
    """A run for each hostile text, under the name of its kind."""
    folder = tmp_path_factory.mktemp("spoilt")
    for kind, text in HOSTILE.items():
        spoilt(record, text).write(folder / kind)
    client, runs = opened(folder)
    return client, {run.name: run for run in runs}


def test_hostile_texts_are_text_in_the_list(
    spoilt_runs: tuple[TestClient, dict[str, Run]], harmless: dict[str, list[str]]
) -> None:
    page = Page(spoilt_runs[0].get("/runs?sort=name").text)
    check(page, harmless["/runs"])
    lines = [" ".join(text.translate(CONTROL).split()) for _, text in sorted(HOSTILE.items())]
    assert [" ".join(shown.split()) for shown in page.texts("bdi", "corpus")] == lines


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_texts_are_text_on_the_page_of_a_run(
    spoilt_runs: tuple[TestClient, dict[str, Run]], harmless: dict[str, list[str]], kind: str
) -> None:
    client, runs = spoilt_runs
    text = client.get(f"/runs/{runs[kind].id}").text
    check(Page(text), harmless["/runs/{0}"])
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f]", text)
    (made,) = (shown for shown in Page(text).texts("pre") if not shown.startswith("assay "))
    assert " ".join(made.split()) == " ".join(HOSTILE[kind].translate(CONTROL).split())


@pytest.mark.parametrize("turn", [0, 5, 10])
def test_hostile_texts_are_text_on_pages_of_their_own(
    record: Record, harmless: dict[str, list[str]], tmp_path: Path, turn: int
) -> None:
    every = [*HOSTILE.values()]
    for name in "ab":
        spoilt(record, " ".join(every[turn:] + every[:turn])).write(tmp_path / name)
    client, runs = opened(tmp_path)
    for view in VIEWS[2:]:
        answer = client.get(view.format(*(run.id for run in runs)))
        assert answer.status_code == 200, view
        check(Page(answer.text), harmless[view])
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
        assert "unsafe-eval" not in policy and not re.search("script-src[^;]*'unsafe-inline'", policy)


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_names_of_classes_are_text_in_figures(
    spoilt_runs: tuple[TestClient, dict[str, Run]], kind: str
) -> None:
    client, runs = spoilt_runs
    root = ElementTree.fromstring(client.get(f"/runs/{runs[kind].id}/figures/adversary.svg").content)
    tags = {node.tag.rpartition("}")[2] for node in root.iter()}
    assert tags <= {"svg", "title", "style", "g", "path", "text", "line", "rect", "defs", "clipPath", "tspan"}
    assert not [name for node in root.iter() for name in node.attrib if name.lower().startswith("on")]


def test_a_cell_of_ten_megabytes_does_not_make_a_page_of_ten(record: Record, tmp_path: Path) -> None:
    rows = record.examples.to_pylist()
    one = {name: [0.5] for name in rows[0] if name.startswith("score:")} | {"adversary": [1.0]}
    rows[0] |= one | {"text": "x" * 10**7, "starts": [0], "ends": [10**7]}
    summary = record.summary
    corpus = summary["corpus"] | {"name": LONG, "classes": [LONG, "other"]}
    long = replace(
        record,
        summary=summary | {"corpus": corpus, "command": LONG},
        examples=pa.Table.from_pylist(rows, schema=record.examples.schema),
    )
    long.write(tmp_path / "a")
    record.write(tmp_path / "b")
    client, runs = opened(tmp_path)
    for view in VIEWS:
        answer = client.get(view.format(*(run.id for run in runs)))
        assert answer.status_code == 200
        assert len(answer.content) < 2 * 10**6, view


NAMES = [
    "<img src=x onerror=alert(1)>",
    "\"quoted\" 'twice' `id` $(id) ; & | > < * ?",
    "two\nlines\rand\ttabs",
    "\u202egnp.exe",
    "%2e%2e%2fetc%2fpasswd",
    "x..%2f..%2f",
    "x ... ..",
    "-rf --out=x",
    "{{ 7 * 7 }}",
    "con.summary.json",
]


def test_hostile_names_of_folders_are_text_and_can_be_copied_into_a_shell(
    record: Record, harmless: dict[str, list[str]], tmp_path: Path
) -> None:
    for place, name in enumerate(NAMES):
        record.write(tmp_path / name / NAMES[place - 1])
    client, runs = opened(tmp_path)
    assert len(runs) == len(NAMES)
    check(Page(client.get("/runs").text), harmless["/runs"])
    for run in runs:
        text = client.get(f"/runs/{run.id}").text
        check(Page(text), harmless["/runs/{0}"])
        (command,) = re.findall(r"<code>(assay report .*?)</code>", text, re.DOTALL)
        assert shlex.split(unescape(command)) == ["assay", "report", str(run.folder)]
        answer = client.get(f"/runs/{run.id}/files/summary.json")
        assert answer.headers["content-disposition"] == f'attachment; filename="assay-{run.id}-summary.json"'


def test_a_name_that_is_no_text_breaks_no_page(record: Record, tmp_path: Path) -> None:
    record.write(tmp_path / "good")
    record.write(tmp_path / "odd")
    try:
        os.rename(os.fsencode(tmp_path / "odd"), os.fsencode(tmp_path) + b"/odd \xff\xfe")  # noqa: PTH104
    except OSError:
        pytest.skip("this disk holds texts only")
    client, runs = opened(tmp_path)
    assert "good" in {run.name for run in runs}
    assert "odd \ufffd\ufffd" in client.get("/runs").text


@pytest.fixture(scope="module")
def asked(record: Record, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Run]]:
    """A served library, with a secret beside it."""
    place = tmp_path_factory.mktemp("place")
    (place / "secret").write_text("a secret")
    (place / "summary.json").write_text("a secret")
    record.write(place / "runs" / "one")
    (run,) = Library([place / "runs"]).runs()
    with served({}, place / "runs") as address:
        yield address, run


def raw(address: str, path: str, method: str = "GET") -> tuple[int, bytes]:
    """The answer to a request for just this path, which no client has put in order."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc)
    connection._validate_path = lambda url: None  # type: ignore[attr-defined]
    connection.putrequest(method, path, skip_accept_encoding=True)
    connection.endheaders()
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, text


OUT = [
    "../secret",
    "..%2fsecret",
    "%2e%2e/secret",
    "%2e%2e%2fsecret",
    "..%5csecret",
    "%252e%252e%252fsecret",
    "....//secret",
]
PATHS = [
    *(f"/runs/{out}" for out in OUT),
    *(f"/runs/ID/{out}" for out in OUT),
    *(f"/runs/ID/files/{out}" for out in OUT),
    *(f"/runs/ID/figures/{out}" for out in OUT),
    *(f"/static/{out}" for out in OUT),
    *(f"/static/report/{out}" for out in OUT),
    "/static/../app.py",
    "/static/%2e%2e/app.py",
    "/static/..%2fapp.py",
    "/static/report/..%2fpage.py",
    "/static/report/%2e%2e/templates/report.css",
    "/static//etc/passwd",
    "/static/%2fetc%2fpasswd",
    "//etc/passwd",
    "/runs/%2fetc%2fpasswd",
    "/runs/FOLDER",
    "/runs/one",
    "/runs/ID%00",
    "/runs/ID%0a",
    "/runs/%00",
    "/runs/ID/files/summary.json%00.parquet",
    "/runs/ID/files/plan.json",
    "/runs/ID/files/",
    "/runs/ID/files/FOLDER",
    "/runs/ID/figures/verdict.svg%00",
    "/runs/ID/figures/verdict.exe",
    "/runs/ID/figures/verdict",
    "/runs/ID/figures/.svg",
    "/runs/ID/figures/__class__.svg",
    "/runs/ID/figures/..%2f..%2fverdict.svg",
    "/runs/" + "x" * 5000,
]


@pytest.mark.parametrize("path", PATHS)
def test_no_address_leads_to_another_file(asked: tuple[str, Run], path: str) -> None:
    address, run = asked
    wanted = path.replace("ID", run.id).replace("FOLDER", quote(str(run.folder), safe=""))
    status, text = raw(address, wanted)
    assert status in (400, 403, 404), status
    assert b"a secret" not in text and b"root:" not in text and b"from __future__" not in text


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_runs_can_only_be_read(asked: tuple[str, Run], method: str) -> None:
    address, run = asked
    for path in ("/runs", f"/runs/{run.id}", f"/runs/{run.id}/files/summary.json", "/compare", "/plots"):
        assert raw(address, path, method)[0] == 405
    assert run.file("summary.json").is_file()


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_questions_are_text(asked: tuple[str, Run], harmless: dict[str, list[str]], kind: str) -> None:
    _, run = asked
    client = TestClient(create(Settings((run.root,)), {}), base_url=HOME)
    text = HOSTILE[kind]
    for name in ("search", "corpus", "model", "grade", "sort", "run"):
        answer = client.get("/runs", params={name: text})
        assert answer.status_code in (200, 422)
        check(Page(answer.text), harmless["/runs"] if answer.status_code == 200 else [])
    for view in ("/plots", "/compare"):
        answer = client.get(view, params={"figure": text, "run": text})
        assert answer.status_code == 422
        check(Page(answer.text), [])


class Echo:
    """A live model that answers with what it was asked."""

    about: dict[str, Any] = {  # noqa: RUF012
        "name": HOSTILE["script"],
        "classes": [HOSTILE["script"]],
        "explainers": [],
        "usual": [],
        "trees": [],
    }

    def explain(
        self, text: str, query: str | None, explainers: Sequence[str], target: str | None, tree: str | None = None
    ) -> dict[str, Any]:
        return {"text": text, "query": query, "words": text.split()}

    def attend(self, text: str, query: str | None, act: Act) -> dict[str, Any]:
        return {"text": text}


@pytest.mark.parametrize("kind", HOSTILE)
def test_scripts_get_hostile_texts_as_json_and_whole(tmp_path: Path, kind: str) -> None:
    client = TestClient(create(Settings((tmp_path,)), {"echo": Echo()}), base_url=HOME)
    asked = {"model": "echo", "text": HOSTILE[kind], "query": None, "explainers": [], "target": None}
    answer = client.post("/api/explain", json=asked)
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.status_code in (200, 422)
    assert answer.status_code == 422 or answer.json()["text"] == HOSTILE[kind]


def test_a_model_of_a_hostile_name_is_text_on_the_page_that_explains(tmp_path: Path) -> None:
    client = TestClient(
        create(Settings((tmp_path,)), {HOSTILE["script"]: Echo(), HOSTILE["closing"]: Echo()}), base_url=HOME
    )
    plain = TestClient(create(Settings((tmp_path,)), {"echo": Echo()}), base_url=HOME)
    check(Page(client.get("/").text), scripts(Page(plain.get("/").text)))


def test_a_text_of_ten_megabytes_is_refused_in_a_sentence(tmp_path: Path) -> None:
    client = TestClient(create(Settings((tmp_path,)), {"echo": Echo()}), base_url=HOME)
    asked = {"model": "echo", "text": LONG, "query": None, "explainers": [], "target": None}
    answer = client.post("/api/explain", json=asked)
    assert 400 <= answer.status_code < 500
    assert len(answer.json()["detail"]) < 300
