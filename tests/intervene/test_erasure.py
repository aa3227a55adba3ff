"""Erasure against brute force: every subset of the items, and decoding anew after each of them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import pad

from assay.intervene import pooled_attention as erasure
from assay.intervene.pooled_attention import (
    Pooling,
    flips,
    gradient,
    leave_one_out,
    prefix_logits,
    ranked,
    single_logits,
    smallest,
)
from assay.types import attended, token_logits
from tests import builders

SHAPES = pytest.mark.parametrize("shape", ["flat", "hierarchical", "paired"])
LENGTHS = (1, 2, 3, 5, 8, 10, 10, 4)


def random_pooling(seed: int, classes: int, lengths: tuple[int, ...] = LENGTHS, spread: float = 1.0) -> Pooling:
    """Random items; a common part of their logits makes some decisions so sure that only erasing everything helps."""
    generator = torch.Generator().manual_seed(seed)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]

    def normal(*size: int) -> Tensor:
        return torch.randn(*size, generator=generator, dtype=torch.float64)

    values = normal(*mask.shape, classes) + 1.5 * normal(len(mask), 1, classes)
    weights = (spread * normal(*mask.shape)).masked_fill(~mask, -torch.inf).softmax(-1)
    return Pooling.of(values, weights, mask, normal(len(mask), classes))


def sparse(pooling: Pooling, seed: int) -> Pooling:
    """The same with half of the weights at 0, but never all of a row."""
    drawn = torch.rand(pooling.mask.shape, generator=torch.Generator().manual_seed(seed))
    kept = drawn >= drawn.masked_fill(~pooling.mask, torch.nan).nanmedian(-1, keepdim=True).values
    return Pooling.of(pooling.values, pooling.weights * kept, pooling.mask, pooling.empty)


def coarse(seed: int, classes: int) -> Pooling:
    """Few different numbers, all of them exact in binary, so that logits are often equal and weights often 0."""
    generator = torch.Generator().manual_seed(seed)
    mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    values = torch.randint(-2, 3, (*mask.shape, classes), generator=generator).double()
    weights = torch.randint(0, 4, mask.shape, generator=generator).double() / 4
    weights[:, 0] += 0.25
    return Pooling.of(values, weights, mask, torch.randint(-1, 2, (len(mask), classes), generator=generator).double())


CASES = {
    "dense": lambda seed, classes: random_pooling(seed, classes),
    "sparse": lambda seed, classes: sparse(random_pooling(seed, classes), seed),
    "ties": coarse,
}


def left_over(pooling: Pooling, row: int, erased: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The weights of one row without these items, and the logits of the items."""
    real = pooling.mask[row].numpy()
    return np.where(erased, 0.0, pooling.weights[row].numpy())[real], pooling.values[row].numpy()[real]


def redecoded(pooling: Pooling, row: int, erased: np.ndarray) -> np.ndarray:
    """The logits of one row with these items erased: what is left, renormalised, and its weighted mean."""
    kept, values = left_over(pooling, row, erased)
    return (kept / kept.sum()) @ values if (kept > 0).any() else pooling.empty[row].numpy()


def decision(pooling: Pooling, row: int, erased: np.ndarray) -> int:
    """The decision with these items erased; without the scale, which changes none, sums of coarse numbers are exact."""
    kept, values = left_over(pooling, row, erased)
    return int((kept @ values if (kept > 0).any() else pooling.empty[row].numpy()).argmax())


def brute_force(pooling: Pooling, row: int) -> int | None:
    """The size of the smallest set that changes the decision, by trying all of them."""
    count = int(pooling.mask[row].sum())
    subsets = np.array(list(itertools.product([False, True], repeat=count)))
    kept = ~subsets * pooling.weights[row, :count].numpy()
    logits = kept @ pooling.values[row, :count].numpy()
    logits = np.where((kept > 0).any(-1, keepdims=True), logits, pooling.empty[row].numpy())
    changing = subsets[logits.argmax(-1) != logits[0].argmax()]
    return int(changing.sum(-1).min()) if len(changing) else None


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("kind", CASES)
def test_the_smallest_set_is_the_smallest_of_all_subsets_and_changes_the_decision(kind: str, classes: int) -> None:
    seen = set()
    for seed in range(12):
        pooling = CASES[kind](seed, classes)
        found = smallest(pooling)
        for row in range(len(pooling.mask)):
            least, erased = brute_force(pooling, row), found.erased[row].numpy()
            assert bool(found.flipped[row]) == (least is not None)
            size = int(pooling.mask[row].sum())
            assert int(found.count[row]) == (size if least is None else least)
            assert erased.sum() == (least or 0)
            assert not erased[size:].any()
            before, after = (decision(pooling, row, each) for each in (np.zeros_like(erased), erased))
            assert int(found.winner[row]) == after
            assert (after != before) == (least is not None)
            expected = pooling.weights[row, erased].sum() if least else pooling.weights[row].sum()
            assert float(found.mass[row]) == pytest.approx(float(expected))
            support = int((pooling.weights[row] > 0).sum())
            seen.add("never" if least is None else "all" if least == support else "some")
    assert seen == {"never", "all", "some"}  # else little has been shown


@pytest.mark.parametrize("spread", [1.0, 12.0])  # in the second, what is left soon weighs less than 1e-12
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_prefixes_equal_decoding_anew_after_each_erasure(kind: str, spread: float) -> None:
    pooling = random_pooling(3, 4, (1, 7, 40, 23), spread)
    pooling = sparse(pooling, 3) if kind == "sparse" else pooling
    scores = torch.stack([pooling.weights, -pooling.weights, torch.rand_like(pooling.weights)], 1)
    order = ranked(scores, pooling.mask)
    found = prefix_logits(pooling, order)
    lightest = 1.0
    for row, ranking in itertools.product(range(4), range(3)):
        erased = np.zeros(40, dtype=bool)
        for step in range(40):
            erased[order[row, ranking, step]] = True
            np.testing.assert_allclose(found[row, ranking, step], redecoded(pooling, row, erased), atol=1e-10, rtol=0)
            left = float(pooling.weights[row].masked_fill(torch.from_numpy(erased), 0.0).sum())
            lightest = min(lightest, left or 1.0)
    assert lightest < 1e-12 or spread == 1.0


def test_an_erased_item_alone_equals_decoding_anew() -> None:
    sharp = random_pooling(4, 3, (1, 7, 30), 60.0)
    assert (1 - sharp.weights[1:].amax(-1) < 1e-12).any()  # to take this item's part from the sum would lose the rest
    for pooling in (sharp, sparse(random_pooling(5, 3, (1, 7, 30)), 5)):
        found = single_logits(pooling)
        for row, item in itertools.product(range(3), range(30)):
            erased = np.arange(30) == item
            np.testing.assert_allclose(found[row, item], redecoded(pooling, row, erased), atol=1e-10, rtol=0)
        idle = pooling.weights == 0
        assert torch.equal(found[idle], pooling.logits[:, None].expand_as(found)[idle])  # to the last digit


@pytest.mark.parametrize("kind", CASES)
def test_flips_are_those_of_a_plain_loop_down_each_ranking(kind: str) -> None:
    seen = set()
    for seed in range(8):
        pooling = CASES[kind](seed, 3)
        order = ranked(torch.stack([pooling.weights, gradient(pooling)], 1), pooling.mask)
        found = flips(pooling, order)
        for row, ranking in itertools.product(range(len(order)), range(2)):
            erased, first = np.zeros(order.shape[-1], dtype=bool), None
            before = decision(pooling, row, erased)
            for step, item in enumerate(order[row, ranking, : int(pooling.mask[row].sum())].tolist(), 1):
                erased[item] = True
                if decision(pooling, row, erased) != before:
                    first = step
                    break
            assert bool(found.flipped[row, ranking]) == (first is not None)
            assert int(found.count[row, ranking]) == (first or int(pooling.mask[row].sum()))
            assert float(found.mass[row, ranking]) == pytest.approx(float(pooling.weights[row, erased].sum()))
            seen.add(first is None)
    assert seen == {True, False}


def test_rankings_put_equal_scores_in_order_and_padding_last() -> None:
    mask = torch.tensor([[True, True, True, True, False]])
    scores = torch.tensor([[[0.5, -1.0, 0.5, 2.0, 9.0], [-3.0, -3.0, -3.0, -4.0, 0.0]]])
    assert ranked(scores, mask).tolist() == [[[3, 0, 2, 1, 4], [0, 1, 2, 3, 4]]]
    assert ranked(scores[:, 0], mask).tolist() == [[3, 0, 2, 1, 4]]


def of_model(shape: str, classes: int = 3) -> tuple[torch.nn.Module, Tensor, Tensor, Pooling]:
    """A model that reads some texts: its states, the attention to them, and what they come to."""
    model, batch = (
        builders.model(shape=shape, classes=classes, seed=2),
        builders.structured(builders.batch((7, 1, 4, 12))),
    )
    with torch.no_grad():
        states = model.states(model.embed(batch), batch)
        weights = model.attend(states, batch)
        empty = model.decode(states, torch.zeros_like(weights))
        pooling = Pooling.of(token_logits(model, states), weights, attended(model, batch), empty)
    return model, states, weights, pooling


@SHAPES
def test_the_gradient_is_that_of_the_decoder_with_every_weight_free(shape: str) -> None:
    model, states, weights, pooling = of_model(shape)
    free = weights.clone().requires_grad_()
    (expected,) = torch.autograd.grad(model.decode(states, free).softmax(-1).amax(-1).sum(), free)
    found = gradient(pooling)
    np.testing.assert_allclose(found[pooling.mask], expected[pooling.mask], atol=1e-12)
    assert (found < 0).any() and (found > 0).any()
    assert torch.equal(ranked(found, pooling.mask), ranked(expected, pooling.mask))


@SHAPES
def test_leave_one_out_is_the_drop_when_the_decoder_reads_the_rest(shape: str) -> None:
    model, states, weights, pooling = of_model(shape)
    found = leave_one_out(pooling)
    whole = model.decode(states, weights).softmax(-1)
    chosen = whole.argmax(-1)
    for row, item in pooling.mask.nonzero().tolist():
        left = weights[row : row + 1].clone()
        left[0, item] = 0
        left = left / left.sum().clamp(min=1e-300)
        after = model.decode(states[row : row + 1], left).softmax(-1)
        expected = whole[row, chosen[row]] - after[0, chosen[row]]
        np.testing.assert_allclose(found[row, item], expected.detach(), atol=1e-12)
    assert (found[~pooling.mask] == 0).all()


def test_rankings_of_a_sure_model_do_not_drown_in_rounding() -> None:
    """The lead is 50, so the probability of the decision is 1 to a computer; the items still differ."""
    leads = torch.tensor([52.0, 49.0, 50.0, 49.5], dtype=torch.float64)
    values = torch.stack([leads, torch.zeros(4, dtype=torch.float64)], -1)[None]
    even = torch.full((1, 4), 0.25, dtype=torch.float64)
    pooling = Pooling.of(values, even, torch.ones(1, 4, dtype=torch.bool), torch.zeros(1, 2, dtype=torch.float64))
    assert pooling.logits.softmax(-1)[0, 0] == 1
    for scores in (gradient(pooling), leave_one_out(pooling)):
        assert ranked(scores, pooling.mask).tolist() == [[0, 2, 3, 1]]
    rare = np.exp(-(leads.numpy().sum() - leads.numpy()) / 3) - np.exp(-leads.numpy().mean())
    np.testing.assert_allclose(leave_one_out(pooling)[0], rare, rtol=1e-9)
    np.testing.assert_allclose(gradient(pooling)[0], leads * np.exp(-leads.numpy().mean()), rtol=1e-9)


@pytest.mark.parametrize("kind", CASES)
def test_wider_padding_and_smaller_pieces_change_nothing(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pooling = CASES[kind](7, 3)
    wider = Pooling.of(
        pad(pooling.values, (0, 0, 0, 3), value=torch.nan),
        pad(pooling.weights, (0, 3), value=0.5),
        pad(pooling.mask, (0, 3)),
        pooling.empty,
    )

    def everything(pooling: Pooling) -> list[Tensor]:
        scores = [pooling.weights, gradient(pooling), leave_one_out(pooling)]
        down, best = flips(pooling, ranked(torch.stack(scores, 1), pooling.mask)), smallest(pooling)
        return [*vars(down).values(), best.flipped, best.count, best.mass, best.winner, best.erased, *scores]

    expected = everything(pooling)
    for entries, given in ((1, pooling), (100, pooling), (1 << 20, wider)):
        monkeypatch.setattr(erasure, "ENTRIES", entries)
        for found, wanted in zip(everything(given), expected, strict=True):
            cut = found[:, : wanted.shape[1]] if found.ndim > 1 and wanted.shape[1] == 10 else found
            np.testing.assert_allclose(cut, wanted, atol=1e-14)
            assert not found[..., cut.shape[-1] :].any()


def test_an_item_that_alone_prefers_the_decision_is_the_smallest_set() -> None:
    values = torch.tensor([[[3.0, 0.0], [0.0, 1.0], [0.0, 0.5]]])
    pooling = Pooling.of(values, torch.tensor([[0.4, 0.3, 0.3]]), torch.ones(1, 3).bool(), torch.tensor([[0.0, 9.0]]))
    found = smallest(pooling)
    assert (found.erased.tolist(), found.winner.tolist()) == ([[True, False, False]], [1])
    assert found.mass.item() == pytest.approx(0.4)


def test_with_two_classes_and_no_bias_the_product_of_gradient_and_weight_is_optimal() -> None:
    """The gradient is then the lead of an item times a number of the text, and so the product sorts as the optimum."""
    for seed in range(5):
        drawn = random_pooling(seed, 2, (10, 25, 40, 33))
        pooling = Pooling.of(drawn.values, drawn.weights, drawn.mask, torch.zeros(4, 2))
        down = flips(pooling, ranked((gradient(pooling) * pooling.weights)[:, None], pooling.mask))
        best = smallest(pooling)
        assert torch.equal(down.flipped[:, 0], best.flipped)
        assert torch.equal(down.count[:, 0], best.count)


@pytest.mark.gpu
def test_a_gpu_finds_the_same() -> None:
    pooling = random_pooling(0, 4)
    there = Pooling.of(*(each.cuda() for each in vars(pooling).values()))
    for found, wanted in ((smallest(there), smallest(pooling)),):
        for name, value in vars(wanted).items():
            torch.testing.assert_close(getattr(found, name).cpu(), value)
