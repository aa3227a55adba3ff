"""Numbers worked by hand after DeYoung et al. (2020), with the corners in which their own counts are odd."""

from __future__ import annotations

import numpy as np
import pytest

from assay.metrics.plausibility import (
    Counts,
    auprc,
    average_precision,
    macro_spans,
    scores,
    span_counts,
    spans,
    token_counts,
    top,
)


def marks(*rows: str) -> np.ndarray:
    return np.array([[letter == "x" for letter in row] for row in rows])


def counts(hits: list[int], predicted: list[int], marked: list[int]) -> Counts:
    return Counts(np.array(hits), np.array(predicted), np.array(marked))


def test_as_many_tokens_are_chosen_as_the_share_says_and_one_at_least() -> None:
    values = np.array([[5.0, 1, 4, 2, 3, 0], [1, 9, 9, 0, 0, 0], [3.0, 0, 0, 0, 0, 0]])
    mask = marks("xxxxxx", "xxxx..", "x.....")
    np.testing.assert_array_equal(top(values, mask, 0.5), marks("x.x.x.", ".xx...", "x....."))
    np.testing.assert_array_equal(top(values, mask, 0.01), marks("x.....", ".x....", "x....."))
    np.testing.assert_array_equal(top(values, mask, 0.25), marks("x.x...", ".x....", "x....."))  # 1.5 becomes 2


def test_spans_are_runs_that_do_not_go_on_in_the_next_row() -> None:
    found = spans(marks("xx.x", "x..x", "....", "xxxx"))
    assert found.tolist() == [[0, 0, 2], [0, 3, 4], [1, 0, 1], [1, 3, 4], [3, 0, 4]]


def test_token_scores_of_a_worked_example() -> None:
    # first: 2 of 3 chosen are marked, 2 of 4 marked are chosen; second: nothing in common; third: nothing marked
    counted = token_counts(marks("xxx...", "x.....", "x....."), marks(".xxxx.", ".x....", "......"))
    of = scores(counted)
    np.testing.assert_allclose(of.precision, [2 / 3, 0, 0])
    np.testing.assert_allclose(of.recall, [1 / 2, 0, 0])
    np.testing.assert_allclose(of.f1, [4 / 7, 0, 0])


def test_a_span_hits_from_half_of_the_union_on() -> None:
    marked = np.array([[0, 2, 6]])
    for predicted, hit in (((2, 6), 1), ((2, 4), 1), ((2, 3), 0), ((0, 6), 1), ((0, 7), 1), ((0, 8), 1), ((0, 9), 0)):
        found = span_counts(np.array([[0, *predicted]]), marked, 1)
        assert (found.hits.tolist(), found.predicted.tolist(), found.marked.tolist()) == ([hit], [1], [1]), predicted
    assert span_counts(np.array([[0, 2, 6]]), marked, 1, threshold=1.0).hits.tolist() == [1]
    assert span_counts(np.array([[0, 7, 9]]), marked, 1, threshold=0.0).hits.tolist() == [0]  # nothing is shared


def test_spans_meet_only_spans_of_their_own_document() -> None:
    predicted = np.array([[2, 0, 2], [0, 0, 2], [1, 5, 7], [2, 4, 5]])
    marked = np.array([[2, 4, 6], [1, 0, 2], [2, 0, 2]])
    found = span_counts(predicted, marked, 4)
    assert found.hits.tolist() == [0, 0, 2, 0]
    assert found.predicted.tolist() == [1, 1, 2, 0]
    assert found.marked.tolist() == [0, 1, 2, 0]


def test_random_spans_are_counted_as_a_loop_counts_them() -> None:
    generator = np.random.default_rng(0)
    chosen, truth = generator.random((2, 60, 14)) < 0.5
    found = span_counts(spans(chosen), spans(truth), 60)
    for row in range(60):
        own, gold = (
            [set(range(start, end)) for number, start, end in spans(values).tolist() if number == row]
            for values in (chosen, truth)
        )
        hits = sum(any(len(one & two) >= 0.5 * len(one | two) for two in gold) for one in own)
        assert (found.hits[row], found.predicted[row], found.marked[row]) == (hits, len(own), len(gold))


def test_two_halves_of_one_span_are_clipped_to_a_recall_of_one() -> None:
    counted = span_counts(np.array([[0, 0, 2], [0, 2, 4]]), np.array([[0, 0, 4]]), 1)
    assert counted.hits.tolist() == [2]
    original, ours = macro_spans(counted, clipped=False), macro_spans(counted)
    assert (original.precision, original.recall) == (1, 2)
    assert original.f1 == pytest.approx(4 / 3)
    assert (ours.precision, ours.recall, ours.f1) == (1, 1, 1)
    assert scores(counted).recall.tolist() == [1] and scores(counted, clipped=False).recall.tolist() == [2]


def test_macro_spans_leave_out_documents_without_predictions_or_marks() -> None:
    # precision over documents 0 and 2, recall over 0 and 1, then the F1 of the two means
    of = macro_spans(counts([1, 0, 0], [2, 0, 1], [1, 1, 0]))
    assert (of.precision, of.recall) == (0.25, 0.5)
    assert of.f1 == pytest.approx(1 / 3)


def test_no_predictions_at_all_score_nothing() -> None:
    none = np.zeros((0, 3), dtype=np.int64)
    for counted in (token_counts(marks("...."), marks("xx..")), span_counts(none, np.array([[0, 0, 2]]), 1)):
        of = macro_spans(counted)
        assert (of.precision, of.recall, of.f1) == (0, 0, 0)


def test_the_area_by_trapezoids_is_not_average_precision() -> None:
    values, truth, mask = np.array([[0.9, 0.8, 0.7]]), marks("x.x"), marks("xxx")
    # the curve goes through (0, 1), (1/2, 1), (1/2, 1/2) and (1, 2/3)
    assert auprc(values, truth, mask) == pytest.approx(1 / 2 + (1 / 2 + 2 / 3) / 4)
    assert auprc(values, truth, mask).round(3) == 0.792
    assert average_precision(values, truth, mask).round(3) == 0.833


def trapezoids(values: np.ndarray, truth: np.ndarray) -> float:
    recall, precision = [0.0], [1.0]
    for threshold in sorted(set(values), reverse=True):
        chosen = truth[values >= threshold]
        recall.append(chosen.sum() / truth.sum())
        precision.append(chosen.mean())
    return float(np.trapezoid(precision, recall))


@pytest.mark.parametrize("levels", [1, 3, 1000])
def test_the_area_is_that_under_the_straight_lines_between_thresholds(levels: int) -> None:
    generator = np.random.default_rng(levels)
    values = generator.integers(-levels, levels, (200, 9)) / 3
    truth, mask = generator.random((2, 200, 9)) < np.array([[[0.4]], [[0.8]]])
    rows = zip(values, truth, mask, strict=True)
    expected = [trapezoids(v[m], t[m]) if t[m].any() else np.nan for v, t, m in rows]
    np.testing.assert_allclose(auprc(values, truth, mask), expected, atol=1e-12)
    dirty = np.where(mask, values, np.nan)
    np.testing.assert_array_equal(auprc(dirty, truth | ~mask, mask), auprc(values, truth, mask))


def test_documents_of_a_single_class() -> None:
    values = np.array([[0.3, 0.2, 0.1], [0.3, 0.2, 0.1], [0.1, np.nan, 0.2]])
    truth, mask = marks("xxx", "...", "x.."), marks("xxx", "xxx", "xxx")
    np.testing.assert_array_equal(auprc(values, truth, mask), [1, np.nan, np.nan])
    assert np.isnan(auprc(np.zeros((2, 0)), np.zeros((2, 0), dtype=bool), np.zeros((2, 0), dtype=bool))).all()
