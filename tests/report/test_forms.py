from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import typst
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from assay.grading.grade import verdicts
from assay.grading.leaderboard import leaderboard
from assay.records import Record
from assay.report import markdown, pdf
from assay.report.audit import document, write
from assay.report.outcome import outcome
from assay.report.save import FORMS, as_json
from assay.report.sections import grade, sections
from assay.writing import LONG, line
from tests.report.synthetic import remade

HOSTILE = (
    "<script>alert(1)</script>",
    "a | b \\| c \\",
    "`code` ``` *bold* _it_ ~~gone~~ [link](http://example.com) ![x](y)",
    "# heading\n\n- item\r\n> quoted\n| a | b |\n|---|---|",
    "12. item",
    "+ item",
    "\x00\x1b[31mred\x07 \u202eevil\u2066 \ufeff\udce9",
    '#read("/etc/hostname") #panic() $x$ ]] @label <label> \\u{41} // gone /* gone */',
    "&lt;b&gt; &#60; https://example.com www.example.com :// ://",
    "中文 日本語 한국어 سلام دنیا שלום 🎢 👩‍👩‍👧 ❤️",
    '=HYPERLINK("http://example.com")',
    "../../etc/passwd",
    "</details><img src=x onerror=alert(2)>",
    "w" * 400,
)


@pytest.fixture(scope="module")
def hostile(make: Callable[..., Record]) -> Record:
    """A record with a hostile text wherever one can come from outside."""
    record = make(count=15, classes=HOSTILE[:8], audits=("agreement", "permutation", "adversary", "truth"))
    bad = HOSTILE[0]
    summary = record.summary | {"command": HOSTILE[2], "platform": HOSTILE[6], "created": bad, "assay": HOSTILE[7]}
    summary["corpus"] = record.summary["corpus"] | {"name": HOSTILE[7], "licence": HOSTILE[1], "skipped": {bad: 1}}
    summary["model"] = record.summary["model"] | {"description": HOSTILE[3]}
    summary["explainers"] = record.summary["explainers"] | {HOSTILE[1]: HOSTILE[2]}
    summary["audits"] = record.summary["audits"] | {bad: {"question": HOSTILE[2], "paper": HOSTILE[3], "kind": bad}}
    summary["plan"] = record.summary["plan"] | {bad: list(HOSTILE)}
    texts = [*HOSTILE, *record.examples["text"].to_pylist()[len(HOSTILE) :]]
    rows = [
        row | _spans(text.encode("utf-8", "replace").decode(), row)
        for row, text in zip(record.examples.to_pylist(), texts, strict=True)
    ]
    return remade(record, summary=summary, examples=pa.Table.from_pylist(rows))


def _spans(text: str, row: dict[str, Any]) -> dict[str, Any]:
    """As many tokens as there were, each the whole text: the worst that a tokenizer may do."""
    size = len(row["starts"])
    return {"text": text, "query": text, "starts": [0] * size, "ends": [len(text)] * size}


@pytest.fixture(scope="module")
def small(make: Callable[..., Record]) -> Record:
    return make(count=24, audits=("agreement",))


@pytest.mark.parametrize("form", [form for form in FORMS if form != "html"])
def test_the_same_record_gives_the_same_bytes(form: str, small: Record, tmp_path: Path) -> None:
    one, other = tmp_path / f"one.{form}", tmp_path / f"other.{form}"
    write(small, one, form)
    write(small, other, form)
    assert one.read_bytes() == other.read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {one.name, other.name}


def test_the_document_holds_every_number_of_the_record(contest: Record) -> None:
    told = json.loads(as_json(document(contest, "json")), parse_constant=pytest.fail)
    assert (told["schema"], told["version"]) == ("assay.report", 1)
    assert told["findings"] == contest.summary["findings"]
    assert told["verdict"]["headline"] == outcome(contest).headline
    effects = {
        each["name"]: (each["grade"], each["effect"], each["low"], each["n"], each["null"])
        for each in told["verdict"]["explainers"]
    }
    assert effects == {v.name: (v.grade, v.effect, v.low, v.n, v.null) for v in verdicts(contest)}
    board, rows = leaderboard(contest), told["leaderboard"]["rows"]
    assert board is not None
    assert [row["explainer"] for row in rows] == [row.name for row in board.rows]
    for row in rows + told["leaderboard"]["baselines"]:
        for measure, cell in zip(told["leaderboard"]["measures"], row["cells"], strict=True):
            found = contest.finding(measure["audit"], row["explainer"], measure["measure"])
            assert cell["mean"] == (found and found.mean)
    assert [(a["name"], a["grade"], a["answer"]) for a in told["audits"]] == [
        (section.name, grade(contest, section.name)[0], section.answer) for section in sections(contest)
    ]


def test_scores_that_are_no_numbers_are_null_in_the_document_and_break_nothing(small: Record) -> None:
    rows = small.examples.to_pylist()
    for row in rows:
        row["score:attention"] = [math.nan] + [math.inf] * (len(row["starts"]) - 1)
    broken = replace(small, examples=pa.Table.from_pylist(rows, schema=small.examples.schema))
    told = json.loads(as_json(document(broken, "json")), parse_constant=pytest.fail)
    scores = [
        row["scores"]
        for group in told["examples"]
        for sample in group["examples"]
        for row in sample["rows"]
        if row["name"] == "attention"
    ]
    assert {score for row in scores for score in row} == {None}
    assert "| attention | none |" in markdown.render(document(broken, "md"))
    assert pdf.render(document(broken, "pdf")).startswith(b"%PDF")


def test_markdown_says_what_the_page_says(contest: Record) -> None:
    shown = "\n".join(_said(_parsed(markdown.render(document(contest, "md")))))
    assert outcome(contest).headline in shown
    for section in sections(contest):
        told = (section.title, section.question, section.answer, section.reading, grade(contest, section.name)[1])
        assert all(" ".join(words.split()) in shown for words in told), section.name
    for v in verdicts(contest):
        assert v.sentence in shown
    for origin in ("9f" * 32, "torch 2.13.0", contest.summary["command"]):
        assert origin in shown


def test_every_finding_stands_in_a_table_of_markdown(record: Record) -> None:
    rows = [row for grid in _tables(_parsed(markdown.render(document(record, "md")))) for row in grid]
    for f in record.findings:
        mean = f"{f.mean:.3f}".replace("-", "−").replace("−0.000", "0.000")
        subject = f.subject.replace("~", " ~ ")
        assert any(row[0] == subject and f.group in row and any(c.startswith(mean) for c in row) for row in rows), f


def test_tables_of_markdown_are_whole_whatever_their_cells_hold(hostile: Record) -> None:
    tokens = _parsed(markdown.render(document(hostile, "md")))
    found = _tables(tokens)
    assert len(found) > 10
    for grid in found:
        assert {len(row) for row in grid} == {len(grid[0])}
    cells = {cell for grid in found for row in grid for cell in row}
    labels = {f.group for f in hostile.findings} - {"all"}
    assert len(labels) > 5
    assert {" ".join(line(label).split()) for label in labels} <= cells


def test_nothing_in_a_record_becomes_markup_of_markdown(hostile: Record) -> None:
    tokens = list(_flat(_parsed(markdown.render(document(hostile, "md")))))
    assert not {"link_open", "image", "s_open", "fence", "code_block", "html_inline"} & {token.type for token in tokens}
    ours = {"<details><summary>", "</details>\n"}
    assert all(any(token.content.startswith(mark) for mark in ours) for token in tokens if token.type == "html_block")
    assert all("script" not in token.content for token in tokens if token.type == "html_block")
    titles = {section.title for section in sections(hostile)}
    headings = [tokens[place + 1].content for place, token in enumerate(tokens) if token.type == "heading_open"]
    assert len(headings) <= len(titles) + 16
    assert not any(mark in markdown.render(document(hostile, "md")) for mark in "\x00\x1b\u202e\u2066\ufeff")


@given(st.text(max_size=60))
@example("a | b\\")
@example("\\|")
@example("1)")
@example("&amp; &#x3c; <!-- -->")
@example("__init__ *a* a_b_ _c_")
@example("https://example.com/a_b www.example.com <https://example.com>")
def test_any_text_stays_one_cell_and_reads_as_it_is(text: str) -> None:
    wanted = " ".join(line(text).split())
    shown = markdown.table(["name", "told"], [[markdown.text(text), "end"]])
    assert [[" ".join(cell.split()) for cell in row] for row in _tables(_parsed(shown))[0]] == [
        ["name", "told"],
        [wanted, "end"],
    ]
    if wanted:
        [paragraph] = [token for token in _parsed(markdown.text(text)) if token.type == "inline"]
        assert " ".join(_words(paragraph).split()) == wanted


def test_a_very_long_text_is_cut_and_says_so() -> None:
    assert line("x" * (LONG + 7)) == "x" * LONG + "… (7 more characters)"


def test_a_pdf_says_what_the_page_says(record: Record) -> None:
    told = pdf.given(document(record, "pdf"))
    assert pdf.render(document(record, "pdf")).startswith(b"%PDF-")
    queried = _queried(told)
    assert outcome(record).headline.split(": ")[0] in queried("<headline>")
    assert all(section.title in queried("heading") for section in sections(record))
    assert len(json.loads(queried("image"))) == len(told["drawings"]) == 7


def test_nothing_in_a_record_becomes_markup_of_a_pdf(hostile: Record) -> None:
    told = pdf.given(document(hostile, "pdf"))
    assert pdf.render(document(hostile, "pdf")).startswith(b"%PDF-")
    queried = _queried(told)
    assert json.dumps(line(HOSTILE[1])) in queried("table")
    assert json.dumps(line(HOSTILE[7])) in queried("<title>")
    assert line(HOSTILE[0]) in queried("heading")
    assert line(HOSTILE[2])[:20] in queried("<code>")


def test_the_pages_of_a_pdf_are_set_whatever_was_audited(make: Callable[..., Record]) -> None:
    for audits in ((), ("frozen_uniform", "seed_variance", "guide", "trained_adversary")):
        made = make(count=12, audits=audits)
        assert pdf.render(document(made, "pdf")).startswith(b"%PDF-")
        assert markdown.render(document(made, "md")).startswith("# Audit of planted:negation\n\nHeatmap")


@pytest.mark.parametrize(
    ("text", "right"), [("سلام film", True), ("שלום", True), ("film سلام", False), ("123 …", False)]
)
def test_the_first_letter_tells_which_way_a_text_is_written(text: str, right: bool) -> None:
    assert pdf.rightward(text) is right


def _queried(told: dict[str, Any]) -> Callable[[str], str]:
    """What typst has set, as JSON."""
    return typst.Compiler((pdf.TEMPLATES / "document.typ").read_bytes(), sys_inputs={"report": json.dumps(told)}).query


def _parsed(text: str) -> list[Token]:
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)


def _flat(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _flat(token.children or [])


def _words(inline: Token) -> str:
    """What a reader sees."""
    breaks = {"softbreak": " ", "hardbreak": " "}
    return "".join(breaks.get(token.type, token.content) for token in inline.children or [])


def _said(tokens: list[Token]) -> list[str]:
    return [" ".join(_words(token).split()) for token in tokens if token.type == "inline"]


def _tables(tokens: list[Token]) -> list[list[list[str]]]:
    """Every table as rows of cells."""
    found: list[list[list[str]]] = []
    inside = False
    for token in tokens:
        if token.type == "table_open":
            found.append([])
            inside = True
        elif token.type == "table_close":
            inside = False
        elif token.type == "tr_open":
            found[-1].append([])
        elif token.type == "inline" and inside:
            found[-1][-1].append(" ".join(_words(token).split()))
    return found
