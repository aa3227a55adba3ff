"""How benchmarks read their own numbers: slopes, ratios, distances."""

from __future__ import annotations

import math

import pytest

from benchmarks.beside import rows
from benchmarks.beside.rows import PEERS, ROWS, Pair, distance, likeness, ratio
from benchmarks.beside.turns import Found, Text, peak_megabytes, read, write
from benchmarks.growth import LONGEST, Series, measured
from benchmarks.scaling import Row

SIZES = (10, 20, 40, 80)


@pytest.mark.parametrize("power", [0.5, 1, 2])
def test_the_growth_of_a_power_is_its_exponent(power):
    series = Series(SIZES, [3 * size**power for size in SIZES])
    assert series.growth == pytest.approx(power)
    assert series.at(40) == pytest.approx(3 * 40**power)


def test_a_series_ends_after_a_run_that_took_too_long(monkeypatch):
    took = {1: LONGEST / 10, 2: 2 * LONGEST, 3: LONGEST / 10}
    monkeypatch.setattr("benchmarks.growth.seconds", lambda run, gpu: run())
    series = measured({size: lambda size=size: took[size] for size in took})
    assert series.sizes == [1, 2]
    assert series.times == [100 * LONGEST, 2000 * LONGEST]


@pytest.mark.parametrize("series", [Series([10], [1.0]), Series([10, 20], [0.0, 0.0])], ids=["one size", "nothing"])
def test_one_size_and_nothing_have_no_growth(series):
    assert math.isnan(series.growth)


def test_a_row_of_growth_tells_where_it_ended_and_how_many_texts_were_together():
    full, cut = Series([16, 32, 64, 128], [1.0, 2.0, 4.0, 8.0]), Series([16, 32], [3.0, 12.0])
    assert Row(31, 1, full, Series([4, 8], [4.0, 8.0]), cut).line("a") == "| a | 31 | 1 | 1 | 2.00 | 1.00 | 1.00 |"
    line = Row(9, 0, cut, Series([4], [8.0]), Series([16, 32], [0.0, 0.0])).line("b")
    assert line == "| b | 9 | 0 | 2, 4 at a time | – | 2.00, to 32 words | – |"


def test_distances_are_in_parts_of_the_largest_score():
    assert distance([[1.0, -4.0]], [[1.0, -3.0]]) == pytest.approx(0.25)
    assert likeness([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]], [[2.0, 4.0, 9.0], [3.0, 2.0, 1.0]]) == pytest.approx(0)


def test_a_slower_way_of_ours_is_not_rounded_to_equal():
    assert ratio(10, 9.4) == "0.94×"
    assert ratio(10, 35) == "3.5×"
    assert ratio(1, 123.4) == "123×"


def test_a_row_tells_passes_and_memory_of_both_sides():
    row = rows.Row("gradient", "captum", "", "", "1 + 1 back", texts=2)
    mine, theirs = Found([[1.0, 2.0]], 2.0, 2.0, 500.4), Found([[1.0, 2.0]], 4.0, float("nan"), 700.0)
    line = Pair(row, (10.0, 25.0), (mine, theirs)).line()
    assert line == "| gradient | captum | 1 + 1 back | 1 / 2 | 10 | 25 | 2.5× | 500 / 700 | 0 |"


def test_scores_of_other_lengths_are_not_compared():
    one, other = Found([[1.0]], 1.0, 0.0, 1.0), Found([[1.0, 2.0]], 1.0, 0.0, 1.0)
    assert Pair(ROWS[0], (1.0, 1.0), (one, other)).agreement == "–"


def test_no_two_rows_ask_the_same():
    assert len({(row.ours, row.theirs) for row in ROWS}) == len(ROWS)
    assert PEERS in {row.python for row in ROWS}


def test_texts_outlast_the_file(tmp_path):
    texts = [Text("A good film .", 1, [[0.5, 1.0, 0.25, 0.125]])]
    write(tmp_path, texts)
    assert read(tmp_path) == texts


def test_a_process_has_a_peak_of_memory():
    assert peak_megabytes() > 10
