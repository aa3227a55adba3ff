"""Files from outside: what is taken, what is refused, and that all of it stays text under names of ours."""

from __future__ import annotations

import json
import os
import re
import time

import pytest
from fastapi.testclient import TestClient

from assay.errors import AssayError
from assay.serve import uploads
from assay.serve.safety import Limits, Settings
from assay.serve.server import create
from assay.serve.uploads import CELL, SHOWN, Uploads, inspected, shown

ROWS = [("a fine film", "good"), ("a dull film", "bad"), ("quite fine", "good"), ("so dull", "bad")]
PLAIN = "text,label\n" + "".join(f"{text},{label}\n" for text, label in ROWS)
HOSTILE = [
    "<script>alert(1)</script>",
    "\u202etxt.exe\u202c \u2067right to left\u2069",
    '=HYPERLINK("http://evil.example";"x")',
    "+1+cmd|' /C calc'!A0",
    "../../etc/passwd",
    "{{ 7 * 7 }} ${7*7}",
    "emoji 👩‍👩‍👧 and a\u0301",
]


@pytest.fixture
def client(tmp_path):
    app = create(Settings((tmp_path,), limits=Limits(upload=40_000, rows=100)), {})
    return TestClient(app, base_url="http://127.0.0.1:8765")


def put(client: TestClient, body: bytes | str, kind: str = "csv", name: str = "films.csv"):
    content = body.encode() if isinstance(body, str) else body
    return client.put("/api/uploads", params={"kind": kind, "name": name}, content=content)


def look(folder, text: str | bytes, kind: str = "csv", rows: int = 100):
    path = folder / f"table.{kind}"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return inspected(path, kind, rows)


def test_what_is_in_a_file_is_told(client):
    answer = put(client, PLAIN)
    assert answer.status_code == 201
    found = answer.json()
    assert (found["rows"], found["text"], found["label"], found["query"]) == (4, "text", "label", None)
    assert found["preview"][0] == ["a fine film", "good"]
    by_name = {column["name"]: column["classes"] for column in found["columns"]}
    assert by_name == {"text": None, "label": [{"name": "good", "count": 2}, {"name": "bad", "count": 2}]}
    assert client.get(f"/api/uploads/{found['id']}").json() == found


def test_a_file_is_stored_under_a_name_of_ours_whatever_it_is_called(client, tmp_path):
    for name in (
        "../../../evil.csv",
        "/etc/passwd",
        "..\\..\\boot.ini",
        "<img src=x onerror=alert(1)>.csv",
        "a\0b.csv",
        "",
    ):
        assert put(client, PLAIN, name=name).status_code == 201
    stored = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()]
    assert stored
    assert all(re.fullmatch(r"uploads/[0-9a-f]{32}\.(csv|json)", path) for path in stored)


def test_the_name_of_a_file_is_shown_as_a_short_text():
    assert shown("C:\\texts\\../films\x00\n.csv", "csv") == "films.csv"
    assert shown("<b>.csv", "csv") == "<b>.csv"
    assert shown("", "tsv") == "a tsv file"
    assert len(shown("x" * 900, "csv")) == 120


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_cells_come_back_as_they_are(client, hostile):
    body = "".join(
        json.dumps({"text": f"{hostile} {n}", hostile: n % 2, "label": hostile if n % 2 else "b"}) + "\n"
        for n in range(6)
    )
    answer = put(client, body, "jsonl")
    assert answer.headers["content-type"] == "application/json"
    found = answer.json()
    assert found["preview"][0][0] == f"{hostile} 0"
    assert hostile in [column["name"] for column in found["columns"]]
    assert {one["name"] for one in found["columns"][2]["classes"]} == {hostile, "b"}


def test_a_file_that_is_too_large_is_refused_while_it_comes(client, tmp_path):
    def pieces():
        yield b"text,label\n"
        for _ in range(5000):
            yield b"a fine film,good\n"

    answer = client.put("/api/uploads?kind=csv", content=pieces())  # without a length
    assert answer.status_code == 413
    assert answer.json()["detail"].startswith("The file is larger than 0.0381 MB")
    assert put(client, b"x" * 50_000).status_code == 413
    assert not list((tmp_path / "uploads").iterdir())


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        (b"", "csv", "is empty"),
        (b"text,label\n", "csv", "holds no rows"),
        (b"text,label\n\xff\xfe,a\n", "csv", "is not UTF-8"),
        (PLAIN.encode("utf-16"), "csv", "is not UTF-8"),
        (PLAIN.encode("utf-16-le"), "csv", "null byte (line 1)"),
        (b"text,label\na\0b,c\n", "csv", "null byte (line 2)"),
        (b"text\na\nb\n", "csv", "one column alone"),
        (b"text,text\na,b\n", "csv", "two columns"),
        (b"text,label\na,b,c\n", "csv", "3 values under 2 column names"),
        (b'text,label\n"a"b,c\n', "csv", "doubled"),
        (b"a fine film,good\na dull film,bad\nsome,good\nmore,bad\n", "csv", "must name the columns"),
        (("x" * 300 + ",label\na,b\n").encode(), "csv", "300 characters"),
        (",".join(f"c{n}" for n in range(300)).encode() + b"\n", "csv", "more than 200 columns"),
        ("\t".join(f"c{n}" for n in range(300)).encode() + b"\n", "tsv", "more than 200 columns"),
        (b"text,label\n" + b"a,b\n" * 101, "csv", "more than 100 rows"),
        (b'{"text": "a", "label": "b"}\n' * 101, "jsonl", "more than 100 rows"),
        (json.dumps({f"c{n}": 1 for n in range(300)}).encode(), "jsonl", "more than 200 columns"),
        (b'[{"text": "a"}]', "jsonl", "one JSON list"),
        (b'{"text": "a"}\n{"text"\n', "jsonl", "line 2 is not valid JSON"),
        (b"1\n2\n", "jsonl", "not a JSON object"),
        (b"[" * 30_000, "jsonl", "one JSON list"),
        (b'{"a":' * 5_000, "jsonl", "not valid JSON"),
        (b'{"te\\u0000xt": "a", "label": "b"}\n', "jsonl", "no name can have"),
        (b'{"\\ud800": "a", "label": "b"}\n', "jsonl", "no name can have"),
        (b'"' + b"x" * 30_000, "csv", "30,001 characters"),
        (b'text,label\n"' + b"x" * 30_000, "csv", "unexpected end of data"),
    ],
)
def test_a_file_that_cannot_be_audited_is_refused_in_one_sentence(client, tmp_path, body, kind, said):
    answer = put(client, body, kind)
    assert answer.status_code == 422
    sentence = answer.json()["detail"]
    assert said in sentence
    assert str(tmp_path) not in sentence
    assert not list((tmp_path / "uploads").iterdir())


def test_a_cell_of_ten_megabytes_is_refused(tmp_path):
    with pytest.raises(AssayError, match="row 1 holds 10,000,000 characters"):
        look(tmp_path, "text,label\n" + "x" * 10_000_000 + ",a\nb,c\n")
    found = look(tmp_path, "text,label\n" + "x" * CELL + ",a\nb,c\n")
    assert len(found["preview"][0][0]) == SHOWN


def test_other_kinds_of_files_are_refused(client):
    assert put(client, b"PAR1", "parquet").status_code == 422
    assert put(client, PLAIN, "../csv").status_code == 422


@pytest.mark.parametrize("id", ["..", "%2e%2e%2fjob", "0" * 32, "0" * 31, "A" * 32])
def test_ids_of_no_file_lead_nowhere(client, id):
    assert client.get(f"/api/uploads/{id}").status_code == 404


def test_columns_are_guessed_by_name_and_by_what_they_hold(tmp_path):
    body = ",Titel,Meinung,Wert\n" + "".join(
        f"{n},ein recht langer Satz {n},{'gut' if n % 2 else 'schlecht'},{n % 3}\n" for n in range(12)
    )
    found = look(tmp_path, body)
    assert (found["text"], found["label"]) == ("Titel", "Meinung")
    found = look(tmp_path, "premise\thypothesis\tgold_label\n" + "a b\tc\tyes\nd e\tf\tno\n" * 3, "tsv")
    assert (found["text"], found["label"], found["query"]) == ("premise", "gold_label", "hypothesis")


def test_old_files_and_the_oldest_of_many_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(uploads, "MOST", 3)
    store = Uploads(tmp_path, Limits())
    store.folder.mkdir()
    now = time.time()
    ages = {"a": 100, "b": 10, "c": 20, "d": 30, "e": 2 * uploads.DAY}
    for letter, age in ages.items():
        for suffix in ("csv", "json"):
            path = store.folder / f"{letter * 32}.{suffix}"
            path.write_text("{}")
            os.utime(path, (now - age, now - age))
    part = store.folder / f"{'f' * 32}.part"
    part.touch()
    os.utime(part, (now - 2 * uploads.DAY,) * 2)
    store.tidy()
    assert sorted({path.stem[0] for path in store.folder.iterdir()}) == ["b", "c", "d"]
