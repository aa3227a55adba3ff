from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import logit

from assay.grading.grade import (
    TRUTH,
    Scale,
    Verdict,
    known_reasons,
    leading,
    near_chance,
    scale,
    standing,
    unlike,
    verdicts,
)
from assay.grading.leaderboard import leaderboard
from assay.records import Finding, Record, finding_rows
from assay.report.audit import render
from assay.report.outcome import outcome
from tests.report import synthetic
from tests.report.synthetic import remade


def finding(low: float, high: float, count: int = 100) -> Finding:
    return Finding("truth", "attention", "auprc", "all", (low + high) / 2, low, high, 0.1, count)


def named(record: Record, name: str) -> Verdict:
    return next(verdict for verdict in verdicts(record) if verdict.name == name)


def laid(found: Finding, null_high: float = 0.0) -> Scale:
    return Scale(TRUTH, {"attention": found}, {"attention": found}, null_high, null_high, null_high)


def economy(record: Record, name: str, mean: float, half: float = 0.001, count: int = 300) -> Record:
    """The record with another economy of an explainer."""
    return changed(record, "deciding", name, "economy", mean=mean, low=mean - half, high=mean + half, n=count)


def changed(record: Record, audit: str, subject: str, measure: str, **values: Any) -> Record:
    return synthetic.changed(record, audit, subject, measure, **values)


def economy_of(probability: float) -> float:
    start, slope = known_reasons()["explainer"]["coefficients"]
    return float((logit(probability) - start) / slope)


def test_grades_by_truth_change_exactly_at_the_limits() -> None:
    below_pass, below_fail = np.nextafter(TRUTH.passes, 0), np.nextafter(TRUTH.fails, 0)
    assert laid(finding(TRUTH.passes, 0.95)).grade("attention") == "pass"
    assert laid(finding(below_pass, 0.95)).grade("attention") == "warn"
    assert laid(finding(0.1, TRUTH.fails)).grade("attention") == "warn"
    assert laid(finding(0.1, below_fail)).grade("attention") == "fail"
    assert laid(finding(0.9, 0.95, count=29)).grade("attention") == "not applicable"


def test_an_explainer_must_lie_beyond_the_null() -> None:
    assert laid(finding(0.85, 0.9), 0.85).grade("attention") == "fail"
    assert laid(finding(0.85, 0.9), np.nextafter(0.85, 0)).grade("attention") == "pass"


@pytest.mark.parametrize(("limit", "below", "above"), [("passes", "warn", "pass"), ("fails", "fail", "warn")])
def test_grades_by_probability_change_at_the_limits(record: Record, limit: str, below: str, above: str) -> None:
    edge = economy_of(known_reasons()["explainer"][limit])
    assert named(economy(record, "attention", edge - 1e-4), "attention").grade == below
    assert named(economy(record, "attention", edge + 1e-4), "attention").grade == above


def test_the_probability_is_that_of_the_table(record: Record) -> None:
    start, slope = known_reasons()["explainer"]["coefficients"]
    for verdict in verdicts(record):
        found = record.finding("deciding", verdict.name, "economy")
        assert found is not None and verdict.effect is not None and verdict.low is not None and verdict.high is not None
        assert verdict.effect == pytest.approx(1 / (1 + math.exp(-start - slope * found.mean)))
        assert verdict.low <= verdict.effect <= verdict.high
        assert verdict.n == found.n


def test_the_interval_grows_with_the_error_of_the_mean(record: Record) -> None:
    middle = economy_of(0.5)
    widths = [named(economy(record, "attention", middle, half), "attention") for half in (0.0001, 0.02, 0.1)]
    sizes = [verdict.high - verdict.low for verdict in widths if verdict.high is not None and verdict.low is not None]
    assert sizes == sorted(sizes) and sizes[0] < sizes[1] < sizes[2]


def test_the_null_is_what_random_scores_reach(record: Record) -> None:
    random = record.finding("deciding", "random", "economy")
    assert random is not None
    assert scale(record).null_measured == random.mean
    assert named(record, "attention").null == named(record, "random").effect == scale(record).null


def test_without_random_scores_the_null_is_that_of_shuffles(make: Callable[..., Record]) -> None:
    record = make(count=40, explainers=("attention", "leave_one_out"))
    chance = record.finding("deciding", "chance", "economy")
    assert chance is not None and scale(record).null_measured == chance.mean


def test_without_random_scores_the_null_of_truth_is_that_of_all_rankings(make: Callable[..., Record]) -> None:
    record = make(count=8, explainers=("attention", "leave_one_out"), audits=("truth",))
    truths = [[True, False, False], [True, False, True, True, False], [False, True], [True]]
    columns = {"truth": truths, "label": [0] * 4}
    small = replace(record, examples=pa.table(columns))
    by_hand = []
    for truth in truths:
        orders = list(itertools.permutations(truth))
        hits = [[k for k, flag in enumerate(order, 1) if flag] for order in orders]
        by_hand.append(np.mean([np.mean([i / k for i, k in enumerate(places, 1)]) for places in hits]))
    assert scale(small).null == pytest.approx(np.mean(by_hand))


def test_known_words_beat_probability(planted: Record) -> None:
    found = {verdict.name: verdict for verdict in verdicts(planted)}
    assert {verdict.measure for verdict in found.values()} == {"auprc"}
    assert found["leave_one_out"].grade == "pass"
    assert found["random"].grade == "reference"
    truth = planted.finding("truth", "attention", "auprc")
    assert truth is not None
    assert found["attention"].effect == truth.mean
    assert f"AUPRC {found['leave_one_out'].effect:.2f}" in outcome(planted).headline


def test_only_attention_is_told_about_shuffling_equivalents_and_erasure(record: Record, erased: Record) -> None:
    assert [len(named(record, name).more) for name in ("attention", "gradient", "random")] == [2, 0, 0]
    assert len(named(erased, "attention").more) == 4


@pytest.mark.parametrize(
    ("kind", "words"), [("exact", "This is exact"), ("lower bound", "lower bound"), ("bracket", "certified")]
)
def test_the_furthest_attention_says_how_certain_it_is(make: Callable[..., Record], kind: str, words: str) -> None:
    assert words in named(make(count=40, kind=kind), "attention").more[1]


def with_upper(record: Record, mean: float) -> Record:
    upper = Finding("adversary", "attention", "jsd_upper", "all", mean, mean, mean, 0.1, 40)
    return remade(record, summary=record.summary | {"findings": record.summary["findings"] + finding_rows([upper])})


def test_a_bracket_names_its_upper_end(make: Callable[..., Record]) -> None:
    record = with_upper(make(count=40, kind="bracket"), 0.64321)
    assert "between this and 0.64 on average" in named(record, "attention").more[1]


def test_a_search_has_an_upper_end_where_one_is_proved(make: Callable[..., Record]) -> None:
    record = make(count=40, kind="lower bound")
    found = record.finding("adversary", "attention", "jsd")
    assert found is not None
    told = named(with_upper(record, 0.64321), "attention").more[1]
    assert f"lies at least {found.mean:.2f}, which a search found, and provably at most 0.64 away." in told
    for empty in (record, with_upper(record, 0.6931)):  # 0.69 is the most there can be anyway
        told = named(empty, "attention").more[1]
        assert "provably" not in told
        assert "lower bound from a search" in told


def test_headlines_name_what_may_be_shown_and_speak_of_attention(record: Record) -> None:
    told = outcome(record).headline
    assert told.startswith(
        "You may show leave_one_out as a reason for this model’s decisions; do not show attention: in "
    )
    assert "of 100 models with known reasons an explainer that measured like leave_one_out had found" in told
    assert outcome(record).explainer == "leave_one_out"
    both = economy(record, "attention", 0.95)
    assert "; attention may be shown too: " in outcome(both).headline
    best = economy(record, "attention", 0.99)
    assert outcome(best).headline.startswith("You may show attention as a reason for this model’s decisions: in ")


def middling(record: Record) -> Record:
    """The record with no explainer that passes."""
    weak = economy(record, "leave_one_out", economy_of((TOP + BOTTOM) / 2))
    for name in ("gradient", "gradient_norm"):
        weak = economy(weak, name, 0.5)
    return weak


TOP, BOTTOM = (known_reasons()["explainer"][limit] for limit in ("passes", "fails"))


def test_a_headline_without_a_pass_warns_or_names_the_least_bad(record: Record) -> None:
    weak = middling(record)
    assert standing(weak) == "warn"
    opening = (
        "Show leave_one_out as a reason for this model’s decisions only with a warning; do not show attention: in "
    )
    assert outcome(weak).headline.startswith(opening)
    none = economy(weak, "leave_one_out", 0.62)
    assert standing(none) == "fail"
    assert outcome(none).headline.startswith(
        "None of these 5 explainers may be shown as the reason for this model’s decisions; the least bad is "
        "leave_one_out: in "
    )


def test_a_headline_is_one_sentence(record: Record) -> None:
    text = outcome(record).headline
    assert text.endswith(".")
    assert ". " not in text


@pytest.mark.parametrize("audit", ["permutation", "adversary"])
def test_other_cards_do_not_decide(record: Record, audit: str) -> None:
    measure = {"permutation": "median_tvd", "adversary": "jsd"}[audit]
    for mean in (0.01, 0.69):
        other = changed(record, audit, "attention", measure, mean=mean, low=mean - 0.001, high=mean + 0.001)
        assert outcome(other).headline == outcome(record).headline
        assert standing(other) == standing(record)


def test_not_beating_random_scores_is_said(record: Record) -> None:
    random = record.finding("deciding", "random", "economy")
    assert random is not None
    weak = economy(record, "attention", random.mean)
    assert named(weak, "attention").grade == "fail"
    assert "not clearly beat" in named(weak, "attention").sentence


def test_where_random_scores_do_as_well_nothing_can_be_said(record: Record) -> None:
    short = record
    for name in record.summary["explainers"]:
        short = economy(short, name, 0.97)
    assert {v.grade for v in verdicts(short) if v.name != "random"} == {"not applicable"}
    assert outcome(short).headline.startswith("This run cannot say whether a heatmap may be shown: nothing can be said")
    assert standing(short) == "not applicable"


@pytest.mark.parametrize("audits", [("deciding",), ("truth",)])
def test_few_texts_are_no_evidence(make: Callable[..., Record], audits: tuple[str, ...]) -> None:
    few, enough = make(count=29, audits=audits), make(count=30, audits=audits)
    assert not outcome(few).graded or {v.grade for v in verdicts(few)} == {"not applicable", "reference"}
    assert outcome(few).headline == (
        "This run cannot say whether a heatmap may be shown: too few texts: 29 texts are usable, and a grade takes 30."
    )
    assert standing(few) == "not applicable"
    assert standing(enough) != "not applicable"


def test_a_model_near_chance_gets_a_caveat_and_never_a_clear_pass(record: Record) -> None:
    poor = modelled(record, test={"accuracy": 0.53, "macro_f1": 0.5, "auc": 0.54})
    assert not near_chance(record)
    assert not any("near chance" in note for note in outcome(record).caveats)
    assert near_chance(poor)
    assert any("near chance" in note for note in outcome(poor).caveats)
    assert (standing(record), standing(poor)) == ("pass", "warn")
    assert outcome(poor).headline.endswith(", but the model itself is hardly better than chance.")


def modelled(record: Record, **values: Any) -> Record:
    return remade(record, summary=record.summary | {"model": record.summary["model"] | values})


def test_a_model_that_is_unlike_the_bank_is_said_to_be_and_widens(record: Record) -> None:
    assert unlike(record) == []
    other = modelled(record, shape="hierarchical")
    assert outcome(record).caveats[0].startswith("3 explainers were left out")
    assert "unlike those of the bank (it is another kind of network (hierarchical))" in outcome(other).caveats[0]
    near = economy(record, "gradient_norm", economy_of((TOP + BOTTOM) / 2), 0.01)
    before, after = named(near, "gradient_norm"), named(modelled(near, shape="hierarchical"), "gradient_norm")
    assert before.effect == after.effect
    assert after.low is not None and before.low is not None and after.high is not None and before.high is not None
    assert after.low < before.low and after.high > before.high


def test_a_narrow_pass_of_a_model_unlike_the_bank_is_a_warning(record: Record) -> None:
    near = economy(record, "gradient", economy_of(TOP + 0.005), 0.01)
    assert named(near, "gradient").grade == "pass"
    assert named(modelled(near, shape="hierarchical"), "gradient").grade == "warn"


def test_what_makes_a_model_unlike_the_bank(record: Record) -> None:
    bank = known_reasons()["bank"]
    corpus = record.summary["corpus"] | {"classes": list(map(str, range(bank["classes"][1] + 1)))}
    assert "classes apart" in unlike(remade(record, summary=record.summary | {"corpus": corpus}))[0]
    assert "accuracy" in unlike(modelled(record, test={"accuracy": bank["accuracy"][0] - 0.01}))[0]
    long = [list(range(int(bank["words"][1]) + 2))] * record.examples.num_rows
    place = record.examples.column_names.index("starts")
    longer = replace(record, examples=record.examples.set_column(place, "starts", pa.array(long)))
    assert "words on average" in unlike(longer)[0]


def test_a_rare_class_is_not_mistaken_for_chance(record: Record) -> None:
    labels = pa.array([0] * (record.examples.num_rows - 9) + [1] * 9)
    place = record.examples.column_names.index("label")
    rare = replace(record, examples=record.examples.set_column(place, "label", labels))
    for auc, expected in ((0.93, False), (0.55, True), (None, True)):
        assert near_chance(modelled(rare, test={"accuracy": 0.96, "auc": auc})) is expected


def test_few_examples_of_other_audits_are_told(make: Callable[..., Record]) -> None:
    told = outcome(make(count=20, audits=("permutation",))).caveats
    assert told[0].startswith("Only 20 texts stand behind some numbers")


def test_texts_without_a_number_are_told_where_known_words_judge(record: Record, planted: Record) -> None:
    assert not any("does not exist" in note for note in outcome(planted).caveats)
    lost = changed(planted, "truth", "attention", "auprc", n=113, undefined=7)
    assert outcome(lost).caveats[0].startswith("For 7 of 120 texts a measure does not exist (no word is known to")
    drawn = changed(record, "deciding", "attention", "economy", n=48, undefined=252)
    assert not any("does not exist" in note for note in outcome(drawn).caveats)


def test_what_was_not_run_is_not_graded_and_says_why(make: Callable[..., Record]) -> None:
    unheard = make(count=40, audits=("agreement",))
    assert named(unheard, "gradient").grade == "not applicable"
    assert "“deciding” was not run" in named(unheard, "gradient").sentence
    assert standing(unheard) == "not applicable"
    assert outcome(unheard).headline.startswith("No heatmap was graded: ")


def test_an_old_record_still_has_an_outcome(make: Callable[..., Record]) -> None:
    """One made before there was an audit of the words that decide."""
    old = make(count=40, audits=("agreement", "permutation", "adversary"))
    assert not outcome(old).graded
    assert [card.name for card in outcome(old).cards] == ["agreement", "permutation", "adversary"]
    assert "No heatmap was graded" in render(old)


def test_without_attention_the_headline_says_nothing_of_it(make: Callable[..., Record]) -> None:
    record = make(count=60, explainers=("gradient", "gradient_norm", "random"))
    assert leading(record) == "gradient"
    assert outcome(record).headline.startswith("You may show gradient as a reason for this model’s decisions: in ")
    alone = economy(make(count=60, explainers=("gradient",)), "gradient", 0.4)
    assert outcome(alone).headline.startswith("Do not show gradient as the reason for this model’s decisions: in ")


def test_random_scores_are_never_the_headline(make: Callable[..., Record]) -> None:
    record = make(count=40, explainers=("gradient", "random"))
    poor = economy(economy(record, "gradient", 0.5), "random", 0.2)
    assert outcome(poor).explainer == "gradient"
    assert standing(poor) == "fail"


def test_grades_are_counted(record: Record) -> None:
    given = [verdict.grade for verdict in verdicts(record)]
    assert given.count("pass") >= 1 and given.count("fail") >= 1
    counts = {grade: given.count(grade) for grade in ("pass", "warn", "fail") if given.count(grade)}
    told = ", ".join(f"{size} {grade}" for grade, size in counts.items())
    assert outcome(record).tally.startswith(f"Explainers: {told}, 1 reference of 6. Audits: ")


def test_verdicts_stand_in_the_order_of_their_numbers(record: Record) -> None:
    found = verdicts(record)
    assert [v.name for v in found[:2]] == ["leave_one_out", "gradient"]
    assert found[-1].name == "random"
    numbers = [v.effect for v in found[:-1] if v.effect is not None]
    assert numbers == sorted(numbers, reverse=True)
    board = leaderboard(record)
    assert board is not None and [row.name for row in board.rows] == [v.name for v in found[:-1]]


def test_an_audit_that_does_not_apply_gives_its_reason(make: Callable[..., Record]) -> None:
    record = make(count=40, audits=("permutation",))
    about = {"question": "?", "paper": "", "kind": "sample", "applies": False, "why": "one token a text."}
    audits = record.summary["audits"] | {"deciding": about}
    record = remade(record, summary=record.summary | {"audits": audits})
    assert named(record, "attention").sentence == "Not graded: one token a text."


def test_a_number_that_is_none_is_not_graded(record: Record) -> None:
    empty = changed(record, "deciding", "attention", "economy", mean=math.nan, low=math.nan, high=math.nan, n=0)
    assert named(empty, "attention").grade == "not applicable"
    assert named(empty, "attention").effect is None
    assert "of attention nothing can be said" in outcome(empty).headline


def test_a_column_that_contradicts_a_grade_is_explained(make: Callable[..., Record]) -> None:
    record = make(count=60, audits=("deciding", "erasure"))
    failing = economy(record, "leave_one_out", 0.5)
    board = leaderboard(failing)
    assert board is not None
    assert [note for note in board.notes if note.startswith("leave_one_out is best by ")]
    whole = leaderboard(record)
    assert whole is not None and not whole.notes
