from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from assay.records import Record
from assay.report.examples import BROWSED_CELLS as CELLS
from assay.report.examples import LEAST, STEPS, browse, choose, thirds
from assay.report.html import data, policy
from tests.report.hostile import WORDS, hostile


def test_groups_and_rules_are_those_of_the_choice(record: Record) -> None:
    held = browse(record)
    assert held is not None
    choices = choose(record, 200)
    assert [(group["title"], group["rule"]) for group in held["groups"]] == [(c.title, c.rule) for c in choices]
    assert [group["key"] for group in held["groups"]] == ["worst", "best", "disputed", "random"]
    numbers = record.examples["example"].to_pylist()
    assert [(e["group"], e["number"]) for e in held["examples"]] == [
        (place, numbers[row]) for place, choice in enumerate(choices) for row in choice.rows
    ]
    assert len(held["examples"]) == 200
    assert held["total"] == 300


def test_scores_come_back_to_a_thousandth_of_the_strongest(record: Record) -> None:
    held = browse(record)
    assert held is not None
    rows = {row["example"]: row for row in record.examples.to_pylist()}
    for example in held["examples"]:
        row = rows[example["number"]]
        spans = list(zip(row["starts"], row["ends"], strict=True))
        first, last = example["first"], example["first"] + len(example["words"])
        assert example["words"] == [row["text"][start:end] for start, end in spans[first:last]]
        assert example["length"] == len(spans)
        for line, (peak, *steps) in zip(held["rows"], example["scores"], strict=True):
            given = np.array(row[line["column"]])
            assert peak == pytest.approx(np.abs(given).max(), rel=1e-3)
            assert np.abs(np.array(steps) * peak / STEPS - given[first:last]).max() <= 1.01e-3 * peak


def test_attention_comes_first_with_its_rival_and_the_others_in_their_order(record: Record) -> None:
    order = list(reversed(record.summary["explainers"]))
    held = browse(record, order)
    assert held is not None
    names = [row["name"] for row in held["rows"]]
    others = [name for name in order if name != "attention"]
    assert names == ["attention", "furthest equivalent attention", *others]


def test_long_texts_are_cut_around_the_strongest_so_that_all_scores_fit(make: Callable[..., Record]) -> None:
    record = make(count=200, sentences=30, audits=("agreement", "truth"))
    held = browse(record)
    assert held is not None
    scores = [steps for example in held["examples"] for steps in example["scores"] if steps is not None]
    assert LEAST <= held["window"] < max(example["length"] for example in held["examples"])
    assert 0.9 * CELLS < sum(len(steps) - 1 for steps in scores) <= CELLS
    attention = [example["scores"][0] for example in held["examples"]]
    assert all(max(map(abs, steps[1:])) == STEPS for steps in attention)


def test_an_example_without_known_words_has_no_such_row(planted: Record) -> None:
    place = planted.examples.column_names.index("truth")
    flags = planted.examples["truth"].to_pylist()
    some = planted.examples.set_column(place, "truth", pa.array([None, *flags[1:]], pa.list_(pa.bool_())))
    held = browse(replace(planted, examples=some))
    assert held is not None
    assert held["rows"][-1] == {"column": "truth", "name": "deciding words", "remark": "known", "flags": True}
    for example in held["examples"]:
        marked = example["scores"][-1]
        if example["number"] == 0:
            assert marked is None
        else:
            assert marked == [
                1.0,
                *(STEPS * flag for flag in flags[example["number"]][example["first"] :][: len(marked) - 1]),
            ]


def test_many_explainers_leave_room_for_fewer_examples(crowd: Record) -> None:
    held = browse(crowd)
    assert held is not None
    assert held["first"] == 8
    assert len(held["examples"]) == 30


def test_what_is_no_number_is_none(make: Callable[..., Record]) -> None:
    record = make(count=1)
    size = len(record.examples["starts"][0].as_py())
    place = record.examples.column_names.index("score:attention")
    broken = pa.array([[float("nan"), float("inf")] + [0.5] * (size - 2)])
    held = browse(replace(record, examples=record.examples.set_column(place, "score:attention", broken)))
    assert held is not None
    assert held["examples"][0]["scores"][0] == [0.5, None, None, *[STEPS] * (size - 2)]


def test_thirds_part_all_texts(record: Record) -> None:
    low, high = thirds(record)
    lengths = np.array([len(starts) for starts in record.examples["starts"].to_pylist()])
    assert 0.2 < (lengths <= low).mean() < 0.5 < (lengths <= high).mean() < 0.8


def test_few_examples_are_all_shown_and_every_group_has_some(make: Callable[..., Record]) -> None:
    for count in (1, 2, 7, 90):
        held = browse(make(count=count))
        assert held is not None
        assert sorted(example["number"] for example in held["examples"]) == list(range(count))
        assert len(held["groups"]) == min(count, 4)


def test_a_record_without_examples_has_no_browser(record: Record) -> None:
    assert browse(replace(record, examples=record.examples.slice(0, 0))) is None


def test_hostile_texts_are_neither_markup_nor_large(record: Record) -> None:
    text = data(browse(hostile(record)))
    assert not set("<>&\u2028\u2029\x00") & set(text)
    assert len(text) < 50_000
    words = [word for example in json.loads(text)["examples"] for word in example["words"]]
    assert set(WORDS[:-1]) < set(words)
    assert sum(word == "x" * 300 + "…" for word in words) == 1


def test_a_policy_without_scripts_allows_none() -> None:
    assert "script-src" not in policy()
    assert policy().startswith("default-src 'none'; style-src")
