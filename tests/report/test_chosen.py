from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from assay.records import Record
from assay.report.chosen import choose


def test_extremes_are_the_lowest_and_the_highest(record: Record) -> None:
    rows = [row for row in record.audit_rows("agreement").to_pylist() if row["length"] >= 5]
    ordered = sorted(rows, key=lambda row: row["tau:attention~leave_one_out"])
    low, high, _ = choose(record)
    taus = {row["example"]: row["tau:attention~leave_one_out"] for row in rows}
    assert [taus[row] for row in low.rows] == [row["tau:attention~leave_one_out"] for row in ordered[:8]]
    assert [taus[row] for row in high.rows] == [row["tau:attention~leave_one_out"] for row in ordered[:-9:-1]]
    assert "lowest τ of attention with leave_one_out" in low.rule


def test_no_example_is_shown_twice_and_no_more_than_24(record: Record) -> None:
    rows = [row for choice in choose(record) for row in choice.rows]
    assert len(rows) == len(set(rows)) == 24


def test_the_random_ones_depend_on_the_seed_only(record: Record) -> None:
    other = record.summary | {"plan": record.summary["plan"] | {"seed": 4}}
    assert choose(record) == choose(record)
    assert choose(record)[-1].rows != choose(replace(record, summary=other))[-1].rows
    assert "seed 3" in choose(record)[-1].rule


def test_where_truth_is_known_it_ranks_the_examples(planted: Record) -> None:
    assert "AUPRC of attention" in choose(planted)[0].rule


def test_without_a_measure_all_are_drawn_at_random(make: Callable[..., Record]) -> None:
    (only,) = choose(make(count=40, audits=("permutation",)))
    assert len(only.rows) == 24
    assert "all examples" in only.rule


def test_few_examples_are_all_shown(make: Callable[..., Record]) -> None:
    for count in (1, 2, 5, 17):
        rows = [row for choice in choose(make(count=count)) for row in choice.rows]
        assert sorted(rows) == list(range(count))
