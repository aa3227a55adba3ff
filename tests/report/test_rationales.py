"""The page on selections: its words follow from its numbers, marks stand where they belong, and nothing can harm."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from assay.rationales.measuring import MEASURES as MEASURED
from assay.rationales.rules import READINGS as READ
from assay.rationales.units import KINDS
from assay.report.rationales.page import render
from assay.report.rationales.texts import shown, window
from assay.report.rationales.words import MEASURES, READINGS, UNITS, caveats, headline, meaning, selecting
from tests.report.selecting import example, measure, selections
from tests.report.test_hybrid_view import HOSTILE, Tags


def test_hostile_texts_are_text() -> None:
    page = render(selections())
    assert HOSTILE not in page and "&lt;script&gt;" in page
    tags = Tags()
    tags.feed(page)
    assert not tags.open and "script" not in tags.seen


def test_the_headline_says_what_was_read_and_what_that_is_worth() -> None:
    assert headline(selections()) == (
        "The model reads 20.0 % of the words and decides 90.0 % of the test texts right: the selection meets the words "
        "that people marked with a token F1 of 0.60; what was not selected is enough to be right in 52.0 % – no better "
        "than a guess"
    )
    leaking = selections()["measures"] | {"complement_accuracy": measure(0.8)}
    assert headline(selections(measures=leaking)).endswith("right in 80.0 %, where a guess is right in 50.0 %")
    unmarked = {name: each for name, each in selections()["measures"].items() if name != "token_f1"}
    assert "marked" not in headline(selections(measures=unmarked))
    assert headline(selections(reads="all")).startswith("The model decides 90.0 %")
    planted = selections()["corpus"] | {"planted": True}
    assert "by construction" in headline(selections(corpus=planted))


def test_all_that_is_measured_is_explained() -> None:
    assert tuple(MEASURES) == MEASURED
    assert set(READ) <= set(READINGS) and set(KINDS) == set(UNITS)
    assert "the critic" in meaning(selections(critic=True), "complement_accuracy")
    page = render(selections())
    assert all(f'<th scope="row">{each.title}</th>' in page for each in MEASURES.values())
    assert "0.580 to 0.620" in page and "−0.010" in page


@pytest.mark.parametrize(
    ("rule", "said"),
    [("top", "the likeliest words of each text, 20.0 % of them"), ("window", "stretch"), ("threshold", "one half")],
)
def test_the_rule_of_selection_is_named(rule: str, said: str) -> None:
    how = selections()["selecting"] | {"rule": rule}
    assert said in selecting(selections(selecting=how))
    assert "for each of 4 masks" in selecting(selections(selecting=how | {"masks": 4}))


def test_what_a_reader_must_know_is_told_first() -> None:
    assert caveats(selections()) == []
    bad = selections()["measures"] | {"accuracy": measure(0.51)}
    corpus = selections()["corpus"] | {"skipped": {"more than 1,000 words": 3}}
    told = caveats(selections(measures=bad, corpus=corpus, reads="all", collapse=["It collapsed."]))
    assert told[0] == "It collapsed." and "not clearly better" in told[1] and "3 with more than 1,000 words" in told[3]
    assert "It collapsed." in render(selections(collapse=["It collapsed."]))


def test_selected_words_are_marked_and_evidence_is_underlined() -> None:
    html = shown(example(9) | {"text": "a b c d e f g h i", **places("a b c d e f g h i")})
    assert html == (
        '<mark class="selected"><u class="marked">a</u></mark> b c <mark class="selected">d</mark> '
        '<u class="marked">e</u> f <mark class="selected">g</mark> h <u class="marked">i</u>'
    )


def test_neighbours_are_marked_as_one_stretch() -> None:
    text = "a b c d e f g h i"
    kept = [False, True, True, False, False, False, False, True, True]
    html = shown(example(9, marks=False) | {"text": text, "kept": kept, **places(text)})
    assert html == 'a <mark class="selected">b c</mark> d e f g <mark class="selected">h i</mark>'


def places(text: str) -> dict[str, list[int]]:
    return {"starts": list(range(0, len(text), 2)), "ends": list(range(1, len(text) + 1, 2))}


def test_a_long_text_is_cut_to_where_most_is_selected() -> None:
    assert window([False] * 3, 5) == (0, 3)
    assert window([True, False, False, True, True, False], 2) == (3, 5)
    html = shown(example(400))
    said = [int(number) for number in re.findall(r"… (\d+) more words", html)]
    assert sum(said) == 250
    selected = sum(int(number) for number in re.findall(r", (\d+) selected", html))
    assert selected + html.count('<mark class="selected">') == sum(example(400)["kept"])


def test_the_page_needs_no_deep_learning_library() -> None:
    code = "import sys, assay.report.rationales.page; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
