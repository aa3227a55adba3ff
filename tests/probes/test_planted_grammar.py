"""The head that attends to governors by construction is found, and nothing is found where there is nothing."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from assay.probes.observation import TreebankView, view_treebank
from assay.probes.relations import pairs, relations, speech
from tests.probes.built import HEAD, LAYER, planted
from tests.probes.planted_grammar import grammar


@cache
def seen() -> tuple[TreebankView, TreebankView]:
    network, tokeniser = planted()
    dev, test = (view_treebank(network, tokeniser, grammar(seed, 300), seed) for seed in (1, 2))
    return dev, test


@cache
def table() -> dict[tuple[str, str], dict[str, float]]:
    return {(row["relation"], row["direction"]): row for row in relations(*seen())}


def test_the_head_that_attends_to_the_governor_is_found_with_accuracy_one() -> None:
    row = table()["argument", "to governor"]
    assert (row["layer"], row["head"]) == (LAYER, HEAD)
    assert row["accuracy"] == row["dev_accuracy"] == row["high"] == 1.0
    assert row["low"] > 0.99
    assert row["offset_accuracy"] < 0.6


def test_the_control_stays_at_chance() -> None:
    row = table()["argument", "to governor"]
    assert row["control_low"] <= row["chance"] <= row["control_high"]
    assert row["control_high"] < 0.2


def test_other_heads_do_not_find_the_governor() -> None:
    every = np.array(table()["argument", "to governor"]["every"])
    assert every[LAYER, HEAD] == 1.0
    every[LAYER, HEAD] = 0
    assert every.max() < 0.5


def test_what_stands_at_a_fixed_distance_is_found_by_the_offset() -> None:
    row = table()["mark", "to governor"]
    assert (row["offset"], row["offset_accuracy"]) == (1, 1.0)


@pytest.mark.parametrize("seed", [3, 4])
def test_random_governors_leave_the_planted_head_at_chance(seed: int) -> None:
    dev, test = seen()
    rows = {(row["relation"], row["direction"]): row for row in relations(dev, test, seed)}
    row = rows["argument", "to governor"]
    assert row["control_low"] <= row["chance"] <= row["control_high"]


def test_a_linear_probe_of_all_heads_tells_pairs_and_not_random_labels() -> None:
    answer = pairs(*seen())
    assert answer["binary"]["majority"] == pytest.approx(0.5, abs=0.01)
    assert answer["binary"]["accuracy"] > 0.8
    assert answer["binary"]["control"] < 0.6
    assert set(answer["relations"]["classes"]) == {"argument", "chain", "mark"}
    assert answer["relations"]["accuracy"] > answer["relations"]["majority"] + 0.1


def governed(data: TreebankView, shuffled: int | None = None) -> TreebankView:
    """The pairs of the planted relation alone, with their labels shuffled where a seed is given."""
    kept = data.relation[data.pairs[:, 0]] == "argument"
    chosen = data.pairs[kept]
    if shuffled is not None:
        chosen[:, 2] = np.random.default_rng(shuffled).permutation(chosen[:, 2])
    return replace(data, pairs=chosen, seen=replace(data.seen, between=data.seen.between[kept]))


def test_of_the_planted_relation_the_linear_probe_misses_nothing_and_shuffled_labels_it_guesses() -> None:
    dev, test = seen()
    assert pairs(governed(dev), governed(test))["binary"]["accuracy"] > 0.95
    guessed = pairs(governed(dev, 1), governed(test, 2))["binary"]
    assert guessed["low"] - 0.01 <= 0.5 <= guessed["high"] + 0.01


def test_tags_get_the_shares_that_are_counted_one_by_one() -> None:
    _, test = seen()
    answer = speech(seen()[1])
    received = test.seen.received.reshape(len(test.tag), test.seen.layers, -1)
    for number, tag in enumerate(answer["tags"]):
        expected = received[test.tag == tag].sum(0) / received.sum(0)
        assert np.allclose(np.array(answer["share"])[..., number], expected, atol=1e-5)
        assert answer["uniform"][number] == pytest.approx((test.tag == tag).mean())
    assert np.allclose(np.array(answer["share"]).sum(-1), 1, atol=1e-4)
    assert np.allclose(np.array(answer["control"]).sum(-1), 1, atol=1e-4)
    planted_head = np.array(answer["share"])[LAYER, HEAD]
    assert planted_head[answer["tags"].index("VERB")] > 2 * answer["uniform"][answer["tags"].index("VERB")] * 0.9
