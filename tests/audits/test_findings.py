from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from assay.audits.findings import summarise
from assay.metrics.intervals import means
from assay.records import Finding, finding_rows, findings_of

PREDICTED = np.arange(30) % 2
CLASSES = ("no", "yes")


def findings(**measures: np.ndarray) -> dict[tuple[str, str, str], Finding]:
    named = {name.replace("__", ":").replace("_at_", "@").replace("_and_", "~"): v for name, v in measures.items()}
    return {(f.measure, f.subject, f.group): f for f in summarise("erasure", "sample", named, PREDICTED, CLASSES)}


@pytest.fixture
def values() -> np.ndarray:
    return np.random.default_rng(0).normal(0.3, 1, 30)


def test_gains_have_the_p_value_of_their_interval_in_each_group(values: np.ndarray) -> None:
    values[4] = np.nan
    found = findings(flip_gain__attention=values, flip__attention=values)
    for group, chosen in (("all", PREDICTED >= 0), ("no", PREDICTED == 0), ("yes", PREDICTED == 1)):
        own = values[chosen & ~np.isnan(values)]
        gain, expected = found["flip_gain", "attention", group], means(own[:, None])
        assert (gain.low, gain.high, gain.p_value) == pytest.approx((expected.low[0], expected.high[0], expected.p[0]))
        assert (gain.low > 0 or gain.high < 0) == (expected.p[0] < 0.05)
        assert found["flip", "attention", group].p_value is None
        assert found["flip", "attention", group].mean == pytest.approx(own.mean())


def test_a_skewed_gain_of_nothing_on_average_has_no_evidence_beside_an_interval_that_holds_0() -> None:
    for seed in range(20):
        gains = np.random.default_rng(seed).exponential(size=300)
        gains += 0.97 - gains.mean() - 1  # a little below 0, well within noise
        found = summarise("erasure", "sample", {"morf_gain:lime": gains}, np.zeros(300, dtype=int), ())[0]
        assert found.low < 0 < found.high
        assert found.p_value is not None and found.p_value > 0.05
    assert stats.wilcoxon(gains).pvalue < 0.01  # which tests another sentence


def test_shares_and_their_differences_have_a_width_where_nothing_happened() -> None:
    found_of = ("right", "learnt"), ("right_gain", "learnt"), ("tau", "a~b")
    found = findings(right__learnt=np.ones(30), right_gain__learnt=np.zeros(30), tau__a_and_b=np.ones(30))
    share, gain, tau = (found[name, of, "all"] for name, of in found_of)
    assert share.low < 0.9 < share.high == 1
    assert gain.low < -0.1 and gain.high > 0.1 and gain.p_value == 1
    assert tau.low == tau.high == 1


def test_a_class_of_a_single_text_has_no_interval() -> None:
    found = summarise("erasure", "sample", {"flip_gain:lime": np.arange(3.0)}, np.array([0, 1, 1]), CLASSES)
    one = next(f for f in found if f.group == "no")
    assert one.n == 1 and np.isnan([one.low, one.high]).all() and one.p_value == 1
    rows = finding_rows(found)
    assert [row["low"] for row in rows if row["group"] == "no"] == [None]
    assert findings_of(json.loads(json.dumps(rows, allow_nan=False)))[0] == found[0]


def test_gains_that_are_nothing_have_no_evidence() -> None:
    assert findings(morf_gain__random=np.zeros(30))["morf_gain", "random", "all"].p_value == 1.0


def test_thresholds_and_pairs_are_told_over_all_examples_alone(values: np.ndarray) -> None:
    found = findings(
        sufficiency_at_0__gradient=values, overlap__a_and_b=values, sign__a_and_b=values, tau__a_and_b=values
    )
    assert {key for key in found if key[2] == "all"} == {
        ("sufficiency@0", "gradient", "all"),
        ("overlap", "a~b", "all"),
        ("sign", "a~b", "all"),
        ("tau", "a~b", "all"),
    }
    assert {key for key in found if key[2] != "all"} == {("tau", "a~b", "no"), ("tau", "a~b", "yes")}


def test_an_audit_of_pairs_alone_has_findings_over_all(values: np.ndarray) -> None:
    found = findings(overlap__a_and_b=values)
    assert [*found] == [("overlap", "a~b", "all")]
    assert found["overlap", "a~b", "all"].n == 30


def test_a_column_of_p_values_tells_the_significant_share_and_is_no_measure(values: np.ndarray) -> None:
    p = np.linspace(0, 0.2, 30)
    p[0] = np.nan
    found = findings(tau__a_and_b=values, p__a_and_b=p)
    assert {key[0] for key in found} == {"tau"}
    assert found["tau", "a~b", "all"].significant == pytest.approx((p[1:] <= 0.05).mean())
    yes = p[PREDICTED == 1]
    assert found["tau", "a~b", "yes"].significant == pytest.approx((yes <= 0.05).mean())


def test_what_exists_for_no_example_is_no_finding(values: np.ndarray) -> None:
    half = np.where(PREDICTED == 0, values, np.nan)
    found = findings(flip_gain__one=np.full(30, np.nan), flip_gain__two=half)
    assert [*found] == [("flip_gain", "two", "all"), ("flip_gain", "two", "no")]
    assert (found["flip_gain", "two", "all"].n, found["flip_gain", "two", "all"].undefined) == (15, 15)
