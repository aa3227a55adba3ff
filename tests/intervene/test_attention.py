"""Edits: distributions over real tokens, whatever the padding, the queries and the device."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from assay.errors import AssayError
from assay.intervene import OneHot, Permute, Prune, Replace, Within, Without, uniform
from assay.types import Edit, LayerwiseEdit

LENGTHS = torch.tensor([7, 1, 4, 6])


def attention(*queries: int, tokens: int = 7) -> tuple[Tensor, Tensor]:
    mask = torch.arange(tokens) < LENGTHS[:, None]
    wide = mask.reshape(4, *[1] * len(queries), tokens)
    scores = torch.randn(4, *queries, tokens, generator=torch.Generator().manual_seed(1))
    return scores.masked_fill(~wide, -torch.inf).softmax(-1), mask


def test_uniform_is_one_over_length() -> None:
    edited = uniform(*attention())
    for row, length in zip(edited, LENGTHS.tolist(), strict=True):
        assert row.tolist() == pytest.approx([1 / length] * length + [0.0] * (7 - length))


def test_permute_keeps_the_weights_and_moves_them() -> None:
    weights, mask = attention(50)
    shuffled = Permute(seed=3)(weights, mask)
    assert torch.equal(shuffled.sort(-1).values, weights.sort(-1).values)
    alike = Permute(seed=3)(weights[:, :1].expand_as(weights), mask)
    assert len(alike[0].unique(dim=0)) > 40  # seven tokens have 5040 orders


def test_permute_draws_every_order_equally_often() -> None:
    weights = torch.tensor([0.5, 0.3, 0.2, 0.0]).expand(1, 6000, 4)
    shuffled = Permute()(weights, torch.tensor([[True, True, True, False]]))
    orders, counts = shuffled[0].unique(dim=0, return_counts=True)
    assert len(orders) == 6
    assert (counts - 1000).abs().max() < 150  # five standard deviations


def test_permute_stays_on_tokens_that_are_attended_when_the_mask_has_holes() -> None:
    mask = torch.tensor([[False, True, True, False, True]])
    weights = torch.tensor([[0.0, 0.5, 0.3, 0.0, 0.2]]).expand(20, -1)
    shuffled = Permute()(weights, mask.expand(20, -1))
    assert (shuffled[:, ~mask[0]] == 0).all()
    assert torch.equal(shuffled.sort(-1).values, weights.sort(-1).values)


def test_the_same_seed_gives_the_same_order_and_another_seed_another() -> None:
    weights, mask = attention(5)
    assert torch.equal(Permute(1)(weights, mask), Permute(1)(weights, mask))
    assert not torch.equal(Permute(1)(weights, mask), Permute(2)(weights, mask))


def test_one_hot_takes_a_position_for_all_rows_or_for_each() -> None:
    weights, mask = attention(2)
    assert (OneHot(0)(weights, mask)[..., 0] == 1).all()
    chosen = torch.tensor([6, 0, 3, 2])
    assert torch.equal(OneHot(chosen)(weights, mask).argmax(-1), chosen[:, None].expand(4, 2))


def test_one_hot_on_padding_is_refused() -> None:
    with pytest.raises(AssayError, match="real token"):
        OneHot(2)(*attention())


def test_replace_spreads_one_distribution_over_the_queries_in_the_models_precision() -> None:
    weights, mask = attention(3)
    other = uniform(*attention()).double()
    replaced = Replace(other)(weights, mask)
    assert replaced.dtype == weights.dtype
    assert torch.equal(replaced, other.float()[:, None].expand(4, 3, 7))
    each = attention(3)[0].flip(1)
    assert torch.equal(Replace(each)(weights, mask), each)


@pytest.mark.gpu
def test_permute_gives_the_same_order_on_the_gpu() -> None:
    weights, mask = attention(30)
    assert torch.equal(Permute()(weights.cuda(), mask.cuda()).cpu(), Permute()(weights, mask))


def placed(edit: Edit, layer: int) -> Edit:
    assert isinstance(edit, LayerwiseEdit)
    found = edit.at(layer)
    assert found is not None
    return found


def heads_of_places() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Causal weights [B, H, Q, K] and what may be attended to [B, Q, K]; the same with each place a row of its own."""
    real = torch.arange(7) < LENGTHS[:, None]
    may = real[:, None] & torch.ones(7, 7).tril().bool()
    scores = torch.randn(4, 3, 7, 7, generator=torch.Generator().manual_seed(2))
    weights = scores.masked_fill(~may[:, None], -torch.inf).softmax(-1)
    return weights, may, weights.transpose(1, 2).reshape(28, 3, 7), may.reshape(28, 7)


def stacked(rows: Tensor) -> Tensor:
    """Rows of places as [B, H, Q, K] again."""
    return rows.reshape(4, 7, 3, 7).transpose(1, 2)


def test_within_edits_the_chosen_heads_of_the_chosen_layers_and_nothing_else() -> None:
    weights, mask = attention(3, 5)
    even = uniform(weights, mask)
    edit = Within(uniform, layers=[0, 2], heads=[2, 0])
    for layer in range(4):
        found = edit.at(layer)
        assert (found is None) == (layer in (1, 3))
        for row, head in [(row, head) for row in range(4) for head in range(3)]:
            chosen = found is not None and head in (0, 2)
            edited = weights if found is None else found(weights, mask)
            assert torch.equal(edited[row, head], (even if chosen else weights)[row, head])


def test_within_without_layers_or_heads_edits_all_of_them() -> None:
    weights, mask = attention(3, 5)
    assert torch.equal(placed(Within(uniform, layers=[1]), 1)(weights, mask), uniform(weights, mask))
    edit = Within(uniform, heads=[1])
    assert all(torch.equal(placed(edit, layer)(weights, mask), edit(weights, mask)) for layer in range(9))
    assert torch.equal(Within(uniform)(weights, mask), uniform(weights, mask))
    assert torch.equal(Within(uniform)(*attention()), uniform(*attention()))
    assert torch.equal(Within(uniform, heads=[])(weights, mask), weights)


def test_within_can_be_placed_within_another() -> None:
    edit = Within(Within(uniform, layers=[1, 2], heads=[0, 1]), layers=[2, 3], heads=[1, 2])
    weights, mask = attention(3, 5)
    assert [edit.at(layer) is None for layer in range(4)] == [True, True, False, True]
    edited = placed(edit, 2)(weights, mask)
    assert torch.equal(edited[:, 1], uniform(weights, mask)[:, 1])
    assert torch.equal(edited[:, [0, 2]], weights[:, [0, 2]])
    assert edit.depth == 4
    assert Within(Prune([(5, 0)]), layers=[1]).depth == 6


def test_within_and_prune_find_the_heads_where_each_place_is_a_row() -> None:
    weights, may, rows, seen = heads_of_places()
    edited = stacked(Within(uniform, heads=[1])(rows, seen))
    pruned = stacked(placed(Prune([(3, 0), (3, 2)]), 3)(rows, seen))
    for row, head, place in [(b, h, q) for b in range(4) for h in range(3) for q in range(7)]:
        even = may[row, place].float() / may[row, place].sum()
        torch.testing.assert_close(edited[row, head, place], even if head == 1 else weights[row, head, place])
        expected = weights[row, head, place] if head == 1 else torch.zeros(7)
        assert torch.equal(pruned[row, head, place], expected)


def test_pruned_heads_have_no_weight_and_the_others_what_they_had() -> None:
    weights, mask = attention(3, 5)
    edit = Prune([(0, 1), (2, 0), (2, 2)])
    assert edit.at(1) is None and edit.depth == 3
    for layer in (0, 2):
        edited = placed(edit, layer)(weights, mask)
        for head in range(3):
            gone = (layer, head) in edit.heads
            assert torch.equal(edited[:, head], torch.zeros(4, 5, 7) if gone else weights[:, head])


@pytest.mark.parametrize("queries", [(), (3,), (2, 3)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_without_takes_places_out_and_shares_what_they_had(queries: tuple[int, ...], dtype: torch.dtype) -> None:
    weights, mask = attention(*queries)
    weights = weights.to(dtype)
    columns = torch.tensor([[0, 1, 0, 0, 1, 0, 0], [0] * 7, [1, 1, 1, 0, 0, 0, 0], [1] * 7]).bool()
    edited = Without(columns)(weights, mask)
    assert edited.dtype == dtype
    for row in range(4):
        for old, new in zip(weights[row].reshape(-1, 7), edited[row].reshape(-1, 7), strict=True):
            left = [0.0 if gone else float(weight) for gone, weight in zip(columns[row], old, strict=True)]
            total = sum(left)
            expected = [weight / total if total else 0.0 for weight in left]
            assert new.tolist() == pytest.approx(expected, rel=1e-2 if dtype == torch.bfloat16 else 1e-5, abs=1e-6)


def test_without_takes_the_same_places_from_each_row_of_a_text() -> None:
    weights, _, rows, seen = heads_of_places()
    columns = torch.tensor([[0, 1, 0, 0, 1, 0, 0], [1] + [0] * 6, [1, 1, 0, 0, 0, 0, 0], [0] * 7]).bool()
    edited = stacked(Without(columns)(rows, seen))
    for row, head, place in [(b, h, q) for b in range(4) for h in range(3) for q in range(7)]:
        left = torch.where(columns[row], 0.0, weights[row, head, place])
        torch.testing.assert_close(edited[row, head, place], left / left.sum() if left.sum() > 0 else left)
    assert (edited[1] == 0).all()  # its only place is taken out


def test_what_is_given_for_texts_is_given_to_each_of_their_places() -> None:
    _, may, rows, seen = heads_of_places()
    generator = torch.Generator().manual_seed(3)
    texts, places, heads = (torch.rand(4, *shape, 7, generator=generator) for shape in ((), (7,), (3, 7)))
    for given, expected in (
        (texts, texts[:, None, None].expand(4, 3, 7, 7)),
        (places, places[:, None].expand(4, 3, 7, 7)),
        (heads, heads),
        (heads[:, :1], heads[:, :1].expand(4, 3, 7, 7)),
        (places[:, :1], places[:, None, :1].expand(4, 3, 7, 7)),
    ):
        assert torch.equal(stacked(Replace(given)(rows, seen)), expected)
    first = stacked(OneHot(torch.zeros(4).long())(rows, seen))
    assert (first[may.any(-1)[:, None].expand(4, 3, 7)][:, 0] == 1).all()


@pytest.mark.parametrize("edit", [Within(uniform, heads=[1, 3]), placed(Prune([(0, 3)]), 0)])
def test_a_head_that_is_not_there_is_refused(edit: Edit) -> None:
    with pytest.raises(AssayError, match=r"^The edit names head 3, but a layer has heads 0 to 2\.$"):
        edit(*attention(3, 5))
    with pytest.raises(AssayError, match="this attention has none"):
        edit(*attention())


@pytest.mark.parametrize("edit", [Within(uniform, layers=[0]), Prune([(0, 0)])])
def test_layers_of_an_attention_that_is_the_only_one_are_refused(edit: Edit) -> None:
    with pytest.raises(AssayError, match="placed in layers"):
        edit(*attention(3, 5))


@pytest.mark.parametrize("make", [lambda: Within(uniform, [-1]), lambda: Within(uniform, None, [-2])])
def test_negative_numbers_are_refused(make: Callable[[], Edit]) -> None:
    with pytest.raises(AssayError, match="at least 0"):
        make()
    with pytest.raises(AssayError, match="at least 0"):
        Prune([(0, -1)])


def test_slopes_go_through_the_weights_that_stay() -> None:
    weights, mask = attention(3, 5)
    weights.requires_grad_()
    edited = placed(Within(Prune([(1, 0)]), heads=[0, 1]), 1)(weights, mask)
    (gradient,) = torch.autograd.grad(edited.sum(), weights)
    assert (gradient[:, 0] == 0).all() and (gradient[:, 1:] == 1).all()
