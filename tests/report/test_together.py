from __future__ import annotations

from collections.abc import Callable

import pytest

from assay.audits import FOUR_TESTS
from assay.records import Record
from assay.report.audit import render
from assay.report.outcome import together
from tests.report.parsed import Page, words
from tests.report.synthetic import remade

HEADING = "Four tests of attention, together"


@pytest.fixture(scope="module")
def four(make: Callable[..., Record]) -> Record:
    return make(count=120, audits=("agreement", *FOUR_TESTS))


def closing(record: Record) -> str:
    """The last sentences of the block."""
    block = together(record)
    assert block is not None
    return str(block["closing"])


def judged(record: Record, changed: Callable[..., Record], beyond: bool, helps: bool, worth: float = 0.1) -> Record:
    """The record with these outcomes of the adversary, the guide and uniform attention."""
    record = changed(record, "frozen_uniform", "learnt", "right_gain", mean=worth, low=worth - 0.02, high=worth + 0.02)
    record = changed(record, "trained_adversary", "λ=0.1", "tvd", mean=0.01 if beyond else 0.5)
    record = changed(record, "guide", "imported", "right_gain", low=0.01 if helps else -0.01)
    return changed(record, "trained_adversary", "λ=0.01", "jsd", low=0.0)


def test_a_task_that_needs_no_attention_cannot_tell(four: Record, changed: Callable[..., Record]) -> None:
    for beyond in (True, False):
        said = closing(judged(four, changed, beyond, True, worth=0.005))
        assert said.startswith("Uniform attention does as well here (learnt attention gains less than 3 points)")
        assert "cannot tell whether attention explains" in said
    unclear = changed(four, "frozen_uniform", "learnt", "right_gain", mean=0.02, low=-0.03, high=0.07)
    assert closing(unclear).startswith("Whether attention matters at all on this task is not clear. ")


def test_a_model_near_chance_is_no_ground_for_a_test(four: Record) -> None:
    model = four.summary["model"] | {"test": {"accuracy": 0.51, "auc": 0.52}}
    record = remade(four, summary=four.summary | {"model": model})
    assert (
        closing(record)
        == f"The audited model is itself hardly better than chance, so none of this says much. {closing(four)}"
    )


@pytest.mark.parametrize(
    ("beyond", "helps", "end"),
    [
        (True, True, "a heatmap is one account among several."),
        (True, False, "both speak against reading this attention as the reason for a decision."),
        (False, True, "both speak for an attention that is bound to what the model does."),
        (False, False, "the guide does not single it out: the tests do not agree."),
    ],
)
def test_the_closing_sentence_follows_the_numbers(
    beyond: bool, helps: bool, end: str, four: Record, changed: Callable[..., Record]
) -> None:
    said = closing(judged(four, changed, beyond, helps))
    assert said.startswith("Attention does better than uniform weights, it was ")
    assert ("trained further away than other seeds reach" in said) == beyond
    assert ("it helps a model" in said) == helps
    assert said.endswith(end)


def test_an_adversary_that_guides_as_well_takes_the_merit_away(four: Record, changed: Callable[..., Record]) -> None:
    instances = four.instances
    place = instances.column_names.index("right:adversarial")
    alike = remade(four, instances=instances.set_column(place, "right:adversarial", instances["right:imported"]))
    said = closing(judged(alike, changed, False, True))
    assert "the adversary’s attention serves that model about as well" in said
    assert said.endswith("the tests do not agree.")


@pytest.mark.parametrize(
    ("audits", "shown"),
    [
        (("frozen_uniform",), False),
        (("trained_adversary",), False),
        (("agreement", "permutation"), False),
        (("frozen_uniform", "guide"), True),
        (("seed_variance", "trained_adversary"), True),
        (("seed_variance", "frozen_uniform"), True),
        (FOUR_TESTS, True),
    ],
    ids=str,
)
def test_two_of_the_tests_make_a_block(audits: tuple[str, ...], shown: bool, make: Callable[..., Record]) -> None:
    record = make(count=12, audits=audits, explainers=("attention", "leave_one_out"))
    page = Page(render(record))
    assert (HEADING in page.texts("h2")) == shown
    assert ("Four tests" in page.texts("a")) == shown
    names = [attributes["id"] for _, attributes, _ in page.elements if "id" in attributes]
    assert len(names) == len(set(names)), "a figure stands once"
    drawn = sum("Distance of attention" in title for title in page.texts("title"))
    assert drawn == int(bool({"seed_variance", "trained_adversary"} & set(audits)))


def test_the_table_holds_the_numbers_of_the_findings(four: Record) -> None:
    block = together(four)
    assert block is not None
    names = [test["name"] for test in block["tests"]]
    assert names == ["uniform attention", "other seeds", "trained adversary", "guide"]
    page = Page(render(four))
    rows = [words(row) for row in page.texts("tr")]
    for audit, subject in (("frozen_uniform", "learnt"), ("guide", "imported")):
        found = four.finding(audit, subject, "right_gain")
        assert found is not None
        ends = f"{100 * found.mean:.1f} points (95 % interval {100 * found.low:.1f} to {100 * found.high:.1f}, n = 120)"
        assert any(ends in row for row in rows)
    assert words(page.texts("p", "answer")[0]) == words(block["closing"])
    assert any("Each model was trained once" in text for text in page.texts("p", "soft"))


def test_audits_without_numbers_make_no_block(four: Record) -> None:
    empty = remade(four, summary=four.summary | {"findings": []})
    assert together(empty) is None
    assert HEADING not in render(empty)


def test_a_test_that_does_not_apply_is_left_out_of_the_block(four: Record) -> None:
    rows = [row for row in four.summary["findings"] if row["audit"] != "guide"]
    about = four.summary["audits"]["guide"] | {"applies": False, "why": "The texts are not at hand."}
    audits = four.summary["audits"] | {"guide": about}
    record = remade(four, summary=four.summary | {"findings": rows, "audits": audits})
    block = together(record)
    assert block is not None
    assert "guide" not in [test["name"] for test in block["tests"]]
    assert "cannot read context" not in block["closing"]
    assert "The texts are not at hand." in render(record)
