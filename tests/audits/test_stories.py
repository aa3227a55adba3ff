from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from assay.audits import AUDITS
from assay.audits.cases import Answer, Case
from assay.audits.findings import tell
from assay.grading.leaderboard import leaderboard
from assay.records import STORIES, Record
from assay.report.audit import render
from assay.report.facts import glossary
from assay.report.figures import figure
from assay.report.sections import sections
from assay.stories import Conclusion, Measure, Rule, Story, story_of, with_story
from tests.report.synthetic import synthetic_record


@dataclass(frozen=True)
class LongWords:
    """How many long words are on top."""

    paper: str = "nobody"

    def kind(self, classes: int) -> str:
        return "exact"

    def unfit(self, case: Case) -> str | None:
        return None

    def __call__(self, case: Case) -> Answer:
        return Answer({f"long:{name}": np.zeros(len(case.batch)) for name in case.scores})


@dataclass(frozen=True)
class Told(LongWords):
    """The same with a story of its own."""

    story: ClassVar[Story] = Story(
        title="Are long {items} {marked}?",
        measures=(Measure("long", "long words", better="high", help="how many of the highest words are long"),),
        rule=Rule("Passes from 0.8 on.", "long", "{name} has {found}.", passes=0.8, fails=0.5),
    )


def with_audit(audit: LongWords) -> Record:
    """A record of an audit of one's own."""
    record = synthetic_record(count=40, audits=("deciding", "truth"))
    about = {"question": "Long?", "paper": "nobody", "kind": "exact", "applies": True, "why": None, "remark": None}
    rows = [
        row | {"audit": "mine", "measure": "long"}
        for row in record.summary["findings"]
        if (row["audit"], row["measure"]) == ("truth", "auprc")
    ]
    audits = record.summary["audits"] | {"mine": about}
    summary = record.summary | {"audits": audits, "findings": record.summary["findings"] + rows}
    return tell(replace(record, summary=summary), {**AUDITS, "mine": audit})


def test_an_audit_with_a_story_gets_card_figure_column_and_glossary() -> None:
    record = with_audit(Told())
    card = next(each for each in sections(record) if each.name == "mine")
    assert card.title == "Are long words {marked}?"
    assert card.grade in ("pass", "warn", "fail")
    assert "attention has 0." in card.why
    assert card.figures == ("mine",)
    assert figure(record, "mine") is not None
    board = leaderboard(record)
    assert board is not None
    assert [each.title for each in board.measures][-1] == "long words"
    assert glossary(record)["long words"] == "how many of the highest words are long"
    assert "how many of the highest words are long" in render(record)


def test_an_audit_without_a_story_gets_a_plain_card_and_a_figure() -> None:
    record = with_audit(LongWords())
    card = next(each for each in sections(record) if each.name == "mine")
    assert (card.title, card.grade) == ("Long words", "measured")
    assert card.figures == ("mine",)
    assert "No rule is stated" in card.why


@pytest.mark.parametrize("name", AUDITS)
def test_a_story_goes_to_json_and_back(name: str) -> None:
    story = story_of(AUDITS[name])
    assert Story.of(json.loads(json.dumps(story.json()))).json() == story.json()
    assert story.title.endswith("?")


@pytest.mark.parametrize("damaged", [5, None, [], {"title": 3, "measures": 4, "drawings": [None], "rule": "x"}])
def test_a_damaged_story_is_a_plain_one(damaged: object) -> None:
    assert Story.of(damaged).title == ""
    assert Conclusion.of(damaged) == Conclusion()


def test_the_numbers_of_an_explainer_of_ones_own_have_the_names_of_its_story() -> None:
    @with_story("Mine", like=Story(measures=(Measure("slack", "how loose it fits"),)))
    def mine(model: object, batch: object, target: object) -> None:
        """Scores of one's own."""

    record = synthetic_record(count=40)
    bare = {name: value for name, value in record.summary.items() if name != STORIES}
    told = tell(replace(record, summary=bare | {"explainers": {"mine": ""}}), explainers={"mine": mine})
    assert Story.of(told.summary[STORIES]["mine"]).measure("slack").label == "how loose it fits"


def test_a_record_is_shown_with_the_words_of_its_day(tmp_path: Path) -> None:
    record = synthetic_record(count=40)
    about = record.summary["audits"]["permutation"]
    told = about | {"story": about["story"] | {"title": "Was it shuffled, then?"}}
    summary = record.summary | {"audits": record.summary["audits"] | {"permutation": told}}
    replace(record, summary=summary).write(tmp_path)
    read = tell(Record.read(tmp_path))
    assert "Was it shuffled, then?" in render(read)


def test_a_record_without_stories_is_shown_plainly() -> None:
    record = synthetic_record(count=40)
    bare = {name: {"question": each["question"]} for name, each in record.summary["audits"].items()}
    plain = {key: value for key, value in record.summary.items() if key not in ("stories", "together")}
    old = replace(record, summary=plain | {"audits": bare})
    assert "Permutation" in render(old)
    assert not old.told
