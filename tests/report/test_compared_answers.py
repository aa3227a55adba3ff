from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from assay.audits import AUDITS
from assay.audits.sparsity import sweep
from assay.lookup import strength
from assay.records import Finding, Record, finding_rows
from assay.report.sections import sections
from tests.report.synthetic import remade
from tests.report.trained import MODELS, SEEDS


@pytest.fixture(scope="module")
def models(make: Callable[..., Record]) -> Record:
    """A record of all audits about models."""
    return make(count=300, audits=MODELS)


def told(record: Record, audit: str) -> str:
    return AUDITS[audit].conclude(record).answer


def without(record: Record, *unwanted: tuple[str, str, str]) -> Record:
    """The record without these findings, and without the columns behind them."""
    rows = [r for r in record.summary["findings"] if (r["audit"], r["measure"], r["subject"]) not in unwanted]
    return remade(record, summary=record.summary | {"findings": rows})


def mean(record: Record, audit: str, column: str) -> float:
    return float(np.nanmean(record.audit_rows(audit)[column].to_numpy().astype(float)))


@pytest.mark.parametrize("audit", MODELS)
def test_every_audit_of_models_has_words_of_its_own(audit: str, models: Record) -> None:
    section = next(section for section in sections(models) if section.name == audit)
    assert section.answer.endswith(".")
    assert section.title.endswith("?")
    assert section.reading
    assert section.kind == ("sample" if audit == "dispersion" else "trained")


@pytest.mark.parametrize(
    ("low", "high", "ending"),
    [
        (-0.003, 0.026, "attention hardly matters, so no test of it says much."),
        (0.001, 0.029, "attention hardly matters, so no test of it says much."),
        (0.02, 0.04, "attention matters, so that it can be tested."),
        (-0.02, 0.04, "whether attention matters on this task these texts cannot tell."),
    ],
)
def test_uniform_attention_is_told_with_its_gain_and_what_follows(
    low: float, high: float, ending: str, models: Record, changed: Callable[..., Record]
) -> None:
    record = changed(models, "frozen_uniform", "learnt", "right_gain", mean=0.012, low=low, high=high)
    words = told(record, "frozen_uniform")
    rates = [f"{100 * mean(models, 'frozen_uniform', f'right:{name}'):.1f} %" for name in ("uniform", "learnt")]
    assert f"right on {rates[0]} of texts, with learnt attention on {rates[1]} (gain 1.2 points [95 %" in words
    assert f"{100 * low:.1f} to {100 * high:.1f}, n = 300]".replace("-", "−") in words
    assert words.endswith(ending)


def test_seeds_are_told_by_their_mean_and_their_ends(models: Record) -> None:
    words = told(models, "seed_variance")
    each = [mean(models, "seed_variance", f"jsd:{name}") for name in SEEDS]
    assert f"JSD of {np.mean(each):.2f} (95 % interval" in words
    assert f"TVD of {mean(models, 'seed_variance', 'tvd:seeds'):.2f} (95 % interval" in words
    assert f"means over 8 other seeds); seed by seed the JSD is {min(each):.2f} to {max(each):.2f}" in words


def test_the_guides_stand_in_the_order_of_their_accuracy(models: Record, changed: Callable[..., Record]) -> None:
    words = told(models, "guide")
    assert (
        "80.0 % with attention of the audited model, 74.0 % with its own attention, 72.0 % with uniform weights, and"
        in words
    )
    turned = changed(models, "guide", "uniform", "right", mean=0.9)
    assert "right on 90.0 % with uniform weights, 80.0 % with attention" in told(turned, "guide")


def test_attention_helps_only_where_the_whole_interval_does(models: Record, changed: Callable[..., Record]) -> None:
    assert "Attention of the audited model helps: 6.0 points (95 %" in told(models, "guide")
    assert "14.0 points (95 % interval" in told(models, "guide"), "over the adversary, text by text"
    unclear = changed(models, "guide", "imported", "right_gain", low=-0.01)
    assert "does not clearly help: 6.0 points" in told(unclear, "guide")
    worse = changed(models, "guide", "imported", "right_gain", mean=-0.05, low=-0.08, high=-0.01)
    assert "is surely worse: −5.0 points" in told(worse, "guide")


def test_the_adversary_is_the_furthest_that_moves_predictions_no_more_than_seeds(
    models: Record, changed: Callable[..., Record]
) -> None:
    seeds = [mean(models, "trained_adversary", f"tvd:{name}") for name in SEEDS]
    near = changed(models, "trained_adversary", "λ=0.1", "tvd", mean=max(seeds) - 0.001)
    words = told(near, "trained_adversary")
    assert words.startswith("An adversary (λ=0.1) was trained to attend at a JSD of 0.55")
    assert words.endswith("So attention was trained further away than a seed puts it.")
    far = changed(models, "trained_adversary", "λ=0.1", "tvd", mean=max(seeds) + 0.001)
    assert told(far, "trained_adversary").startswith("An adversary (λ=0.01) was trained")
    own = float(np.mean(models.examples["label"].to_numpy() == models.examples["predicted"].to_numpy()))
    assert f"the audited model on {100 * own:.1f} %." in words


def test_an_adversary_within_the_cloud_of_seeds_shows_nothing(models: Record, changed: Callable[..., Record]) -> None:
    furthest = max(mean(models, "trained_adversary", f"jsd:{name}") for name in SEEDS)
    for low, sure in ((furthest + 0.004, "not surely "), (furthest + 0.006, "")):
        near = changed(models, "trained_adversary", "λ=0.1", "tvd", mean=0.05)
        near = changed(near, "trained_adversary", "λ=0.1", "jsd", low=low)
        assert told(near, "trained_adversary").endswith(
            f"So attention was {sure}trained further away than a seed puts it."
        )


def test_an_adversary_that_moves_all_predictions_is_told_so(models: Record, changed: Callable[..., Record]) -> None:
    record = models
    for name in ("λ=0", "λ=0.001", "λ=0.01", "λ=0.1"):
        record = changed(record, "trained_adversary", name, "tvd", mean=0.2)
    words = told(changed(record, "trained_adversary", "λ=0", "tvd", mean=0.15), "trained_adversary")
    assert words.startswith("No adversary kept the predictions: the closest (λ=0) is at a TVD of 0.15")


def test_without_seeds_the_limit_is_named(make: Callable[..., Record]) -> None:
    record = make(count=60, audits=("trained_adversary",))
    record = without(record, *((("trained_adversary", m, name)) for name in SEEDS for m in ("jsd", "tvd")))
    assert "Without models of other seeds a TVD up to 0.05 was held to be no change." in told(
        record, "trained_adversary"
    )


@pytest.mark.parametrize(("right", "chosen"), [(0.911, "λ=1"), (0.91, "λ=1"), (0.909, "λ=0.1")])
def test_the_smallest_mass_counts_where_accuracy_stays_within_a_point(
    right: float, chosen: str, models: Record, changed: Callable[..., Record]
) -> None:
    record = changed(models, "deception", "λ=0", "right", mean=0.92)
    record = changed(record, "deception", "λ=1", "right", mean=right)
    words = told(record, "deception")
    assert (
        f"trained to stay off them with {chosen}, it is {100 * mean(models, 'deception', f'mass:{chosen}'):.1f} %"
        in words
    )
    assert "Without these words a model is right on 60.0 % (95 % interval" in words
    assert words.endswith("the words count, and attention need not show it.")


def test_words_that_are_not_needed_cannot_be_hidden(models: Record, changed: Callable[..., Record]) -> None:
    record = changed(models, "deception", "without", "right", mean=0.915)
    assert told(record, "deception").endswith("they are not needed, so that avoiding them hides nothing.")


def test_a_model_that_cannot_look_away_is_told_so(models: Record, changed: Callable[..., Record]) -> None:
    record = models
    for name in ("λ=0.01", "λ=0.1", "λ=1"):
        record = changed(record, "deception", name, "right", mean=0.7)
    assert "and no λ lowered that with an accuracy within 1 point of 92.0 %." in told(record, "deception")


def test_variants_are_sorted_by_what_their_gains_surely_are(models: Record, changed: Callable[..., Record]) -> None:
    kept = changed(models, "word_level", "tying", "right_gain", mean=-0.01, low=-0.03, high=0.01)
    words = told(kept, "word_level")
    assert "The task score is not surely lower with concat, tying, and mlm and lower with conicity by 20.0 (" in words
    lost = changed(models, "word_level", "tying", "right_gain", mean=-0.04, low=-0.06, high=-0.02)
    assert "lower with tying by 4.0 (2.0 to 6.0), conicity" in told(lost, "word_level")
    more = mean(models, "word_level", "information:tying") - mean(models, "word_level", "information:base")
    assert f"tying by {more:.2f} (" in words.partition("States tell more")[2], "text by text, for there is no finding"
    gain = mean(models, "word_level", "median_tvd_gain:tying")
    assert f"tying by {gain:.2f} (" in words.partition("Shuffling attention")[2]
    assert "diversity by" not in words.partition("Shuffling attention")[2]
    assert "AUPRC" not in words


def test_planted_truth_has_its_place_in_the_comparison(models: Record) -> None:
    finding = Finding("word_level", "tying", "auprc_gain", "all", 0.11, 0.06, 0.16, 0.2, 300, p_value=0.001)
    rows = [*models.summary["findings"], *finding_rows([finding])]
    record = remade(models, summary=models.summary | {"findings": rows})
    assert "finds the deciding words better (AUPRC) with tying by 0.11 (0.06 to 0.16)." in told(record, "word_level")
    fallen = replace(finding, subject="mlm", mean=-0.22, low=-0.31, high=-0.12)
    worse = remade(record, summary=record.summary | {"findings": finding_rows([*record.findings, fallen])})
    assert "tying by 0.11 (0.06 to 0.16); it is the other way round with mlm by 0.22 (0.12 to 0.31)." in told(
        worse, "word_level"
    )


@pytest.mark.parametrize(
    ("low", "high", "moves"),
    [(0.1, 0.3, "rises"), (-0.3, -0.1, "falls"), (-0.1, 0.1, "neither clearly rises nor falls")],
)
def test_a_positive_trend_rises_with_sparsity(
    low: float, high: float, moves: str, models: Record, changed: Callable[..., Record]
) -> None:
    middle = (low + high) / 2
    record = changed(models, "sparsity", "attention", "trend_input", mean=middle, low=low, high=high)
    numbers = f"τ with λ {middle:.2f}, 95 % interval {low:.2f} to {high:.2f}".replace("-", "−")
    words = told(record, "sparsity")
    assert "As attention gets sparser (sparsegen, λ from −10 to 0.9)" in words
    assert f"agreement of attention with the importance of words {moves} ({numbers})" in words


def test_the_accuracies_of_a_sweep_leave_softmax_apart(models: Record, changed: Callable[..., Record]) -> None:
    record = changed(models, "sparsity", "softmax", "right", mean=0.95)
    assert "Accuracy lies between 77.3 % and 82.3 %; with softmax it is 95.0 % (n = 300" in told(record, "sparsity")


@pytest.mark.parametrize(
    ("low", "high", "meaning"),
    [(0.3, 0.4, "much more than its word"), (0.6, 0.7, "mostly for its word"), (0.45, 0.55, "about half of it")],
)
def test_a_state_stands_for_its_word_where_most_of_it_comes_from_there(
    low: float, high: float, meaning: str, models: Record, changed: Callable[..., Record]
) -> None:
    record = changed(models, "dispersion", "states", "own", mean=(low + high) / 2, low=low, high=high)
    words = told(record, "dispersion")
    assert f"Of what moves a state {50 * (low + high):.1f} % (95 % interval" in words
    assert f"entropy of {mean(models, 'dispersion', 'entropy:states'):.2f} (95 %" in words
    assert meaning in words
    assert f"the importance of states at τ {mean(models, 'dispersion', 'tau:attention~state_gradient'):.2f}" in words


def test_strengths_are_read_from_the_names_of_models() -> None:
    known = {"λ=0": 0.0, "λ=1e-05": 1e-5, "sparsegen(-2)": -2.0, "sparsegen(0.5)": 0.5, "entmax(1.5)": 1.5}
    assert {name: strength(name) for name in known} == known
    assert [strength(name) for name in ("softmax", "sparsemax", "seed 3", "sparsegen(x)")] == [None] * 4


def test_a_sweep_may_go_over_entmax(models: Record) -> None:
    new = {"sparsegen(-10)": "entmax(1.25)", "sparsegen(-2)": "entmax(1.5)"}
    kept = ("softmax", "sparsemax", "attention", *new)
    rows = [row | {"subject": new.get(row["subject"], row["subject"])} for row in models.summary["findings"]]
    rows = [row for row in rows if row["audit"] == "sparsity" and row["subject"] in (*kept, *new.values())]
    record = remade(models, summary=models.summary | {"findings": rows})
    assert sweep(record).strengths == {"softmax": 1.0, "entmax(1.25)": 1.25, "entmax(1.5)": 1.5, "sparsemax": 2.0}
    words = told(record, "sparsity")
    assert words.startswith("As attention gets sparser (entmax, α from 1 to 2), the entropy")
    assert "with softmax" not in words


def test_what_does_not_show_in_two_decimals_is_no_gain(models: Record, changed: Callable[..., Record]) -> None:
    small = changed(models, "word_level", "tying", "median_tvd_gain", mean=0.004, low=0.0039, high=0.0041)
    assert "tying" not in told(small, "word_level").partition("Shuffling attention")[2]
