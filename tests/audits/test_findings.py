from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from assay.audits.findings import summarise
from assay.records import Finding

PREDICTED = np.arange(30) % 2
CLASSES = ("no", "yes")


def findings(**measures: np.ndarray) -> dict[tuple[str, str, str], Finding]:
    named = {name.replace("__", ":").replace("_at_", "@").replace("_and_", "~"): v for name, v in measures.items()}
    return {(f.measure, f.subject, f.group): f for f in summarise("erasure", "sample", named, PREDICTED, CLASSES)}


@pytest.fixture
def values() -> np.ndarray:
    return np.random.default_rng(0).normal(0.3, 1, 30)


def test_gains_have_the_p_value_of_the_signed_rank_test_in_each_group(values: np.ndarray) -> None:
    values[4] = np.nan
    found = findings(flip_gain__attention=values, flip__attention=values)
    for group, chosen in (("all", PREDICTED >= 0), ("no", PREDICTED == 0), ("yes", PREDICTED == 1)):
        own = values[chosen & ~np.isnan(values)]
        assert found["flip_gain", "attention", group].p_value == pytest.approx(stats.wilcoxon(own).pvalue)
        assert found["flip", "attention", group].p_value is None
        assert found["flip", "attention", group].mean == pytest.approx(own.mean())


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
