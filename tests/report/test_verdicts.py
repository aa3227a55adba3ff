from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from assay.records import Finding, Record, finding_rows
from assay.report.outcome import outcome
from assay.report.verdicts import Verdict, leading, near_chance, standing, verdicts
from assay.report.yardsticks import AGREEMENT, JSD_FAR, TRUTH, grade, scale

LOO = "attention~leave_one_out"


def finding(low: float, high: float) -> Finding:
    return Finding("agreement", LOO, "tau", "all", (low + high) / 2, low, high, 0.1, 100)


def named(record: Record, name: str) -> Verdict:
    return next(verdict for verdict in verdicts(record) if verdict.name == name)


@pytest.mark.parametrize("rule", [AGREEMENT, TRUTH])
def test_grades_change_exactly_at_the_limits(rule: Any) -> None:
    below_pass, below_fail = np.nextafter(rule.passes, 0), np.nextafter(rule.fails, 0)
    assert grade(finding(rule.passes, 0.95), 0.0, rule) == "pass"
    assert grade(finding(below_pass, 0.95), 0.0, rule) == "warn"
    assert grade(finding(0.1, rule.fails), 0.0, rule) == "warn"
    assert grade(finding(0.1, below_fail), 0.0, rule) == "fail"


def test_an_explainer_must_lie_beyond_the_null() -> None:
    assert grade(finding(0.7, 0.9), 0.7, AGREEMENT) == "fail"
    assert grade(finding(0.7, 0.9), np.nextafter(0.7, 0), AGREEMENT) == "pass"


def test_every_explainer_gets_the_number_of_its_finding(record: Record) -> None:
    for verdict in verdicts(record):
        pairs = (f"{verdict.name}~leave_one_out", f"leave_one_out~{verdict.name}")
        found = [f for f in record.findings if f.subject in pairs and f.group == "all"]
        assert (verdict.grade == "reference") == (verdict.name in ("leave_one_out", "random"))
        if found:
            expected = (found[0].mean, found[0].low, found[0].high, found[0].n)
            assert (verdict.effect, verdict.low, verdict.high, verdict.n) == expected


def test_the_null_is_what_random_scores_reach(record: Record) -> None:
    random = next(f for f in record.findings if f.subject == "leave_one_out~random" and f.group == "all")
    assert named(record, "attention").null == random.mean
    assert (scale(record).null, scale(record).null_high) == (random.mean, random.high)


def test_without_random_scores_the_null_of_tau_is_zero(make: Callable[..., Record]) -> None:
    record = make(count=40, explainers=("attention", "leave_one_out"))
    assert named(record, "attention").null == 0


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


def test_truth_beats_agreement(planted: Record) -> None:
    found = {verdict.name: verdict for verdict in verdicts(planted)}
    assert {verdict.measure for verdict in found.values()} == {"auprc"}
    assert found["leave_one_out"].grade == "pass"
    assert found["random"].grade == "reference"
    truth = planted.finding("truth", "attention", "auprc")
    assert truth is not None
    assert found["attention"].effect == truth.mean


def test_the_sentence_tells_how_many_pairs_of_words_are_ranked_alike(record: Record) -> None:
    shares = []
    for row in record.examples.to_pylist():
        x, y = np.array(row["score:attention"]), np.array(row["score:leave_one_out"])
        pairs = list(itertools.combinations(range(min(len(x), 60)), 2))
        if len(x) <= 60:
            shares.append(np.mean([(x[i] > x[j]) == (y[i] > y[j]) for i, j in pairs]))
    told = int(named(record, "attention").sentence.split("about ")[1].split(" times")[0])
    assert told == pytest.approx(100 * np.mean(shares), abs=1)


def test_only_attention_is_told_about_shuffling_equivalents_and_erasure(record: Record, erased: Record) -> None:
    assert [len(verdict.more) for verdict in verdicts(record)] == [2, 0, 0, 0, 0, 0]
    assert [len(verdict.more) for verdict in verdicts(erased)] == [4, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("kind", "words"), [("exact", "This is exact"), ("lower bound", "lower bound"), ("bracket", "certified")]
)
def test_the_furthest_attention_says_how_certain_it_is(make: Callable[..., Record], kind: str, words: str) -> None:
    assert words in named(make(count=40, kind=kind), "attention").more[1]


def with_upper(record: Record, mean: float) -> Record:
    upper = Finding("adversary", "attention", "jsd_upper", "all", mean, mean, mean, 0.1, 40)
    return replace(record, summary=record.summary | {"findings": record.summary["findings"] + finding_rows([upper])})


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


def test_headlines_follow_the_standing(record: Record, changed: Callable[..., Record]) -> None:
    strong = changed(record, "agreement", LOO, "tau", mean=0.75, low=0.7, high=0.8)
    near = changed(strong, "adversary", "attention", "jsd", mean=0.2, low=0.1, high=0.3)
    assert standing(near) == "pass"
    assert outcome(near).headline.startswith("The attention heatmap may be shown")
    assert standing(strong) == "warn"
    assert "but a very different heatmap gives the same prediction" in outcome(strong).headline
    middling = changed(near, "agreement", LOO, "tau", mean=0.5, low=0.45, high=0.55)
    assert outcome(middling).headline.startswith("Show the attention heatmap as a reason")
    assert standing(record) == "fail"
    assert outcome(record).headline.startswith("Do not show the attention heatmap")


def test_a_headline_is_one_sentence_with_the_number_and_its_interval(record: Record) -> None:
    found = record.finding("agreement", LOO, "tau")
    assert found is not None
    text = outcome(record).headline
    assert f"τ {found.mean:.2f}, 95 % interval {found.low:.2f} to {found.high:.2f}" in text
    assert text.endswith(".")
    assert ". " not in text


def test_shuffling_without_effect_speaks_against_a_heatmap(record: Record, changed: Callable[..., Record]) -> None:
    still = changed(record, "permutation", "attention", "median_tvd", mean=0.02, low=0.01, high=0.0499)
    moved = changed(record, "permutation", "attention", "median_tvd", mean=0.04, low=0.01, high=0.05)
    assert "shuffling it hardly changes the prediction" in outcome(still).headline
    assert "shuffling" not in outcome(moved).headline


def test_an_equivalent_speaks_against_a_heatmap_only_when_surely_far(
    record: Record, changed: Callable[..., Record]
) -> None:
    far = changed(record, "adversary", "attention", "jsd", low=np.nextafter(JSD_FAR, 1))
    unsure = changed(record, "adversary", "attention", "jsd", low=JSD_FAR)
    assert "very different heatmap" in outcome(far).headline
    assert "very different heatmap" not in outcome(unsure).headline


@pytest.mark.parametrize(
    ("won", "lost", "doubted"),
    # two-sided sign tests by hand: 2 * (1 + 6) / 2**6 = .22; 2 / 2**6 = .03; 2 * (1 + 12 + 66) / 2**12 = .039
    [(5, 1, True), (6, 0, False), (10, 2, False), (0, 6, True), (3, 3, True), (0, 0, False)],
)
def test_a_random_order_that_is_as_short_speaks_against_a_heatmap(
    erased: Record, changed: Callable[..., Record], won: int, lost: int, doubted: bool
) -> None:
    record = changed(erased, "minimal_set", "attention~random", "wins", mean=won / 20, n=20)
    record = changed(record, "minimal_set", "random~attention", "wins", mean=lost / 20, n=20)
    words = "erasing the most attended words does not clearly change the decision sooner than erasing random ones"
    assert (words in outcome(record).headline) == doubted
    strong = changed(record, "agreement", LOO, "tau", mean=0.75, low=0.7, high=0.8)
    strong = changed(strong, "adversary", "attention", "jsd", mean=0.2, low=0.1, high=0.3)
    strong = changed(strong, "permutation", "attention", "median_tvd", mean=0.2, low=0.1, high=0.3)
    assert standing(strong) == ("warn" if doubted else "pass")


def test_a_negative_number_has_a_real_minus_in_the_headline(record: Record, changed: Callable[..., Record]) -> None:
    reversed_ = changed(record, "agreement", LOO, "tau", mean=-0.25, low=-0.3, high=-0.2)
    assert "τ −0.25, 95 % interval −0.30 to −0.20" in outcome(reversed_).headline


def test_not_beating_random_scores_is_said(record: Record, changed: Callable[..., Record]) -> None:
    weak = changed(record, "agreement", LOO, "tau", mean=0.02, low=-0.01, high=0.05)
    assert named(weak, "attention").grade == "fail"
    assert "not clearly beat" in named(weak, "attention").sentence
    assert "not clearly beat random" in outcome(weak).headline


def test_a_model_near_chance_gets_a_caveat_and_never_a_clear_pass(
    record: Record, changed: Callable[..., Record]
) -> None:
    strong = changed(record, "agreement", LOO, "tau", mean=0.75, low=0.7, high=0.8)
    strong = changed(strong, "adversary", "attention", "jsd", mean=0.2, low=0.1, high=0.3)
    model = strong.summary["model"] | {"test": {"accuracy": 0.53, "macro_f1": 0.5, "auc": 0.54}}
    poor = replace(strong, summary=strong.summary | {"model": model})
    assert not near_chance(strong)
    assert not any("near chance" in note for note in outcome(strong).caveats)
    assert near_chance(poor)
    assert any("near chance" in note for note in outcome(poor).caveats)
    assert standing(poor) == "warn"


def test_a_rare_class_is_not_mistaken_for_chance(record: Record) -> None:
    labels = pa.array([0] * (record.examples.num_rows - 9) + [1] * 9)
    place = record.examples.column_names.index("label")
    rare = replace(record, examples=record.examples.set_column(place, "label", labels))
    for auc, expected in ((0.93, False), (0.55, True), (None, True)):
        model = rare.summary["model"] | {"test": {"accuracy": 0.96, "auc": auc}}
        assert near_chance(replace(rare, summary=rare.summary | {"model": model})) is expected


def test_few_and_undefined_examples_are_told(
    record: Record, make: Callable[..., Record], changed: Callable[..., Record]
) -> None:
    told = outcome(replace(record, summary=record.summary | {"left_out": {}})).caveats
    assert told == ()
    assert outcome(make(count=20)).caveats[0].startswith("Only 20 texts stand behind a grade")
    lost = outcome(changed(record, "agreement", LOO, "tau", undefined=7)).caveats[0]
    assert lost.startswith("For 7 of 307 texts a measure does not exist")


def test_what_was_not_run_is_not_graded_and_says_why(make: Callable[..., Record]) -> None:
    alone = make(count=40, explainers=("attention", "gradient"))
    assert named(alone, "attention").grade == "not applicable"
    assert "leave_one_out" in named(alone, "attention").sentence
    unheard = make(count=40, audits=("permutation",))
    assert "“agreement” was not run" in named(unheard, "gradient").sentence
    silent = make(count=40, explainers=("gradient", "random"), audits=("agreement",))
    assert (
        outcome(silent).headline
        == "This run cannot say whether a heatmap may be shown: no explainer was put to a test."
    )


def test_without_attention_the_headline_is_about_the_best(make: Callable[..., Record]) -> None:
    names = ("gradient", "gradient_norm", "input_x_gradient", "leave_one_out", "random")
    record = make(count=60, explainers=names, audits=("agreement",))
    effects = {verdict.name: verdict.effect or 0.0 for verdict in verdicts(record) if verdict.name != "random"}
    best = max(effects, key=lambda name: effects[name])
    assert leading(record) == best == "gradient"
    assert standing(record) == named(record, best).grade == "pass"
    assert outcome(record).headline.startswith("The heatmap of gradient, the best of 3, may be shown as a reason")
    model = record.summary["model"] | {"test": {"accuracy": 0.5, "auc": 0.5}}
    poor = replace(record, summary=record.summary | {"model": model})
    assert standing(poor) == "warn"
    assert outcome(poor).headline.endswith("but the model itself is hardly better than chance.")


def test_random_scores_are_never_the_headline(make: Callable[..., Record], changed: Callable[..., Record]) -> None:
    record = make(count=40, explainers=("gradient", "leave_one_out", "random"), audits=("agreement",))
    poor = changed(record, "agreement", "gradient~leave_one_out", "tau", mean=-0.5, low=-0.6, high=-0.4)
    assert leading(poor) == "gradient"
    assert standing(poor) == "fail"


def test_what_is_known_of_attention_does_not_speak_against_another(make: Callable[..., Record]) -> None:
    record = make(count=60, explainers=("gradient", "leave_one_out"), audits=("agreement", "adversary"))
    far = Finding("adversary", "attention", "jsd", "all", 0.68, 0.67, 0.69, 0.01, 60)
    rows = [row for row in record.summary["findings"] if row["audit"] != "adversary"] + finding_rows([far])
    assert standing(replace(record, summary=record.summary | {"findings": rows})) == "pass"


def test_grades_are_counted(make: Callable[..., Record], record: Record) -> None:
    given = [verdict.grade for verdict in verdicts(record)]
    assert [given.count(grade) for grade in ("pass", "warn", "fail")] == [1, 2, 1]
    told = "Explainers: 1 pass, 2 warn, 1 fail, 2 reference of 6. Audits: 1 warn, 2 fail of 3."
    assert outcome(record).tally == told


def test_without_a_grade_other_findings_can_still_warn(
    make: Callable[..., Record], changed: Callable[..., Record]
) -> None:
    record = make(count=40, audits=("permutation",))
    moved = changed(record, "permutation", "attention", "median_tvd", mean=0.3, low=0.2, high=0.4)
    still = changed(record, "permutation", "attention", "median_tvd", mean=0.01, low=0.0, high=0.02)
    assert (standing(moved), standing(still)) == ("not applicable", "warn")
    assert outcome(moved).headline.startswith("No heatmap was graded: Shuffled attention moves predictions by a TVD of")
    assert outcome(still).headline.endswith("only with a warning: shuffling it hardly changes the prediction.")


def test_an_audit_that_does_not_apply_gives_its_reason(make: Callable[..., Record]) -> None:
    record = make(count=40, audits=("permutation",))
    about = {"question": "?", "paper": "", "kind": "sample", "applies": False, "why": "one token a text."}
    audits = record.summary["audits"] | {"agreement": about}
    record = replace(record, summary=record.summary | {"audits": audits})
    assert named(record, "attention").sentence == "Not graded: one token a text."


def test_a_number_that_is_none_is_not_graded(record: Record, changed: Callable[..., Record]) -> None:
    empty = changed(record, "agreement", LOO, "tau", mean=float("nan"), low=float("nan"), high=float("nan"), n=0)
    assert named(empty, "attention").grade == "not applicable"
    assert named(empty, "attention").effect is None


def test_what_is_the_yardstick_but_for_the_sign_is_not_graded_against_it(record: Record) -> None:
    """An explainer that agrees with leave-one-out in every text is leave-one-out."""
    same = [
        replace(each, mean=1.0, low=1.0, high=1.0) if (each.subject, each.measure) == (LOO, "tau") else each
        for each in record.findings
    ]
    changed = Record(record.summary | {"findings": finding_rows(same)}, record.instances, record.examples)
    assert named(changed, "attention").grade == "reference"
    assert "yardstick" in named(changed, "attention").sentence
    assert named(record, "attention").grade != "reference"
