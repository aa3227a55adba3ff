"""The page on training texts: its words follow from its numbers, and nothing in it can harm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from assay.influence import METHODS
from assay.influence.page import brief, caveats, document, headline, reading, repair_sentence, swap_sentence
from assay.report import html
from assay.report.console import shown
from assay.report.save import FORMS, save
from assay.stories import Measure, Story, story_of
from tests.report.influential import suspected, traced
from tests.report.test_hybrid_view import HOSTILE, Tags


def render(made: dict[str, Any]) -> str:
    return html.render(document(made))


@pytest.mark.parametrize("made", [traced(), suspected()], ids=["text", "mislabelled"])
def test_hostile_texts_are_text(made) -> None:
    page = render(made)
    assert HOSTILE not in page and "&lt;script&gt;" in page
    tags = Tags()
    tags.feed(page)
    assert not tags.open and "script" not in tags.seen


def test_the_headline_adds_up_what_is_leant_on() -> None:
    assert headline(traced()) == (
        "positive (90.0 %): without the 2 training texts that it leans on most, the log-odds of positive would be "
        "about 0.75 lower; it is 2.2"
    )
    assert "higher" in headline(traced("loss")) and "would rise" in reading(traced("loss"))
    assert headline(traced() | {"supporting": []}) == "positive (90.0 %): no training text speaks for it"
    assert headline(suspected()).startswith("1 of the 2 most suspicious")


@pytest.mark.parametrize(
    ("method", "unit"),
    [
        ("dual", "the log-odds of positive would be about 0.75 lower"),
        ("gradient_cosine", "have a mean cosine of −0.38"),
        ("neighbours", "0.75 of the votes of its nearest neighbours"),
        ("tracin", "by a score that ranks them"),
    ],
)
def test_the_headline_and_the_reading_have_the_unit_of_the_method(method: str, unit: str) -> None:
    made = traced() | {"method": traced()["method"] | {"story": story_of(METHODS[method]).json()}}
    assert unit in headline(made) and "{" not in headline(made) + reading(made)
    assert ("log-odds" in headline(made)) == (method == "dual")


def test_what_was_mended_and_what_was_swapped_is_told() -> None:
    mended, asked = suspected(), traced()
    assert repair_sentence(mended["repair"]).startswith(
        "Trained again with other labels for 2 of these texts, the model is right about 85.0 %"
    )
    assert swap_sentence(asked, asked["swap"]).endswith("negative: positive has 20.0 % instead of 90.0 %")
    assert "Accuracy before and after" in render(mended) and "it reminds me of" in render(asked)


def test_what_a_reader_must_know_is_told() -> None:
    foreign = traced() | {"corpus": traced()["corpus"] | {"course": False}, "predicted": "negative"}
    told = " ".join(caveats(foreign))
    assert "50.0 %" in told and "on trust" in told and "predicts negative" in told
    assert caveats(suspected()) == []


def test_a_model_that_differs_from_a_label_and_an_error_are_shown() -> None:
    page = render(traced())
    assert page.count("model: <bdi>negative</bdi>") == 1
    assert "± 0.01" in page and "−0.5" in page and "+0.3" in page


def test_checks_stand_in_tables() -> None:
    page = render(traced())
    assert "linear datamodelling score" in page and "0.60 to 0.80" in page
    assert "chance" in page and "−0.800" in page
    assert 'id="checks"' not in render({name: each for name, each in traced().items() if name != "checks"})


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_written(form: str, tmp_path: Path) -> None:
    path = tmp_path / f"influence.{form}"
    save(document(traced()), path)
    assert path.stat().st_size > 1000
    if form in ("md", "html"):
        assert "log-odds of positive" in path.read_text(encoding="utf-8")


def test_the_terminal_shows_the_finding_and_the_texts_in_short() -> None:
    console = Console(width=100)
    with console.capture() as capture:
        console.print(*shown(brief(traced())))
    text = capture.get()
    assert "90.0 %" in text and "≠" in text and "speaks against it" in text and HOSTILE in text


@pytest.mark.parametrize("name", METHODS)
def test_a_method_has_a_story_that_a_file_can_hold(name: str) -> None:
    story = story_of(METHODS[name])
    assert story.title and story.question and story.measures and story.reading
    assert Story.of(json.loads(json.dumps(story.json()))) == story


def test_a_page_is_made_with_the_story_of_its_file() -> None:
    story = Story("Mine", measures=(Measure("score", "closeness"),), reading="How near {target} {is}.")
    method = traced()["method"]
    page = render(traced() | {"method": method | {"story": story.json()}})
    assert ">closeness<" in page and "How near the log-odds of positive {is}." in page
    dual = story_of(METHODS["dual"]).json()
    assert render(traced()) == render(traced() | {"method": method | {"story": dual}})
    assert render(traced()) == render(traced() | {"method": method | {"story": {"reading": 3}}})


def test_a_member_without_a_story_has_that_of_its_documentation() -> None:
    def own_recipe(options: object) -> None:
        """Reads every word.

        Twice.
        """

    class OwnMethod:
        """Counts words in common."""

    assert story_of(own_recipe) == Story("Own recipe", "Reads every word.")
    assert story_of(OwnMethod()) == Story("Own method", "Counts words in common.")
