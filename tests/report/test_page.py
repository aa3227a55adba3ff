from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from assay.grading.grade import verdicts
from assay.records import Record
from assay.report import html
from assay.report.audit import SCRIPTS, render, write
from assay.report.html import static
from assay.report.outcome import outcome
from assay.writing import interval, number
from tests.report.parsed import Page, words
from tests.report.synthetic import FAITHFUL, remade

HOSTILE_CLASSES = ("<script>alert(3)</script>", '"><img src=x onerror=alert(4)>')


def test_the_verdict_comes_first_with_the_numbers_of_the_findings(record: Record, page: str) -> None:
    shown = Page(page)
    assert words(shown.texts("h1")[0]) == outcome(record).headline
    table = page[page.index('<table class="stack verdicts">') : page.index("</table>")]
    cells = Page(table + "</table>").texts("td")
    per_row = [cells[place : place + 6] for place in range(0, len(cells), 6)]
    for verdict, (grade, effect, span, null, n, told) in zip(verdicts(record), per_row, strict=True):
        assert grade.endswith(verdict.grade)
        expected = (number(verdict.effect), interval(verdict.low, verdict.high), number(verdict.null))
        assert (effect, span, null) == expected
        assert n == (str(verdict.n) if verdict.n else "–")
        assert words(told).startswith(words(verdict.sentence))


def test_every_finding_stands_in_a_table(record: Record, page: str) -> None:
    rows = [words(row) for row in Page(page).texts("tr")]
    for f in record.findings:
        spread = f"{number(f.mean)} ± {number(f.std)}"
        subject = f.subject.replace("~", " ~ ")
        wanted = [row for row in rows if row.startswith(subject) and f" {f.group} " in row and spread in row]
        assert any(f"{interval(f.low, f.high)} {f.n}" in row for row in wanted), f


def test_what_was_audited_and_how_is_told(record: Record, page: str) -> None:
    shown = words("".join(Page(page).texts("main")))
    for fact in (
        "accuracy 0.842",
        "1,234,567",
        "empty text (2), longer than 5,000 tokens (1)",
        "4,000 train",
        "CC0",
    ):
        assert fact in shown
    for origin in (record.summary["command"], "torch 2.13.0", "9f" * 32, "2026-01-02T03:04:05+00:00"):
        assert origin in shown


def test_nothing_in_a_record_becomes_markup(make: Callable[..., Record]) -> None:
    record = make(count=14, classes=HOSTILE_CLASSES)
    nasty = "<script>alert(9)</script>"
    summary = record.summary | {"command": nasty, "platform": nasty, "created": nasty, "assay": '"><b>'}
    summary["corpus"] = record.summary["corpus"] | {"name": nasty, "licence": nasty, "skipped": {nasty: 1}}
    summary["explainers"] = record.summary["explainers"] | {"</style><script>": nasty}
    summary["audits"] = record.summary["audits"] | {nasty: {"question": nasty, "paper": nasty, "kind": nasty}}
    summary["plan"] = record.summary["plan"] | {"note": nasty}
    shown = Page(render(remade(record, summary=summary)))
    tags = {tag for tag, _, _ in shown.elements}
    kept, *scripts = shown.texts("script")
    assert scripts == [static(name).strip() for name in SCRIPTS]
    assert not set("<>&\u2028\u2029") & set(kept)
    assert json.loads(kept)["classes"] == list(HOSTILE_CLASSES)
    assert not tags & {
        "img",
        "iframe",
        "object",
        "embed",
        "form",
        "foreignobject",
        "base",
        "a:href",
    }
    for _, attributes, _ in shown.elements:
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "style", "srcset")]
        assert (attributes.get("href") or "#").startswith(("#", "data:,"))
    assert nasty in "".join(shown.texts("main"))


def test_shown_texts_are_as_written(make: Callable[..., Record]) -> None:
    record = make(count=14)
    heats = Page(render(record)).texts("p", "heat")
    for text in record.examples["text"].to_pylist():
        if len(text.split()) < 100:
            assert heats.count(text.strip()) == 7


def test_a_page_asks_for_nothing(page: str) -> None:
    outside = page.replace("http://www.w3.org/2000/svg", "")
    assert "http:" not in outside
    assert "https:" not in outside
    assert not re.findall(r"url\((?!#)", page)
    assert "@import" not in page
    (policy,) = (e[1]["content"] for e in Page(page).elements if e[1].get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    inlined = [base64.b64encode(hashlib.sha256(static(name).encode()).digest()).decode() for name in SCRIPTS]
    hashes = " ".join(f"'sha256-{each}'" for each in inlined)
    assert policy.split("; ")[:2] == ["default-src 'none'", f"script-src {hashes}"]


def test_ids_are_unique_and_links_and_labels_lead_to_them(page: str) -> None:
    elements = Page(page).elements
    names = [attributes["id"] for _, attributes, _ in elements if "id" in attributes]
    assert len(names) == len(set(names))
    for _, attributes, _ in elements:
        target = attributes.get("href") or attributes.get("aria-labelledby")
        if target and not target.startswith("data:"):
            assert target.removeprefix("#") in names


def test_the_same_record_gives_the_same_page(record: Record, page: str, drawn_anew: None) -> None:
    assert render(record) == page


def test_long_texts_do_not_make_a_large_page(make: Callable[..., Record]) -> None:
    record = make(count=24, sentences=60, audits=("agreement", "permutation", "adversary", "truth"))
    text = render(record)
    assert len(text.encode()) < 1_000_000
    assert "more tokens" in text


def test_a_short_page_is_small(page: str) -> None:
    assert len(page.encode()) < 500_000


@pytest.mark.parametrize(
    "options",
    [
        {"audits": ()},
        {"audits": ("truth",)},
        {"audits": ("adversary",), "explainers": ("attention",), "kind": "bracket"},
        {"explainers": ("gradient", "random")},
        {"explainers": ("random",)},
        {"classes": ("only",)},
        {"audits": FAITHFUL, "explainers": ("attention",)},
        {"audits": ("erasure",), "explainers": ("random",)},
        {"audits": ("sanity", "stability"), "explainers": ("gradient", "leave_one_out")},
        {"classes": tuple(f"class {place}" for place in range(12))},
        {"count": 1},
        {"count": 2, "audits": ("agreement", "truth")},
    ],
    ids=str,
)
def test_any_part_may_be_missing(options: dict[str, object], make: Callable[..., Record]) -> None:
    record = make(**({"count": 30} | options))
    shown = Page(render(record))
    assert words(shown.texts("h1")[0]).startswith(outcome(record).headline.split(":")[0])


def test_a_record_without_examples_has_a_page(make: Callable[..., Record]) -> None:
    full = make(count=10)
    empty = Record(full.summary | {"findings": []}, full.instances.slice(0, 0), full.examples.slice(0, 0))
    assert "This run cannot say" in render(empty)


def test_a_summary_may_know_little(record: Record) -> None:
    corpus = {"name": "mine", "classes": ["negative", "positive"]}
    known = {key: record.summary[key] for key in ("assay", "created", "command", "explainers", "findings")}
    audits = {name: {"kind": "sample"} for name in ("agreement", "permutation", "adversary")}
    bare = remade(record, summary=known | {"corpus": corpus, "audits": audits})
    assert "300 test texts" in render(bare)


def test_an_audit_that_does_not_apply_says_so(record: Record) -> None:
    about = record.summary["audits"]["permutation"] | {
        "applies": False,
        "why": "This model has no attention.",
    }
    audits = record.summary["audits"] | {"permutation": about}
    text = render(remade(record, summary=record.summary | {"audits": audits}))
    start = text.index('<details class="card" id="audit-3">')
    card = text[start : text.index("</details>", start)]
    assert Page(f"{card}</details>").texts("span", "badge") == ["– not applicable"]
    assert card.count("This model has no attention.") == 2
    assert "After Jain and Wallace (2019)" in card
    assert "The numbers are" not in card


def test_the_second_text_of_a_pair_stands_above_the_first(make: Callable[..., Record]) -> None:
    record = make(count=3)
    place = record.examples.column_names.index("query")
    long = " ".join(f"word{number}" for number in range(300))
    asked = record.examples.set_column(place, "query", [["who <i>sings</i>?", "سلام دنیا", long]])
    text = render(replace(record, examples=asked))
    queries = Page(text).texts("p", "query")
    assert {"question or hypothesiswho <i>sings</i>?", "question or hypothesisسلام دنیا"} < set(queries)
    assert any(query.endswith("…") and 500 < len(query) < 700 for query in queries)
    for part in text.split('<details class="example"')[1:]:
        assert part.index('<p class="query">') < part.index('class="heat"')
    assert 'class="query"' not in render(record).partition("</style>")[2]


def test_bytes_that_are_no_text_do_not_stop_the_page(make: Callable[..., Record], tmp_path: Path) -> None:
    record = make(count=3)
    record = remade(record, summary=record.summary | {"command": "assay audit --corpus caf\udce9.csv"})
    write(record, tmp_path / "report.html")
    assert "caf?.csv" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_page_is_written_whole_or_not_at_all(record: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "new" / "report.html"
    monkeypatch.setattr(html, "render", lambda _: "first")
    write(record, path)

    def full(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(html, "render", lambda _: "second")
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write(record, path)
    assert path.read_text(encoding="utf-8") == "first"
    assert [file.name for file in path.parent.iterdir()] == ["report.html"]


def test_verdicts_need_neither_torch_nor_a_drawing_library() -> None:
    code = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name in ('torch', 'altair', 'jinja2', 'vl_convert'): raise ImportError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "import assay.report.audit, assay.report.tables, assay.report.heatmaps\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
