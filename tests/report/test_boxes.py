from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from assay.audits.minimal_set import RANKINGS, shares
from assay.records import Record
from assay.report.canvas import svg
from assay.report.figures import figure as figure_of
from assay.report.text_figures import whiskers
from tests.report.synthetic import remade


def words(record: Record, name: str) -> list[str]:
    """All words of a figure, in their order."""
    figure = figure_of(record, name)
    assert figure is not None
    return [node.text or "" for node in ElementTree.fromstring(svg(figure)).iter() if node.tag.endswith("}text")]


def rows(record: Record, name: str) -> list[dict[str, Any]]:
    """What a figure draws, a row for each label."""
    return next(each for each in held(record, name) if "label" in each[0])


def held(record: Record, name: str) -> list[list[dict[str, Any]]]:
    """All tables of a figure, wherever altair puts them."""
    figure = figure_of(record, name)
    assert figure is not None
    drawn = figure.to_dict()
    own = [part["data"]["values"] for part in (drawn, *drawn["layer"]) if "values" in part.get("data", {})]
    return [*drawn.get("datasets", {}).values(), *own]


def numbers(record: Record, audit: str, column: str) -> list[float]:
    return [row[column] for row in record.audit_rows(audit).to_pylist() if not math.isnan(row[column])]


def with_gaps(record: Record, gaps: list[float], more: list[float]) -> Record:
    """The record with these texts in the audit of single weights, and no others."""
    kept = record.instances.filter([audit == "single_weight" for audit in record.instances["audit"].to_pylist()])
    kept = kept.slice(0, len(gaps))
    columns = {"delta_weight": gaps, "delta_js": more, "smaller": [float(each < 0) for each in more]}
    for measure, values in columns.items():
        place = kept.column_names.index(f"{measure}:attention")
        kept = kept.set_column(place, f"{measure}:attention", [values])
    return remade(record, instances=kept)


def test_whiskers_reach_to_the_last_value_within_one_and_a_half_boxes() -> None:
    values = np.array([-9.0, -5.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 11.5, 30.0])
    # a quarter of the way from the first to the last is place 2.25; the box is 4.5 long, so whiskers reach 6.75 at most
    assert whiskers(values) == {"low": -5.0, "first": 1.25, "median": 3.5, "third": 5.75, "high": 11.5}


def test_a_whisker_never_ends_inside_the_box() -> None:
    box = whiskers(np.array([0.0, 10.0, 10.0, 10.0]))
    assert (box["low"], box["first"], box["high"]) == (7.5, 7.5, 10.0)
    assert whiskers(np.array([0.25])) == dict.fromkeys(("low", "first", "median", "third", "high"), 0.25)


@pytest.mark.parametrize(("name", "measure"), [("minimal_set", "erased"), ("minimal_set_mass", "erased_mass")])
def test_every_ranking_has_a_box_beside_the_smallest_set(erased: Record, name: str, measure: str) -> None:
    drawn = rows(erased, name)
    order = list(shares(erased, measure))
    assert [row["name"] for row in drawn] == [RANKINGS[ranking] for ranking in order]
    assert [row["exact"] for row in drawn] == [ranking == "optimum" for ranking in order]
    for ranking, row in zip(order, drawn, strict=True):
        lost = np.mean(numbers(erased, "minimal_set", f"never:{ranking}"))
        values = numbers(erased, "minimal_set", f"{measure}:{ranking}")
        quartiles = statistics.quantiles(values, n=4, method="inclusive")
        assert [row["first"], row["median"], row["third"]] == pytest.approx(quartiles)
        assert row["label"] == f"{100 * np.median(values):.1f} %" + (f", never {100 * lost:.0f} %" if lost else "")
        assert row["low"] in values
        assert row["high"] in values
    shown = words(erased, name)
    assert [word for word in shown if word in RANKINGS.values()] == [RANKINGS[ranking] for ranking in order]
    assert any("never" in row["label"] for row in drawn)
    assert {row["label"] for row in drawn} <= set(shown)


def test_the_median_of_the_smallest_set_runs_through_all_rows(erased: Record) -> None:
    line = next(each for each in held(erased, "minimal_set") if "x" in each[0])
    assert line == [{"x": np.median(numbers(erased, "minimal_set", "erased:optimum"))}]
    figure = figure_of(erased, "minimal_set")
    assert figure is not None
    assert svg(figure).count("stroke-dasharray") == 1


def test_sentences_are_called_so_on_the_axis(erased: Record, worded: Callable[..., Record]) -> None:
    assert "words erased until the decision changes" in words(erased, "minimal_set")
    assert "sentences erased until the decision changes" in words(worded(erased), "minimal_set")


def test_gaps_are_sorted_into_tenths_with_the_texts_that_fall_below_zero(erased: Record) -> None:
    gaps = [0.05, 0.09, 0.15, 0.19, 0.3, 0.95]
    record = with_gaps(erased, gaps, [-0.2, 0.1, -0.3, -0.1, 0.4, 0.5])
    boxes, bars = rows(record, "single_weight"), rows(record, "single_weight_smaller")
    names = ["0.00 – 0.10", "0.10 – 0.20", "0.30 – 0.40", "0.90 – 1.00"]
    assert [row["name"] for row in boxes] == [row["name"] for row in bars] == names
    assert [row["median"] for row in boxes] == pytest.approx([-0.05, -0.2, 0.4, 0.5])
    assert [row["label"] for row in boxes] == ["n = 2", "n = 2", "n = 1", "n = 1"]
    assert [(row["less"], row["label"]) for row in bars] == [(1, "1 of 2"), (2, "2 of 2"), (0, "0 of 1"), (0, "0 of 1")]
    shown = [word for word in words(record, "single_weight") if " – " in word]
    assert sorted(shown) == names


@pytest.mark.parametrize(
    ("widest", "last"),
    [(0.08, "0.08 – 0.09"), (0.17, "0.16 – 0.18"), (0.43, "0.40 – 0.45"), (0.62, "0.60 – 0.70"), (1.0, "0.90 – 1.00")],
)
def test_small_gaps_get_narrow_bins(erased: Record, widest: float, last: str) -> None:
    drawn = rows(with_gaps(erased, [0.001, widest], [0.1, 0.2]), "single_weight")
    assert drawn[-1]["name"] == last
    assert drawn[0]["name"].startswith("0.00 – 0.")


def test_texts_are_counted_in_whole_numbers(erased: Record) -> None:
    for negative in (0, 1, 2, 3, 7, 40):
        gaps, more = [0.5] * 60, [-0.1] * negative + [0.1] * (60 - negative)
        shown = words(with_gaps(erased, gaps, more), "single_weight_smaller")
        ticks = [word for word in shown if word.isdecimal()]
        assert ticks[0] == "0"
        assert len(ticks) == len(set(ticks)) >= 2
        assert f"{negative} of 60" in shown


def test_a_box_needs_a_text_with_several_items(erased: Record) -> None:
    alone = with_gaps(erased, [math.nan] * 3, [math.nan] * 3)
    assert figure_of(alone, "single_weight") is None
    assert figure_of(alone, "single_weight_smaller") is None
