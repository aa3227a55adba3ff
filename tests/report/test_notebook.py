"""What a notebook shows of an explanation and of an audit."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from assay.grading.grade import verdicts
from assay.report import notebook
from assay.report.outcome import outcome
from assay.run.reporting import Result
from tests.report.shown import HOSTILE, NAMES, SENTENCE, hostile, made_up
from tests.report.synthetic import remade


class Tree(HTMLParser):
    """Which tags there are, with their attributes, and the text outside styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[str]] = []
        self.said = ""
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"{tag} closes what is not open"

    def handle_data(self, data):
        if "style" not in self.open:
            self.said += data
            if "tr" in self.open and ("td" in self.open or "th" in self.open):
                self.rows[-1][-1] += data


def test_every_explainer_is_a_row_over_the_same_words():
    tree = Tree(made_up(SENTENCE)._repr_html_())
    heads = [row[1:] for row in tree.rows if row[0] == ""]
    assert [word for head in heads for word in head] == SENTENCE
    assert max(map(len, heads)) <= notebook.WORDS
    rows = [row for row in tree.rows if row[0] != ""]
    assert [row[0] for row in rows] == list(NAMES) * len(heads)
    assert {len(row) for row in rows[: len(NAMES)]} == {len(heads[0]) + 1}


def test_lines_are_about_as_long_as_each_other():
    tree = Tree(made_up(["word"] * 30)._repr_html_())
    assert [len(row) - 1 for row in tree.rows if row[0] == ""] == [10, 10, 10]


def test_a_score_is_a_number_a_colour_and_a_line_and_the_sign_is_in_all():
    made = replace(made_up(["yes", "no", "so"]), scores={"gradient": [0.5, -1.0, 0.0]}, notes={})
    page = made._repr_html_()
    cells = [attributes for tag, attributes in Tree(page).tags if tag == "td" and "title" in attributes]
    assert [cell.get("class") for cell in cells] == ["p4", "n8", None]
    assert [cell["title"].replace("\u2068", "").replace("\u2069", "") for cell in cells] == ["yes 0.5", "no −1", "so 0"]
    assert Tree(page).rows[1] == ["gradient", "0.50", "−1.00", "0.00"]
    assert re.search(r"\[class\^=n\] \{ --hue: var\(--against\); --kind: dashed; \}", page)


@pytest.mark.parametrize("scores", [[math.nan, math.inf, 1.0], [0.0, 0.0, 0.0], [1e-9, -2e-9, 5e-10], [1e9, 2.0, 3.0]])
def test_scores_of_any_size_are_shown(scores):
    made = replace(made_up(["a", "b", "c"]), scores={"gradient": scores}, notes={})
    row = Tree(made._repr_html_()).rows[1][1:]
    assert all(re.fullmatch(r"–|−?\d+(\.\d+)?( × 10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?", cell) for cell in row)


def test_what_is_hostile_is_text():
    page = hostile()._repr_html_()
    tree = Tree(page)
    assert {tag for tag, _ in tree.tags} <= {
        *("div", "style", "p", "b", "bdi", "span", "table", "thead", "tbody", "tr", "th", "td", "code"),
    }
    assert {name for _, attributes in tree.tags for name in attributes} <= {"class", "title", "scope", "dir"}
    assert page.count("<style>") == page.count("</style>") == 1
    for word in (HOSTILE[0], HOSTILE[1], HOSTILE[2], "{{7*7}}", "&amp;", "nul␀l", "<i>first</i>", "<b>bold</b>"):
        assert word in tree.said
    assert "\0" not in page
    page.encode()
    assert all(f"<bdi>{mark}" in page for mark in ("سلام", "\u202eevil"))


def test_a_long_word_is_cut():
    tree = Tree(hostile()._repr_html_())
    assert "x" * notebook.LONGEST + "…" in tree.said
    assert "x" * (notebook.LONGEST + 1) not in tree.said


def test_ten_explainers_of_fifty_words_are_small_and_ask_for_nothing():
    page = made_up((SENTENCE * 3)[:50])._repr_html_()
    assert len(page.encode()) < 100_000
    assert not re.search(r"<script|<link|<img|https?:|url\(|@import", page)


def test_of_a_long_text_the_strongest_part_is_shown():
    words = [f"w{place}" for place in range(2000)]
    made = made_up(words)
    for scores in made.scores.values():
        scores[1200] = 50.0
    page = made._repr_html_()
    tree = Tree(page)
    shown = [word for row in tree.rows if row[0] == "" for word in row[1:]]
    assert shown == words[1140:1260]
    assert "Of 2,000 words these are 1,141 to 1,260, around the strongest" in tree.said
    assert len(page.encode()) < 150_000


def test_decision_probabilities_notes_and_what_is_left_out_are_said():
    made = replace(made_up(SENTENCE, classes=tuple("abcdefg")), target="b", query="Where is <b>Mary</b>?")
    said = Tree(made._repr_html_()).said
    for part in ("a 90.0 %", "and 2 more", "the class b", "Where is <b>Mary</b>?"):
        assert part in " ".join(said.split())
    assert "integrated_gradients: gap 3.2 × 10⁻⁵" in said
    assert "rollout is left out: the model has no stack of self-attention layers." in said


def test_a_style_is_bound_to_its_fragment():
    page = made_up(SENTENCE)._repr_html_()
    (name,) = re.findall(r'<div class="(assay-[0-9a-f]{8})">', page)
    style = page.partition("<style>")[2].partition("</style>")[0]
    selectors = re.findall(r"(?:^|[{}])\s*([^@{}]+)\{", style.replace("@media (prefers-color-scheme: dark) {", "}"))
    assert selectors
    for selector in selectors:
        for part in re.split(r",\s*(?![^(]*\))", selector):
            assert f".{name}" in part, part


def test_the_same_explanation_gives_the_same_page():
    assert made_up(SENTENCE)._repr_html_() == made_up(SENTENCE)._repr_html_()


def test_an_audit_shows_its_headline_its_verdicts_and_where_the_rest_is(contest):
    tree = Tree(Result(contest)._repr_html_())
    assert outcome(contest).headline in tree.said.replace("\u00a0", " ")
    rows = {row[0]: row[1:] for row in tree.rows}
    for verdict in verdicts(contest):
        assert any(row[0] == verdict.name and verdict.grade in row[1] for row in tree.rows)
    assert {"explainer", "leave_one_out", "random"} <= set(rows)
    assert '.report("report.html")' in tree.said
    assert "Leaderboard" in tree.said
    assert "5 more measures stand in the report" in tree.said


def test_an_audit_without_a_leaderboard_is_shown(make):
    tree = Tree(Result(make(count=20, audits=("permutation",)))._repr_html_())
    assert "Leaderboard" not in tree.said


def test_an_audit_of_hostile_names_is_text(make):
    record = make(count=20)
    summary = record.summary | {"corpus": record.summary["corpus"] | {"name": "<script>alert(5)</script>"}}
    page = Result(remade(record, summary=summary))._repr_html_()
    assert "<script" not in page
    assert "<script>alert(5)</script>" in Tree(page).said
