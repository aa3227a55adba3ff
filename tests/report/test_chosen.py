from __future__ import annotations

from collections.abc import Callable

from assay.grading.grade import trusts
from assay.records import Record
from assay.report.examples import choose, groups
from tests.report.synthetic import remade, thinned


def test_extremes_are_the_lowest_and_the_highest(record: Record) -> None:
    for audit, column, words in (
        ("deciding", "economy:attention", "lowest economy of attention"),
        ("agreement", "tau:attention~leave_one_out", "lowest τ of attention with leave_one_out"),
    ):
        alone = record if audit == "deciding" else without(record, "deciding")
        rows = [row for row in record.audit_rows(audit).to_pylist() if row["length"] >= 5]
        ordered = sorted(rows, key=lambda row: row[column])
        low, high, _, _ = choose(alone)
        numbers = {row["example"]: row[column] for row in rows}
        assert [numbers[row] for row in low.rows] == [row[column] for row in ordered[:6]]
        assert [numbers[row] for row in high.rows] == [row[column] for row in ordered[:-7:-1]]
        assert words in low.rule


def without(record: Record, audit: str) -> Record:
    kept = [each != audit for each in record.instances["audit"].to_pylist()]
    return remade(record, instances=record.instances.filter(kept))


def test_those_at_random_are_of_the_texts_that_the_verdict_was_read_off(record: Record) -> None:
    economies = [name for name in record.instances.column_names if name.startswith("economy:")]
    drawn = thinned(record, *economies, every=16)
    read = set(trusts(drawn))
    assert 12 < len(read) < record.examples.num_rows / 2
    *_, random = choose(drawn)
    assert set(random.rows) <= read
    assert "among those that the verdict was read off" in random.rule


def test_the_most_disputed_have_the_lowest_mean_over_all_pairs_but_those_with_random_scores(record: Record) -> None:
    low, high, disputed, _ = choose(record)
    pairs = [n for n in record.instances.column_names if n.startswith("tau:") and "random" not in n]
    rows = [row for row in record.audit_rows("agreement").to_pylist() if row["length"] >= 5]
    means = {row["example"]: sum(row[pair] for pair in pairs) / len(pairs) for row in rows}
    left = [example for example in sorted(means, key=lambda e: means[e]) if example not in (*low.rows, *high.rows)]
    assert disputed.title == "Most disputed"
    assert list(disputed.rows) == left[:6]
    assert "lowest mean τ over the 10 pairs of explainers" in disputed.rule


def test_two_explainers_have_no_dispute_of_their_own(make: Callable[..., Record]) -> None:
    groups = choose(make(count=60, explainers=("attention", "gradient", "random")))
    assert [group.title for group in groups] == ["Strongest disagreement", "Best agreement", "At random"]


def test_with_many_explainers_fewer_examples_are_shown(crowd: Record, record: Record) -> None:
    few, many = ([len(examples) for _, examples in groups(each)] for each in (record, crowd))
    assert (few, many) == ([6, 6, 6, 6], [2, 2, 2, 2])


def test_of_many_explainers_the_best_come_first_and_the_rest_on_demand(crowd: Record) -> None:
    order = list(reversed(crowd.summary["explainers"]))
    names = ["attention", *(name for name in order if name != "attention")]
    for _, examples in groups(crowd, order):
        for shown in examples:
            assert [line.name for line in shown.lines] == [*names[:8], "deciding words"]
            assert [line.name for line in shown.rest] == names[8:]


def test_what_people_marked_is_not_called_deciding(human: Record, planted: Record) -> None:
    for record, name in ((human, "words marked by people"), (planted, "deciding words")):
        assert {examples[0].lines[-1].name for _, examples in groups(record)} == {name}


def test_no_example_is_shown_twice_and_no_more_than_24(record: Record) -> None:
    rows = [row for choice in choose(record) for row in choice.rows]
    assert len(rows) == len(set(rows)) == 24


def test_the_random_ones_depend_on_the_seed_only(record: Record) -> None:
    other = record.summary | {"plan": record.summary["plan"] | {"seed": 4}}
    assert choose(record) == choose(record)
    assert choose(record)[-1].rows != choose(remade(record, summary=other))[-1].rows
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
