"""The rule of the verdict: fitted otherwise, judged by plain loops, and never on the family that judges."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from assay.grading.grade import known_reasons, likely, of_text
from assay.records import Finding, read_table
from studies.verdict import shipped as table
from studies.verdict.fitting import counts
from studies.verdict.rule import (
    FOUND,
    LOST,
    RIDGE,
    WRONG,
    Cases,
    auroc,
    calibration,
    fit,
    graded,
    held_out,
    judged,
    logistic,
    with_one,
)

RESULTS = Path("studies/verdict/results")


def cases(seed: int = 0) -> Cases:
    draw = np.random.default_rng(seed)
    x = draw.uniform(0, 1, 400)
    found = draw.random(400) < expit(12 * (x - 0.55))
    return Cases(np.array(["a", "b", "c", "d"])[draw.integers(0, 4, 400) % 4], x[:, None], found)


@cache
def results() -> tuple[pa.Table, pa.Table]:
    return read_table(RESULTS / "explainers.parquet"), read_table(RESULTS / "texts.parquet")


def test_the_fit_is_the_minimum_of_the_penalised_likelihood() -> None:
    given = cases()
    x, y, weights = with_one(given.x), given.found.astype(float), given.weights

    def loss(b: np.ndarray) -> float:
        score = x @ b
        return float((weights * (np.logaddexp(0, score) - y * score)).sum() + RIDGE / 2 * (b @ b))

    expected = minimize(loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12}).x
    np.testing.assert_allclose(logistic(x, y, weights), expected, atol=1e-4)


def test_families_weigh_the_same() -> None:
    given = cases()
    for family in given.families:
        assert given.weights[given.family == family].sum() == pytest.approx(100)


def test_auroc_is_the_share_of_pairs_in_order() -> None:
    draw = np.random.default_rng(1)
    values, positive = draw.integers(0, 6, 60).astype(float), draw.random(60) < 0.4
    pairs = [(a > b) + 0.5 * (a == b) for a in values[positive] for b in values[~positive]]
    assert auroc(values, positive) == pytest.approx(np.mean(pairs))
    assert np.isnan(auroc(values, np.ones(60, dtype=bool)))


def test_calibration_is_the_mean_gap_over_bins() -> None:
    draw = np.random.default_rng(2)
    sure, found, weights = draw.random(500), draw.random(500) < 0.5, draw.uniform(1, 2, 500)
    gaps = 0.0
    for low in range(10):
        own = (sure >= low / 10) & (sure < (low + 1) / 10)
        gaps += weights[own].sum() * abs(
            np.average(sure[own], weights=weights[own]) - np.average(found[own], weights=weights[own])
        )
    assert calibration(sure, found, weights) == pytest.approx(gaps / weights.sum())
    assert calibration(np.where(found, 1.0, 0.0), found, weights) == 0


def test_limits_keep_wrong_passes_and_lost_finders_few() -> None:
    given = cases()
    rule = fit(given)
    sure = rule(given.x)
    passed, failed, weights = sure >= rule.passes, sure < rule.fails, given.weights
    assert weights[passed & ~given.found].sum() <= WRONG * weights[passed].sum()
    assert weights[failed & given.found].sum() <= LOST * weights[given.found].sum()
    assert rule.fails < rule.passes
    lower = np.sort(sure[sure < rule.passes])[-1]
    assert weights[(sure >= lower) & ~given.found].sum() > WRONG * weights[sure >= lower].sum()


def test_a_family_has_no_part_in_what_judges_it() -> None:
    given = cases()
    own = given.family == "b"
    sure, grades = held_out(given)
    turned = replace(given, found=np.where(own, ~given.found, given.found))
    other, others = held_out(turned)
    np.testing.assert_array_equal(sure[own], other[own])
    np.testing.assert_array_equal(grades[own], others[own])
    assert not np.allclose(sure[~own], other[~own])
    rule = fit(given[~own])
    np.testing.assert_array_equal(sure[own], rule(given.x[own]))


def test_the_figures_are_shares_of_what_they_say() -> None:
    given = cases()
    sure, grades = held_out(given)
    found = judged(sure, grades, given)
    w = {family: 1 / (given.family == family).sum() for family in given.families}
    each = [(w[f], g, y) for f, g, y in zip(given.family, grades, given.found, strict=True)]
    assert found.wrong == pytest.approx(
        sum(v for v, g, y in each if g == "pass" and not y) / sum(v for v, g, _ in each if g == "pass")
    )
    assert found.failed == pytest.approx(
        sum(v for v, g, y in each if g == "fail" and y) / sum(v for v, _, y in each if y)
    )
    assert found.warned == pytest.approx(sum(v for v, g, _ in each if g == "warn") / sum(v for v, _, _ in each))


def test_the_table_in_the_package_is_that_of_the_bank_bit_for_bit(tmp_path: Path) -> None:
    table.write(table.shipped(*results()), tmp_path / "table.json")
    assert (tmp_path / "table.json").read_bytes() == table.PATH.read_bytes()


def test_each_family_left_out_gives_the_shipped_figures() -> None:
    """Once more from the results, with loops: no family is judged by a rule that has seen it."""
    rows = [
        row for row in counts(results()[0]).to_pylist() if row["explainer"] != "random" and np.isfinite(row["economy"])
    ]
    families = sorted({row["family"] for row in rows})
    assert len(families) >= 12
    passed = wrong = finders = lost = warned = 0.0
    for family in families:
        own = [row for row in rows if row["family"] == family]
        rest = [row for row in rows if row["family"] != family]
        rule = fit(
            Cases(
                np.array([row["family"] for row in rest]),
                np.array([[row["economy"]] for row in rest]),
                np.array([row["precision"] >= FOUND for row in rest]),
            )
        )
        for row in own:
            [grade] = graded(rule(np.array([[row["economy"]]])), rule.passes, rule.fails)
            weight, found = 1 / len(own), row["precision"] >= FOUND
            passed += weight * (grade == "pass")
            wrong += weight * (grade == "pass" and not found)
            finders += weight * found
            lost += weight * (grade == "fail" and found)
            warned += weight * (grade == "warn")
    told = known_reasons()["explainer"]["held_out"]
    assert told["wrong"] == pytest.approx(wrong / passed, abs=6e-4)
    assert told["failed"] == pytest.approx(lost / finders, abs=6e-4)
    assert told["warned"] == pytest.approx(warned / len(families), abs=6e-4)


def test_what_a_report_looks_up_is_the_rule() -> None:
    rule = known_reasons()["explainer"]
    start, slope = rule["coefficients"]
    found = Finding("deciding", "x", "economy", "all", 0.83, 0.8, 0.86, 0.1, 50)
    told = likely(found)
    assert told.mean == pytest.approx(expit(start + slope * 0.83))
    draws = np.array(rule["draws"])
    point = replace(found, low=0.83, high=0.83)
    low, high = np.quantile(expit(draws[:, 0] + draws[:, 1] * 0.83), [0.025, 0.975])
    assert (likely(point).low, likely(point).high) == pytest.approx((min(low, told.mean), max(high, told.mean)))
    assert told.low < likely(point).low and told.high > likely(point).high
    start, slope = known_reasons()["alone"]["coefficients"]
    assert of_text(0.83) == pytest.approx(expit(start + slope * 0.83))
    assert of_text(0.9) > of_text(0.5) > 0
    assert json.loads(table.PATH.read_text())["command"] == "python -m studies.verdict"
