from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from assay.audits import AUDITS
from assay.records import Finding, Record, finding_rows
from assay.report.sections import sections
from tests.report.synthetic import FAITHFUL, remade


def told(record: Record, audit: str) -> str:
    return AUDITS[audit].conclude(record).answer


def best(record: Record, audit: str, measure: str, apart: tuple[str, ...] = ("random", "chance")) -> Finding:
    found = [f for f in record.findings if (f.audit, f.measure, f.group) == (audit, measure, "all")]
    return max((f for f in found if f.subject not in apart), key=lambda f: f.mean)


def with_gains(record: Record, p_values: dict[str, float | None], mean: float = 0.1, reach: float = 0.08) -> Record:
    rows = [
        Finding("erasure", name, "comprehensiveness_gain", "all", mean, mean - reach, mean + reach, 0.1, 50, p_value=p)
        for name, p in p_values.items()
    ]
    return remade(record, summary=record.summary | {"findings": finding_rows(rows)})


@pytest.mark.parametrize(
    ("audit", "measure"),
    [
        ("truth", "auprc"),
        ("erasure", "comprehensiveness_gain"),
        ("roar", "fall_gain"),
        ("shortcut", "shown"),
        ("stability", "steadiness"),
    ],
)
def test_the_best_is_named_with_effect_interval_and_number_of_texts(audit: str, measure: str, contest: Record) -> None:
    found = best(contest, audit, measure)
    numbers = f"{found.mean:.2f} (95 % interval {found.low:.2f} to {found.high:.2f}, n = {found.n}"
    assert f"Best is {found.subject}" in told(contest, audit)
    assert numbers in told(contest, audit)


@pytest.mark.parametrize("audit", FAITHFUL)
def test_every_audit_has_words_of_its_own(audit: str, contest: Record) -> None:
    section = next(section for section in sections(contest) if section.name == audit)
    assert section.answer.endswith(".")
    assert section.reading
    assert section.title.endswith("?")
    assert section.figures or section.matrices


def test_plausibility_is_not_mistaken_for_faithfulness(human: Record) -> None:
    section = next(section for section in sections(human) if section.name == "plausibility")
    assert "what people find convincing, not what the model did" in section.answer
    assert "do not count in the order" in section.reading


def test_random_scores_are_told_as_the_null(contest: Record) -> None:
    null = contest.finding("truth", "random", "auprc")
    assert null is not None
    assert f"random scores reach {null.mean:.2f}" in told(contest, "truth")


def test_many_others_are_counted_not_named(crowd: Record) -> None:
    found = [f for f in crowd.findings if (f.audit, f.measure, f.group) == ("truth", "auprc", "all")]
    means = sorted(f.mean for f in found if f.subject != "random")
    assert f"the others: from {means[0]:.2f} to {means[-2]:.2f}" in told(crowd, "truth")


def test_beating_chance_is_corrected_for_the_number_of_explainers(record: Record) -> None:
    draw = np.random.default_rng(0)
    for _ in range(50):
        p_values = {f"e{place}": float(p) for place, p in enumerate(draw.choice([0.001, 0.012, 0.02, 0.04, 0.2], 4))}
        # step down by hand: the i-th smallest of m must stay below .05 / (m - i + 1), and so must all before it
        ordered = sorted(p_values.values())
        kept = next((i for i, p in enumerate(ordered) if p > 0.05 / (4 - i)), 4)
        words = "All 4 beat chance." if kept == 4 else f"{kept} of 4 beat chance, {4 - kept} do not clearly"
        assert words in told(with_gains(record, p_values), "erasure"), p_values


def test_being_worse_than_chance_is_not_beating_it(record: Record) -> None:
    words = told(with_gains(record, {"one": 0.001, "two": 0.001}, mean=-0.1), "erasure")
    assert "0 of 2 beat chance, 2 do not clearly: one and two." in words


def test_without_p_values_the_intervals_decide(record: Record) -> None:
    assert "All 2 beat chance." in told(with_gains(record, {"one": None, "two": None}, reach=0.09), "erasure")
    assert "0 of 2 beat chance" in told(with_gains(record, {"one": None, "two": None}, reach=0.11), "erasure")


def test_a_gain_whose_interval_holds_0_does_not_beat_chance(record: Record) -> None:
    # as older records have it, whose p-value came from another test
    assert "0 of 2 beat chance" in told(with_gains(record, {"one": 0.001, "two": 0.001}, reach=0.11), "erasure")


def test_sanity_names_both_ends_and_what_scores_without_a_model_have(contest: Record) -> None:
    found = [f for f in contest.findings if (f.audit, f.measure, f.group) == ("sanity", "similarity", "all")]
    ordered = sorted((f for f in found if f.subject != "random"), key=lambda f: f.mean)
    words = told(contest, "sanity")
    assert words.startswith(f"{ordered[0].subject} notices most")
    assert f"{ordered[-1].subject} notices least: τ {ordered[-1].mean:.2f}" in words
    assert words.endswith("have 1.")


def test_a_model_that_takes_no_shortcut_is_told_so(record: Record) -> None:
    used = Finding("shortcut", "model", "used", "all", 0.0, 0.0, 0.0, 0.0, 50)
    unused = remade(record, summary=record.summary | {"findings": finding_rows([used])})
    assert told(unused, "shortcut") == (
        "The model uses the planted words in 0 of 100 texts (n = 50). So there is nothing to show."
    )


def test_pairs_are_told_by_their_mean_and_their_ends(contest: Record, make: Callable[..., Record]) -> None:
    found = [f for f in contest.findings if (f.audit, f.measure, f.group) == ("consistency", "overlap", "all")]
    found = [f for f in found if "random" not in f.subject]
    words = told(contest, "consistency")
    assert f"{np.mean([f.mean for f in found]):.2f} on average over {len(found)} pairs" in words
    for f in (max(found, key=lambda f: f.mean), min(found, key=lambda f: f.mean)):
        assert f"{f.subject.replace('~', ' and ')} with {f.mean:.2f}" in words
    others = make(count=20, explainers=("gradient_norm", "input_x_gradient", "random"), audits=("agreement",))
    assert told(others, "agreement").startswith("gradient_norm and input_x_gradient have a τ of")


@pytest.mark.parametrize("audit", AUDITS)
def test_an_audit_without_numbers_has_no_answer(audit: str, record: Record) -> None:
    empty = remade(record, summary=record.summary | {"findings": []})
    assert AUDITS[audit].conclude(empty).answer == ""
