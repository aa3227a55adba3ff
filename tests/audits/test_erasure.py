"""Every number once more with plain loops over words, and by hand where a model is simple enough."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from assay import costs
from assay.audits.cases import Case
from assay.audits.word_erasure import FIRST_SHUFFLE, Erasure
from assay.data.text import SPECIAL, UNKNOWN
from assay.errors import AssayError
from assay.explainers.baselines import Random
from assay.explainers.gradients import input_x_gradient
from assay.types import Batch, Edit, Model, Output
from tests import builders

THRESHOLDS = (0.01, 0.05, 0.1, 0.2, 0.5)
KEY = 5


@dataclass(frozen=True)
class Keyword:
    """A model with a weight on one word: the log-odds of class 1 are 4 × its number - 2."""

    def embed(self, batch: Batch) -> torch.Tensor:
        return (batch.ids == KEY).double()[..., None]

    def __call__(self, x: torch.Tensor, batch: Batch, edit: Edit | None = None) -> Output:
        count = (x[..., 0] * batch.mask).sum(-1)
        return Output(torch.stack([torch.zeros_like(count), 4 * count - 2], -1), ())


def case(model: Model, batch: Batch, scores: dict[str, torch.Tensor]) -> Case:
    return Case(model, batch, scores)


def probabilities(model: Model, ids: list[int]) -> np.ndarray:
    """The answer to these words, read alone."""
    mask = torch.ones(1, len(ids), dtype=torch.bool) if ids else torch.zeros(1, 1, dtype=torch.bool)
    batch = Batch(torch.tensor([ids or [0]]), mask, torch.tensor([0]))
    with torch.no_grad():
        return model(model.embed(batch), batch).probabilities[0].numpy()


def plain(model: Model, ids: list[int], scores: list[float]) -> dict[str, float]:
    """Every measure of one text, step by step."""
    n, unknown = len(ids), SPECIAL.index(UNKNOWN)
    order = sorted(range(n), key=lambda place: (-scores[place], place))
    whole = probabilities(model, ids)
    label = int(whole.argmax())
    points = range(n + 1)
    if n > 32:
        points = sorted({round(n * i / 32) for i in range(33)} | {math.ceil(t * n) for t in THRESHOLDS})
    without = {k: probabilities(model, [w for i, w in enumerate(ids) if i not in order[:k]]) for k in points}
    only = {k: probabilities(model, [w for i, w in enumerate(ids) if i in order[:k]]) for k in points}
    masked = {k: probabilities(model, [unknown if i in order[:k] else w for i, w in enumerate(ids)]) for k in points}
    sizes = [math.ceil(t * n) for t in THRESHOLDS]
    found = {}
    for name, answers in (("comprehensiveness", without), ("sufficiency", only)):
        drops = [whole[label] - answers[k][label] for k in sizes]
        found |= {f"{name}@{t}": drop for t, drop in zip(THRESHOLDS, drops, strict=True)}
        found[name] = sum(drops) / 5
        added = whole[label] - without[n][label]
        found[f"{name}_normalised"] = found[name] / added if added >= 0.1 else math.nan
    odds = {k: math.log(p[label] / (1 - p[label])) for k, p in without.items()}
    found["log_odds"] = sum(odds[0] - odds[k] for k in sizes) / 5
    for name, answers in (("flip", without), ("flip_mask", masked)):
        flips = [k for k in points if 0 < k < n and answers[k].argmax() != label]
        found[name] = flips[0] / n if flips else 1.0
        if name == "flip":
            found["flipped"] = float(bool(flips))
    removed = sorted(points)
    found["morf"] = np.trapezoid([without[k][label] for k in removed], [k / n for k in removed])
    kept = sorted(points, reverse=True)
    found["lerf"] = np.trapezoid([only[k][label] for k in kept], [1 - k / n for k in kept])
    return found


def rows(batch: Batch, scores: torch.Tensor) -> list[tuple[list[int], list[float]]]:
    return [(batch.ids[row, :n].tolist(), scores[row, :n].tolist()) for row, n in enumerate(batch.lengths.tolist())]


@pytest.mark.parametrize("encoder", ["lstm", "average"])
@pytest.mark.parametrize("lengths", [(7, 1, 4, 12), (33, 45), (1, 1)])
def test_every_measure_is_what_plain_loops_find(lengths: tuple[int, ...], encoder: str) -> None:
    model, batch = builders.model(classes=3, encoder=encoder), builders.batch(lengths)
    start = case(model, batch, {})
    signed = input_x_gradient(model, batch, start.predicted)
    rough = (signed * 50).round()  # has ties
    answer = Erasure(shuffles=1, prefixes=32)(case(model, batch, {"signed": signed, "rough": rough}))
    for name, scores in (("signed", signed), ("rough", rough)):
        expected = [plain(model, *row) for row in rows(batch, scores)]
        for measure in expected[0]:
            values = answer.measures[f"{measure}:{name}"]
            assert values.dtype == np.float64
            np.testing.assert_allclose(values, [row[measure] for row in expected], atol=1e-9, err_msg=measure)


def test_decisions_flip_in_some_of_these_texts_and_not_in_others() -> None:
    """Without both, the comparison above would show little."""
    model, batch = builders.model(classes=3), builders.batch((7, 1, 4, 12))
    scores = input_x_gradient(model, batch, case(model, batch, {}).predicted)
    found = Erasure()(case(model, batch, {"signed": scores})).measures
    assert {*found["flipped:signed"].tolist()} == {0.0, 1.0}
    assert np.isfinite(found["comprehensiveness_normalised:signed"]).any()


def test_a_model_of_one_word_gives_numbers_that_can_be_worked_by_hand() -> None:
    batch = Batch(torch.tensor([[8, 9, KEY, 7]]), torch.ones(1, 4, dtype=torch.bool), torch.tensor([1]))
    scores = {"right": torch.tensor([[0.1, 0.2, 0.9, 0.0]]), "wrong": torch.tensor([[0.9, 0.8, 0.1, 0.2]])}
    found = {name: values[0] for name, values in Erasure()(case(Keyword(), batch, scores)).measures.items()}
    sure = 1 / (1 + math.exp(-2))
    drop = sure - (1 - sure)  # with the word less without it: 2 sure - 1
    assert found["comprehensiveness:right"] == pytest.approx(drop)
    assert found["sufficiency:right"] == pytest.approx(0)
    assert found["comprehensiveness_normalised:right"] == pytest.approx(1)
    assert found["sufficiency_normalised:wrong"] == pytest.approx(1)  # its two highest words leave nothing
    assert found["log_odds:right"] == pytest.approx(4)
    assert (found["flip:right"], found["flip:wrong"], found["flipped:wrong"]) == (0.25, 1.0, 0.0)
    assert found["morf:right"] == pytest.approx(0.25 * 0.5 + 0.75 * (1 - sure))
    assert found["lerf:right"] == pytest.approx(0.75 * sure + 0.25 * 0.5)
    assert found["morf:wrong"] == pytest.approx(0.75 * sure + 0.25 * 0.5)
    for measure in ("comprehensiveness", "sufficiency", "flip", "morf"):
        assert found[f"{measure}_gain:right"] > 0 > found[f"{measure}_gain:wrong"]
    assert not any(name.startswith("flip_mask") for name in found)  # a model without embeddings has no mask


def test_chance_is_the_mean_of_random_rankings_and_gains_are_differences_from_it() -> None:
    model, batch = builders.model(classes=3), builders.batch()
    shuffled = {f"s{i}": Random(FIRST_SHUFFLE + 4 * 3 + i)(model, batch, batch.labels) for i in range(4)}
    found = Erasure(shuffles=4, seed=3)(case(model, batch, shuffled)).measures
    assert np.isnan(found.pop("flip_mask:chance")).all()  # it would cost as much again as everything else
    measures = {name.partition(":")[0] for name in found if name.endswith(":chance")}
    assert {"comprehensiveness", "sufficiency@0.5", "flip", "morf", "lerf"} < measures
    for measure in measures:
        mean = np.mean([found[f"{measure}:{name}"] for name in shuffled], axis=0)
        np.testing.assert_allclose(found[f"{measure}:chance"], mean, atol=1e-12)
    for measure, sign in {"comprehensiveness": 1, "sufficiency": -1, "flip": -1, "morf": -1}.items():
        gain = sign * (found[f"{measure}:s1"] - found[f"{measure}:chance"])
        np.testing.assert_allclose(found[f"{measure}_gain:s1"], gain, atol=1e-12)


def test_random_rankings_depend_on_text_and_seed_and_differ_from_the_random_explainer() -> None:
    model, batch = builders.model(), builders.batch((9, 12))
    explainer = {"random": Random(0)(model, batch, batch.labels)}
    first, again, other = (Erasure(seed=seed, shuffles=1)(case(model, batch, explainer)).measures for seed in (0, 0, 1))
    assert (first["morf:chance"] == again["morf:chance"]).all()
    assert (first["morf:chance"] != other["morf:chance"]).all()
    assert (first["morf:chance"] != first["morf:random"]).all()


def alone(batch: Batch, row: int) -> Batch:
    return batch[torch.tensor([row])]


def wider(batch: Batch, row: int) -> Batch:
    one = alone(batch, row)
    extra = torch.zeros(1, 3, dtype=torch.long)
    return replace(one, ids=torch.cat([one.ids, extra], 1), mask=torch.cat([one.mask, extra.bool()], 1))


@pytest.mark.parametrize("change", [alone, wider])
def test_neither_padding_nor_the_rest_of_the_batch_changes_anything(change: Callable[[Batch, int], Batch]) -> None:
    model, batch = builders.model(), builders.batch((7, 1, 4, 40))

    def measured(batch: Batch) -> dict[str, np.ndarray]:
        return Erasure(shuffles=3)(case(model, batch, {"random": Random(1)(model, batch, batch.labels)})).measures

    together = measured(batch)
    for row in range(4):
        for name, values in measured(change(batch, row)).items():
            np.testing.assert_allclose(values[0], together[name][row], atol=1e-12, err_msg=name)


def test_removal_by_the_mask_makes_the_two_kinds_of_flip_equal() -> None:
    model, batch = builders.model(), builders.batch((9, 12, 11))
    scores = {"random": Random(0)(model, batch, batch.labels)}
    found = Erasure(removal="mask")(case(model, batch, scores)).measures
    deleted = Erasure()(case(model, batch, scores)).measures
    np.testing.assert_array_equal(found["flip:random"], found["flip_mask:random"])
    np.testing.assert_array_equal(found["flip_mask:random"], deleted["flip_mask:random"])
    assert (found["morf:random"] != deleted["morf:random"]).all()


def test_a_missing_score_leaves_only_its_own_text_and_explainer_undefined() -> None:
    model, batch = builders.model(), builders.batch((4, 5))
    whole = Random(0)(model, batch, batch.labels)
    holed = whole.clone()
    holed[0, 2] = torch.nan
    holed[0, 4] = torch.nan  # padding
    found = Erasure(shuffles=2)(case(model, batch, {"whole": whole, "holed": holed})).measures
    for measure in ("comprehensiveness", "flip", "morf_gain", "sufficiency@0.1"):
        assert np.isnan(found[f"{measure}:holed"]).tolist() == [True, False]
        assert found[f"{measure}:holed"][1] == found[f"{measure}:whole"][1]
    assert np.isfinite(found["morf:chance"]).all()


def test_what_two_explainers_leave_alike_is_read_once() -> None:
    model, batch = builders.model(), builders.batch((9, 12))
    scores = Random(0)(model, batch, batch.labels)

    def read(**named: torch.Tensor) -> float:
        with costs.measured() as cost:
            Erasure(shuffles=2)(case(model, batch, named))
        return cost.forward

    assert read(one=scores, same=2 * scores) == read(one=scores)
    assert read(one=scores, other=scores.roll(1, 0) * batch.mask) > read(one=scores)


def test_flips_by_masking_can_be_left_out_and_nothing_else_changes() -> None:
    model, batch = builders.model(), builders.batch()
    named = {"random": Random(1)(model, batch, batch.labels)}
    all_of_it, less = (Erasure(masked=masked)(case(model, batch, named)).measures for masked in (True, False))
    assert {*all_of_it} - {*less} == {"flip_mask:random", "flip_mask:chance"}
    for name, values in less.items():
        np.testing.assert_array_equal(values, all_of_it[name], err_msg=name)


@pytest.mark.parametrize("options", [{"shuffles": 0}, {"prefixes": 0}])
def test_without_a_null_or_a_point_to_read_it_refuses(options: dict[str, int]) -> None:
    with pytest.raises(AssayError, match="from 1"):
        Erasure(**options)
