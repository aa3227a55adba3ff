from __future__ import annotations

from collections.abc import Callable

import pytest

from assay.audits import AUDITS
from assay.grading.grade import verdicts
from assay.records import Record
from assay.report.audit import render
from assay.report.sections import grade, sections
from assay.stories import story_of
from tests.report.parsed import Page, words
from tests.report.synthetic import FAITHFUL, remade

MODELS = ("frozen_uniform", "seed_variance", "guide", "trained_adversary", "deception")
LIMITS = [
    ("agreement", "attention~leave_one_out", "tau", (0.7, 0.9), (0.5, 0.7), (0.1, 0.3)),
    ("permutation", "attention", "median_tvd", (0.06, 0.2), (0.04, 0.06), (0.01, 0.04)),
    ("truth", "attention", "auprc", (0.85, 0.95), (0.6, 0.9), (0.4, 0.45)),
    ("erasure", "attention", "comprehensiveness_gain", (0.1, 0.2), (-0.1, 0.2), (-0.2, -0.1)),
    ("roar", "attention", "fall_gain", (0.1, 0.2), (-0.1, 0.2), (-0.2, 0.0)),
    ("sanity", "attention", "similarity", (0.1, 0.3), (0.3, 0.7), (0.7, 0.9)),
    ("stability", "attention", "steadiness", (0.7, 0.9), (0.5, 0.7), (0.1, 0.3)),
    ("shortcut", "attention", "shown", (0.85, 0.95), (0.6, 0.9), (0.4, 0.45)),
]


@pytest.fixture(scope="module")
def models(make: Callable[..., Record]) -> Record:
    return make(count=60, audits=MODELS)


def test_every_audit_either_has_a_rule_or_says_why_it_has_none() -> None:
    for audit in AUDITS.values():
        story = story_of(audit)
        assert bool(story.rule.how) is not bool(story.ungraded)


@pytest.mark.parametrize(("audit", "subject", "measure", "good", "between", "bad"), LIMITS)
def test_the_interval_decides(
    audit: str,
    subject: str,
    measure: str,
    good: tuple[float, float],
    between: tuple[float, float],
    bad: tuple[float, float],
    make: Callable[..., Record],
    changed: Callable[..., Record],
) -> None:
    record = make(count=30, audits=("agreement", audit) if audit != "agreement" else (audit,))
    for (low, high), expected in ((good, "pass"), (between, "warn"), (bad, "fail")):
        other = changed(record, audit, subject, measure, mean=(low + high) / 2, low=low, high=high)
        given, why = grade(other, audit)
        assert given == expected
        assert f"{(low + high) / 2:.2f}".replace("-", "−") in why
        assert "n = 30" in why or audit == "shortcut"


def test_what_does_not_beat_random_scores_fails(make: Callable[..., Record], changed: Callable[..., Record]) -> None:
    record = changed(make(count=30, audits=("truth",)), "truth", "attention", "auprc", mean=0.9, low=0.85, high=0.95)
    assert grade(record, "truth")[0] == "pass"
    assert grade(changed(record, "truth", "random", "auprc", high=0.9), "truth")[0] == "fail"


@pytest.mark.parametrize(("audit", "measure"), [("truth", "auprc"), ("deciding", "economy")])
@pytest.mark.parametrize("count", [29, 30])
def test_the_card_of_the_verdict_has_its_grade(
    audit: str, measure: str, count: int, make: Callable[..., Record], changed: Callable[..., Record]
) -> None:
    record = make(count=count, audits=(audit,))
    given = set()
    for mean in (0.3, 0.6, 0.9, 0.97):
        other = changed(record, audit, "attention", measure, mean=mean, low=mean - 0.01, high=mean + 0.01)
        verdict = next(verdict for verdict in verdicts(other) if verdict.name == "attention")
        assert grade(other, audit)[0] == verdict.grade
        given.add(verdict.grade)
    assert given == {"not applicable"} if count < 30 else {"pass", "fail"} <= given


@pytest.mark.parametrize(("kind", "expected"), [("exact", "pass"), ("lower bound", "warn"), ("bracket", "warn")])
def test_only_certainty_that_no_other_heatmap_exists_passes(
    kind: str, expected: str, make: Callable[..., Record], changed: Callable[..., Record]
) -> None:
    record = make(count=20, kind=kind)
    assert grade(record, "adversary")[0] == "fail"
    near = changed(record, "adversary", "attention", "jsd", mean=0.1, low=0.05, high=0.15)
    assert grade(near, "adversary")[0] == expected


def test_a_lead_that_may_be_chance_is_a_warning(make: Callable[..., Record], changed: Callable[..., Record]) -> None:
    record = make(count=100, audits=("single_weight", "minimal_set"))
    for top, other, expected in ((0.3, 0.1, "pass"), (0.12, 0.1, "warn"), (0.1, 0.3, "fail")):
        made = changed(record, "single_weight", "attention", "top_only", mean=top, n=100)
        made = changed(made, "single_weight", "attention", "other_only", mean=other, n=100)
        assert grade(made, "single_weight")[0] == expected
    for ahead, behind, expected in ((0.6, 0.1, "pass"), (0.3, 0.29, "fail"), (0.0, 0.0, "warn")):
        made = changed(record, "minimal_set", "attention~random", "wins", mean=ahead, n=100)
        made = changed(made, "minimal_set", "random~attention", "wins", mean=behind, n=100)
        assert grade(made, "minimal_set")[0] == expected


def test_audits_of_models_follow_their_own_answers(models: Record, changed: Callable[..., Record]) -> None:
    for low, high, expected in ((0.01, 0.2, "pass"), (-0.1, 0.1, "warn"), (-0.01, 0.02, "fail")):
        made = changed(models, "frozen_uniform", "learnt", "right_gain", mean=(low + high) / 2, low=low, high=high)
        assert grade(made, "frozen_uniform")[0] == expected
    harmed = changed(models, "guide", "imported", "right_gain", mean=-0.1, low=-0.2, high=-0.05)
    assert grade(harmed, "guide")[0] == "fail"
    assert grade(models, "seed_variance")[0] == "measured"
    needless = changed(models, "deception", "without", "right", mean=1.0)
    assert grade(needless, "deception")[0] == "not applicable"


def test_what_was_not_run_or_gave_no_number_is_not_applicable(record: Record) -> None:
    assert grade(record, "truth") == ("not applicable", "The audit was not run.")
    empty = remade(record, summary=record.summary | {"findings": []})
    assert grade(empty, "agreement") == ("not applicable", "No text gave a number.")
    audits = record.summary["audits"] | {"mine": {"question": "?"}}
    rows = [row | {"audit": "mine"} for row in record.summary["findings"]]
    mine = remade(record, summary=record.summary | {"audits": audits, "findings": rows})
    assert grade(mine, "mine")[0] == "measured"


def test_the_yardstick_is_not_graded_against_itself(make: Callable[..., Record]) -> None:
    alone = make(count=20, explainers=("leave_one_out", "random"), audits=("agreement", "erasure"))
    assert grade(alone, "agreement")[0] == "measured"


def test_a_closed_card_tells_grade_question_and_answer(make: Callable[..., Record]) -> None:
    record = make(count=40, audits=FAITHFUL)
    page = Page(render(record))
    cards = [(attributes, texts) for tag, attributes, texts in page.elements if tag == "details" and "id" in attributes]
    assert all(attributes["class"] == "card" and "open" not in attributes for attributes, _ in cards)
    for section, (_, texts) in zip(sections(record), cards, strict=True):
        told = words("".join(texts)).replace("\u00a0", " ")
        beginning = words(f"{section.grade} {section.title} {section.brief}")
        assert beginning in told[: len(beginning) + 4]
        assert section.rule in told
        assert section.brief.endswith(".")
