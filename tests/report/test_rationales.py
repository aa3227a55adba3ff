"""The page on selections: its words follow from its numbers, marks stand where they belong, and nothing can harm."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from assay.rationales.measuring import MEASURES as MEASURED
from assay.rationales.players import READINGS as READ
from assay.rationales.recipes import RECIPES
from assay.rationales.selection_page import (
    READINGS,
    UNITS,
    brief,
    caveats,
    document,
    headline,
    limits,
    meaning,
    passage,
    selecting,
    votes,
)
from assay.rationales.selection_stories import MEASURES, RULES
from assay.rationales.trainers import UNPLAYED
from assay.rationales.units import KINDS
from assay.report import heatmaps, html
from assay.report.console import shown as console_of
from assay.report.heatmaps import richest
from assay.report.save import FORMS, save
from assay.stories import Measure, Story, story_of
from tests.report.selecting import aligned, example, measure, pair, phrased, selections
from tests.report.test_hybrid_view import HOSTILE, Tags


def render(made: dict[str, Any]) -> str:
    return html.render(document(made))


def shown(each: dict[str, Any]) -> str:
    return heatmaps.passage(passage(each, each["text"], "word", each))


def asked(each: dict[str, Any]) -> str:
    return heatmaps.passage(passage(each["asked"], each["query"], "asked", each))


@pytest.mark.parametrize("made", [selections, aligned, phrased])
def test_hostile_texts_are_text(made: Callable[[], dict[str, Any]]) -> None:
    page = render(made())
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
    assert tuple(each.name for each in MEASURES) == MEASURED
    assert set(READ) <= set(READINGS) and {*KINDS, "phrase"} == set(UNITS)
    assert "the critic" in meaning(selections(critic=True), "complement_accuracy")
    page = render(selections())
    labels = [Story(measures=MEASURES).measure(name).label for name in MEASURED]
    assert all(f'<th scope="row">{label}</th>' in page for label in labels)
    assert "0.580 to 0.620" in page and "−0.010" in page


@pytest.mark.parametrize(
    ("rule", "said"),
    [("top", "the likeliest words of each text, 20.0 % of them"), ("window", "stretch"), ("threshold", "one half")],
)
def test_the_rule_of_selection_is_named(rule: str, said: str) -> None:
    how = selections()["selecting"] | {"rule": rule}
    assert said in selecting(selections(selecting=how))
    recipe = selections()["recipe"] | {"story": {}}
    assert said in selecting(selections(recipe=recipe, selecting=how | {"rule": "other", "meaning": RULES[rule]}))
    assert "for each of 4 masks" in selecting(selections(selecting=how | {"masks": 4}))


def test_aligned_words_have_the_number_of_their_pair_on_both_sides() -> None:
    each = pair()
    numbers = [re.findall(r'<sup class="nth">([\d, ]+)</sup>', html) for html in (shown(each), asked(each))]
    assert numbers == [["1", "2"], ["1", "2"]]
    assert "word3<sup" in shown(each) and "word2<sup" in asked(each) and HOSTILE not in shown(each) + asked(each)
    twice = pair(pairs=[*each["pairs"], {"word": 6, "asked": 2, "votes": [0.1, -0.1]}])
    assert '<sup class="nth">2, 3</sup>' in asked(twice)
    page = render(aligned())
    assert page.count('<ol class="pairs"') == 2 and "No word is aligned" in page
    assert "<bdi>word3</bdi>" in page and "<bdi>word2</bdi>" in page and 'own">good +2.50' in page
    assert [name for name, _ in votes({"votes": [1.0, -4.0, 3.0, 0.5]}, "d", "abcd")] == ["d", "b", "c"]
    assert "at most 3 of them; a pair must say more than 20.0 % of what the strongest one says" in selecting(aligned())


def test_neighbours_of_different_pairs_are_not_run_together() -> None:
    text = "a b c"
    words = {"text": text, "kept": [True, True, False], "marked": None, "starts": [0, 2, 4], "ends": [1, 3, 5]}
    html = shown({**words, "pairs": [{"word": 1, "asked": 0}, {"word": 0, "asked": 1}]})
    one, other = (f'<mark class="selected">{word}<sup class="nth">{nth}</sup></mark>' for word, nth in ("a2", "b1"))
    assert html == f"{one} {other} c"


def test_phrases_are_shown_with_what_they_say_and_how_little_that_may_be() -> None:
    page = render(phrased())
    assert "+0.35" in page and "\u22120.15" in page and "together" in page and "\u22120.10" in page and "+3.21" in page
    (told,) = caveats(phrased())
    assert "its phrases say 6.0 %, the stored phrases 4.0 %" in told
    assert "phrases, which end with a punctuation mark or after 5 words, that say most" in selecting(phrased())
    assert limits(phrased())[0] != limits(selections())[0] and limits(phrased())[2:] == limits(selections())[2:]


def test_small_numbers_keep_two_digits_and_nothing_has_no_sign() -> None:
    parts = {"whole": -1.5, "phrases": 0.00314, "stored": -0.00001}
    account = {"parts": parts, "phrases": [{"text": "a", "by": -0.0314}], "stored": []}
    page = render(phrased() | {"examples": [example() | {"account": account}]})
    assert all(said in page for said in (">+0.0031<", ">0<", "\u22120.031<", ": \u22121.50<"))


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
    assert richest([False] * 3, 5) == (0, 3)
    assert richest([True, False, False, True, True, False], 2) == (3, 5)
    html = shown(example(400))
    said = [int(number) for number in re.findall(r"… (\d+) more words", html)]
    assert sum(said) == 250
    selected = sum(int(number) for number in re.findall(r", (\d+) selected", html))
    assert selected + html.count('<mark class="selected">') == sum(example(400)["kept"])


def test_the_page_needs_no_deep_learning_library() -> None:
    code = "import sys, assay.rationales.selection_page; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("made", [selections, aligned, phrased])
def test_every_form_is_written(made: Callable[[], dict[str, Any]], form: str, tmp_path: Path) -> None:
    path = tmp_path / f"rationales.{form}"
    save(document(made()), path)
    assert path.stat().st_size > 1000
    if form == "md":
        assert "**word3**" in path.read_text(encoding="utf-8")


def test_the_terminal_shows_the_finding_and_every_measure() -> None:
    console = Console(width=100)
    with console.capture() as capture:
        console.print(*console_of(brief(selections())))
    assert all(Story(measures=MEASURES).measure(name).label in capture.get() for name in MEASURED)


@pytest.mark.parametrize("name", [*RECIPES, *UNPLAYED])
def test_a_recipe_has_a_story_that_a_file_can_hold(name: str) -> None:
    story = story_of((RECIPES | UNPLAYED)[name])
    assert story.title and story.question and story.paper and story.measures == MEASURES
    assert Story.of(json.loads(json.dumps(story.json()))) == story


def test_a_page_is_made_with_the_story_of_its_file() -> None:
    story = Story("Mine", measures=(Measure("size", "breadth", help="By {predictor}, {never}."),), reading="My limit.")
    made = selections(recipe={"name": "mine", "meaning": "it reads", "story": story.json()})
    page = render(made)
    assert "breadth" in page and "By the predictor, {never}." in page and "My limit." in page
    assert "Comprehensiveness and sufficiency compare" not in page and "token f1" in page


@pytest.mark.parametrize("name", ["lei", "transport", "gone"])
def test_a_file_without_a_story_has_that_of_today(name: str) -> None:
    about = {"name": name, "meaning": "it reads"}
    member = (RECIPES | UNPLAYED).get(name, RECIPES["lei"])
    told = about | {"story": story_of(member).json()}
    how = selections()["selecting"] | {"meaning": RULES["top"]}
    assert render(selections(recipe=about)) == render(selections(recipe=told, selecting=how))


def test_a_damaged_story_is_the_usual_one() -> None:
    recipe = selections()["recipe"] | {"story": {"reading": 3, "measures": "none"}}
    how = selections()["selecting"] | {"meaning": RULES["top"]}
    assert render(selections(recipe=recipe, selecting=how)) == render(selections())
