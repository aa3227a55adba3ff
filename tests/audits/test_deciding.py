"""The words that decide, once more with plain loops over words, sizes and draws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from assay.audits import deciding
from assay.audits.cases import Case, Resources
from assay.audits.deciding import SIZES, Deciding, curves, drawn, measured, measures
from assay.data.batches import Tokenised, collate
from assay.data.text import TextOptions, Tokeniser
from assay.errors import AssayError
from assay.explainers.baselines import Random, text_numbers
from assay.explainers.integrated import IntegratedGradients
from assay.explainers.occlusion import leave_one_out
from assay.metrics.erasure import REACHED, ranks
from assay.models.erasure import Pool
from assay.models.store import Opened
from assay.types import Batch
from tests import builders
from tests.audits.test_erasure import KEY, Keyword


def row(ids: list[int], index: int = 0) -> Tokenised:
    numbers = torch.tensor(ids)
    return Tokenised(
        index, numbers, torch.zeros(len(ids), 2, dtype=torch.int), torch.zeros(len(ids), dtype=torch.int), 0
    )


def texts(count: int, key: bool = True) -> list[Tokenised]:
    """Texts of 6 to 40 words, with the word that the model goes by at the place of their number."""
    draw = np.random.default_rng(5)
    found = []
    for place in range(count):
        ids = draw.integers(6, builders.WORDS, draw.integers(6, 41)).tolist()
        if key:
            ids[place % len(ids)] = KEY
        found.append(row(ids, place))
    return found


def pool_of(rows: list[Tokenised]) -> Pool:
    return Pool(torch.cat([each.ids[each.ids != KEY] for each in rows]))


def test_curves_are_means_over_texts_put_together_by_hand() -> None:
    rows = texts(4)
    batch, pool, draws = collate(rows), pool_of(rows), 5
    model = builders.model(encoder="lstm")
    scores = torch.rand(batch.ids.shape, generator=torch.Generator().manual_seed(0))
    case = Case(model, batch, {"x": scores})
    order = ranks(scores.double().numpy(), batch.mask.numpy())
    found = curves(case, pool, order[:, None], draws, 9)
    words = drawn(batch, pool, draws, 9)
    for text, each in enumerate(rows):
        size = len(each.ids)
        label = int(case.predicted[text])

        def answer(kept: list[int], draw: int, text: int = text, each: Tokenised = each, label: int = label) -> float:
            ids = [
                int(each.ids[place]) if place in kept else int(pool.ids[words[text, draw, place]])
                for place in range(len(each.ids))
            ]
            alone = Batch(torch.tensor([ids]), torch.ones(1, len(ids), dtype=torch.bool), torch.tensor([0]))
            with torch.no_grad():
                return float(model(model.embed(alone), alone).probabilities[0, label])

        empty = np.mean([answer([], draw) for draw in range(draws)])
        assert found.empty[text] == pytest.approx(empty, abs=1e-6)
        top = sorted(range(size), key=lambda place: order[text, place])
        for step, k in enumerate(SIZES):
            only = np.mean([answer(top[:k], draw) for draw in range(draws)])
            without = np.mean([answer(top[k:], draw) for draw in range(draws)])
            assert found.only[text, 0, step] == pytest.approx(only, abs=1e-6)
            assert found.without[text, 0, step] == pytest.approx(without, abs=1e-6)


def test_curves_that_stop_early_give_the_same_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deciding, "DECIDES", 0.0)
    rows = texts(12)
    batch, pool = collate(rows), pool_of(rows)
    draw = torch.Generator().manual_seed(1)
    scores = [torch.rand(batch.ids.shape, generator=draw).double() for _ in range(4)]
    order = np.stack([ranks(each.numpy(), batch.mask.numpy()) for each in scores], 1)
    case, known = Case(builders.model(encoder="lstm"), batch, {}), np.array([False, False, True, True])
    whole, stopped = (curves(case, pool, order, 4, 0, enough) for enough in (np.inf, REACHED))
    assert (whole.only != stopped.only).any() and (whole.without != stopped.without).any()
    assert np.isfinite(measures(whole, known)["economy"]).any()
    for name, values in measures(whole, known).items():
        np.testing.assert_array_equal(measures(stopped, known)[name], values)


def test_a_model_of_one_word_is_decided_by_that_word() -> None:
    """What ranks it first needs one word, what ranks it n-th needs the next larger number that is tried."""
    rows = texts(30)
    batch = collate(rows)
    place = torch.tensor([int((each.ids == KEY).nonzero()) for each in rows])
    positions = torch.arange(batch.ids.shape[1])[None]
    found = {"right": (positions == place[:, None]).double() * batch.mask}
    found["fourth"] = (positions == place[:, None]) * 4.0 + batch.mask.double()
    others = torch.where(positions == place[:, None], -1.0, -positions.double()).double()
    for text in range(len(rows)):
        ahead = [each for each in range(len(rows[text].ids)) if each != place[text]][:3]
        found["fourth"][text, ahead] = 10.0
    found["last"] = torch.where(positions == place[:, None], -1e9, others)
    case = Case(Keyword(), batch, found)
    economies = measured(case, pool_of(rows))["economy"]
    assert (case.predicted == 1).all()
    np.testing.assert_allclose(economies[:, 0], 1)
    np.testing.assert_allclose(economies[:, 1], 1 / 4)
    assert (economies[:, 2] < 0.2).all()


def test_a_text_that_does_not_decide_and_scores_that_are_missing_have_no_number() -> None:
    rows = texts(6)
    batch = collate(rows)
    lacking = torch.rand(batch.ids.shape, dtype=torch.float64)
    lacking[2, 0] = torch.nan
    pool = replace(pool_of(rows), ids=torch.full((5,), KEY))  # every drawn word is the one that decides
    hardly = measured(Case(Keyword(), batch, {"x": lacking}), pool)
    assert all(np.isnan(values).all() for values in hardly.values())
    usual = measured(Case(Keyword(), batch, {"x": lacking}), pool_of(rows))["economy"][:, 0]
    assert np.isnan(usual).tolist() == [False, False, True, False, False, False]


def prepared(rows: list[Tokenised], **options: int) -> Deciding:
    model = builders.model(encoder="lstm", dtype=torch.float32)
    resources = Resources(Opened(model, Tokeniser.fit(["a"], TextOptions()), ("no", "yes"), {}), {}, rows)
    return Deciding(**options).prepared(resources)


def test_it_reads_the_texts_that_the_seed_draws_whatever_the_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deciding, "DECIDES", -1.0)  # the network of the resources has learnt nothing
    rows = texts(20)
    audit = prepared(rows, texts=7, draws=3)
    audit = replace(audit, pool=pool_of(rows))

    def numbers(each: list[Tokenised]) -> np.ndarray:
        batch = collate(each)
        scores = {"random": Random()(Keyword(), batch, torch.zeros(len(each), dtype=torch.long))}
        return audit(Case(Keyword(), batch, scores)).measures["economy:random"]

    whole = numbers(rows)
    assert np.isfinite(whole).sum() == 7
    parts = np.concatenate([numbers(rows[:3]), numbers(rows[3:4]), numbers(rows[4:])])
    np.testing.assert_allclose(whole, parts)
    other = prepared(rows, texts=7, draws=3, seed=1)
    assert audit.chosen is not None and other.chosen is not None
    assert set(audit.chosen.tolist()) != set(other.chosen.tolist())
    assert len(prepared(rows, texts=50).chosen) == 20  # type: ignore[arg-type]


def test_it_draws_texts_in_which_words_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others have no number in a case of all texts, and are passed over."""
    rows = texts(40)
    pool = Pool.of(rows)
    model = builders.model(encoder="lstm", dtype=torch.float32)
    order = np.zeros((40, 1, collate(rows).ids.shape[1]), dtype=np.int64)
    added = curves(Case(model, collate(rows), {}), pool, order, 8, 0)
    gain = added.whole - added.empty
    monkeypatch.setattr(deciding, "DECIDES", float(np.median(gain)))
    audit = prepared(rows, texts=10)
    numbers = text_numbers(collate(rows))
    assert audit.chosen is not None and len(audit.chosen) == 10
    assert set(audit.chosen.tolist()) <= set(numbers[torch.tensor(gain >= np.median(gain) - 1e-6)].tolist())
    monkeypatch.setattr(deciding, "DECIDES", 2.0)
    none = prepared(rows, texts=10)
    assert none.chosen is not None and len(none.chosen) == 0
    batch = collate(rows)
    scores = {"random": Random()(Keyword(), batch, torch.zeros(40, dtype=torch.long))}
    assert np.isnan(none(Case(Keyword(), batch, scores)).measures["economy:random"]).all()


def test_explainers_do_not_change_each_others_numbers() -> None:
    rows = texts(8)
    batch, model = collate(rows), builders.model(encoder="lstm")
    target = Case(model, batch, {}).predicted
    given = {
        "leave_one_out": leave_one_out(model, batch, target),
        "integrated_gradients": IntegratedGradients()(model, batch, target),
        "random": Random()(model, batch, target),
    }
    together = measured(Case(model, batch, given), pool_of(rows))["economy"]
    for place, (name, scores) in enumerate(given.items()):
        alone = measured(Case(model, batch, {name: scores}), pool_of(rows))["economy"][:, 0]
        np.testing.assert_allclose(together[:, place], alone)


@pytest.mark.parametrize("name", ["texts", "draws", "shuffles"])
def test_numbers_below_one_are_refused(name: str) -> None:
    with pytest.raises(AssayError, match="whole numbers from 1"):
        Deciding(**{name: 0})
