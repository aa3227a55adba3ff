"""Edits: distributions over real tokens, whatever the padding, the queries and the device."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from assay.errors import AssayError
from assay.intervene import EDITS, OneHot, Permute, Replace, uniform

LENGTHS = torch.tensor([7, 1, 4, 6])


def attention(*queries: int, tokens: int = 7) -> tuple[Tensor, Tensor]:
    mask = torch.arange(tokens) < LENGTHS[:, None]
    wide = mask.reshape(4, *[1] * len(queries), tokens)
    scores = torch.randn(4, *queries, tokens, generator=torch.Generator().manual_seed(1))
    return scores.masked_fill(~wide, -torch.inf).softmax(-1), mask


@pytest.mark.parametrize("name", EDITS)
@pytest.mark.parametrize("queries", [(), (3,), (2, 3)])
def test_edits_return_distributions_over_real_tokens(name: str, queries: tuple[int, ...]) -> None:
    weights, mask = attention(*queries)
    edited = EDITS[name](attention()[0])(weights, mask)
    assert edited.shape == weights.shape
    assert edited.dtype == weights.dtype
    assert torch.allclose(edited.sum(-1), torch.ones(edited.shape[:-1]))
    assert (edited >= 0).all()
    assert (edited.masked_select(~mask.reshape(4, *[1] * len(queries), 7)) == 0).all()


@pytest.mark.parametrize("name", EDITS)
def test_edits_leave_their_input_alone(name: str) -> None:
    weights, mask = attention(3)
    before = weights.clone()
    EDITS[name](attention()[0])(weights, mask)
    assert torch.equal(weights, before)


@pytest.mark.parametrize("name", EDITS)
def test_wider_padding_changes_nothing(name: str) -> None:
    weights, mask = attention()
    wider = torch.nn.functional.pad(weights, (0, 5))
    edited = EDITS[name](weights)(weights, mask)
    again = EDITS[name](wider)(wider, torch.nn.functional.pad(mask, (0, 5)))
    assert torch.equal(torch.nn.functional.pad(edited, (0, 5)), again)


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
