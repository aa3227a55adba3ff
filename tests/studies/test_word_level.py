"""The page of the study: its numbers against another library's, and what it says where something is missing."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
from scipy import stats

from assay.errors import AssayError
from assay.records import Finding
from studies.word_level.__main__ import SEEDS, parsed, recipe
from studies.word_level.tables import interval, p_values, page


def result(**means):
    """One cell with these means, by measure and model."""
    findings = [
        Finding("word_level", subject, measure, "all", mean, mean, mean, 0.0, 9)
        for name, mean in means.items()
        for measure, _, subject in [name.partition("__")]
    ]
    return {
        "created": "2026-01-01T00:00",
        "device": "cpu",
        "versions": {"torch": "2"},
        "corpus": {"classes": ["a", "b"], "audited": 9},
        "findings": [asdict(finding) for finding in findings],
    }


def test_intervals_and_tests_are_those_of_scipy():
    values = np.random.default_rng(0).standard_normal(7) + 0.3
    mean, half = interval(values)
    low, high = stats.t.interval(0.95, 6, loc=values.mean(), scale=stats.sem(values))
    assert (mean - half, mean + half) == pytest.approx((low, high))
    base = np.random.default_rng(1).standard_normal(7)
    student, ranks = p_values(values - base)
    assert student == pytest.approx(stats.ttest_rel(values, base).pvalue)
    assert ranks == pytest.approx(stats.wilcoxon(values, base).pvalue)


def test_one_seed_or_no_difference_has_no_p_value():
    assert np.isnan(p_values([0.3])).all() and np.isnan(p_values([0.0, 0.0, 0.0])).all()
    student, ranks = p_values([0.1, 0.1, 0.1])
    assert np.isnan(student) and ranks == pytest.approx(0.25)
    assert interval([2.0])[0] == 2 and np.isnan(interval([2.0])[1])


def test_the_page_pairs_each_seed_with_its_own_base():
    """The base differs much between seeds, and tying is above it by 0.1 or 0.2 in each."""
    bases, gaps = (0.2, 0.5, 0.8), (0.1, 0.2, 0.1)
    cells = {
        ("keyword", seed): result(auprc__base=base, auprc__tying=base + gap, right__base=1.0)
        for seed, (base, gap) in enumerate(zip(bases, gaps, strict=True))
    }
    text = page(cells)
    assert "### keyword: 2 classes, 9 test texts, 3 seeds" in text
    half = stats.t.ppf(0.975, 2) * np.std(gaps, ddof=1) / np.sqrt(3)
    assert f"+0.133 ± {half:.3f} (3 : 0; 0.057 / 0.250)" in text
    assert "| mlm | – | – |" in text


def test_a_page_without_results_says_so():
    assert page({}) == "No results yet.\n"


@pytest.mark.parametrize("text", ["keyword", "keyword/x", "keywords/1"])
def test_a_cell_that_is_none_is_refused(text):
    with pytest.raises(AssayError):
        parsed(text)


@pytest.mark.parametrize("name", SEEDS)
def test_states_of_every_cell_can_be_tied(name):
    chosen = recipe(name, seed=3)
    assert 2 * chosen.architecture.hidden == chosen.architecture.embedding
    assert chosen.training.seed == 3
    assert SEEDS[name] >= 5
    assert parsed(f"{name}/4") == (name, 4)
