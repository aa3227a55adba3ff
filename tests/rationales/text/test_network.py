"""The encoder–decoder: padding changes nothing, words of the source can be copied, and its two readings agree."""

from __future__ import annotations

import pytest
import torch

from assay.data.text import TextOptions, Tokeniser
from assay.errors import AssayError
from assay.rationales.sequences import END_ID, FIRST, UNKNOWN_ID, EncoderDecoder, Pair, Row, Sizes, encoded, together

WORDS = 9
SIZES = Sizes(embedding=6, hidden=4, layers=1, dropout=0.0)


def network(dtype: torch.dtype = torch.float64) -> EncoderDecoder:
    torch.manual_seed(1)
    return EncoderDecoder(SIZES, WORDS).to(dtype).eval()


def rows() -> list[Row]:
    return [
        Row(torch.tensor([5, 9, 6, 10]), torch.tensor([10, 5, END_ID]), ("zebra", "yak")),
        Row(torch.tensor([7]), torch.tensor([8, 7, 7, 4, END_ID])),
        Row(torch.tensor([4, 4, 8, 5, 6, 7]), torch.tensor([6])),
    ]


def test_padding_changes_nothing() -> None:
    model, given = network(), rows()
    batched = model.likelihood(together(given))
    for place, row in enumerate(given):
        alone = model.likelihood(together([row]))[0]
        torch.testing.assert_close(batched[place, : len(alone)], alone, atol=1e-12, rtol=0)
        assert (batched[place, len(alone) :] == 0).all()


def test_every_distribution_over_words_and_strangers_sums_to_one() -> None:
    model, batch = network(), together(rows())
    memory = model.encode(batch)
    following, _ = model.following(memory, torch.tensor([FIRST, 5, 10]), memory.begin)
    assert following.shape == (3, WORDS + 2)
    torch.testing.assert_close(following.exp().sum(-1), torch.ones(3).double(), atol=1e-6, rtol=0)


def test_a_target_read_at_once_is_as_likely_as_one_read_word_by_word() -> None:
    model, batch = network(), together(rows())
    memory, last = model.encode(batch), torch.full((3,), FIRST)
    hidden, found = memory.begin, []
    for place in range(batch.target.shape[1]):
        following, hidden = model.following(memory, last, hidden)
        last = batch.target[:, place]
        found.append(following.gather(1, last[:, None])[:, 0].masked_fill(last == 0, 0.0))
    torch.testing.assert_close(torch.stack(found, 1), model.likelihood(batch), atol=1e-10, rtol=0)


def test_a_word_of_the_source_gets_its_share_of_attention_and_no_other_stranger_does() -> None:
    model, batch = network(), together(rows()[:1])
    with torch.no_grad():
        model.gate.weight.zero_()
        model.gate.bias.fill_(-60.0)  # everything is copied
    memory = model.encode(batch)
    _, attention, _, _ = model.decode(memory, torch.tensor([[FIRST]]), memory.begin)
    following, _ = model.following(memory, torch.tensor([FIRST]), memory.begin)
    torch.testing.assert_close(following[0, [5, 9, 6, 10]].exp(), attention[0, 0], atol=1e-8, rtol=0)
    assert following[0, 7].exp() < 1e-8


def test_the_gradient_agrees_with_finite_differences() -> None:
    model, batch = network(), together(rows())
    loss = -model.likelihood(batch).sum()
    loss.backward()
    for parameter, place in ((model.embedding.weight, (5, 2)), (model.query.weight, (1, 3)), (model.gate.bias, (0,))):
        assert parameter.grad is not None
        with torch.no_grad():
            losses = []
            for step in (1e-6, -2e-6):
                parameter[place] += step
                losses.append(-model.likelihood(batch).sum())
            parameter[place] += 1e-6
        assert float((losses[0] - losses[1]) / 2e-6) == pytest.approx(float(parameter.grad[place]), abs=1e-6)


def test_unknown_words_of_a_target_are_known_where_the_source_has_them() -> None:
    tokeniser = Tokeniser.fit(["the cat sat"] * 2, TextOptions())
    size = len(tokeniser.vocabulary)
    (row,) = encoded([Pair("The Zebra sat the yak zebra", "the zebra yak gnu", whole=True)], tokeniser)
    assert row.oov == ("zebra", "yak")
    assert row.source.tolist()[1::2] == [size, tokeniser.inner.token_to_id("the"), size]
    assert row.target.tolist()[1:] == [size, size + 1, UNKNOWN_ID, END_ID]
    (part,) = encoded([Pair("the cat", "the", whole=False)], tokeniser)
    assert part.target.tolist() == [tokeniser.inner.token_to_id("the")]


def test_bfloat16_is_close() -> None:
    model, batch = network(torch.float32), together(rows())
    exact = model.likelihood(batch)
    with torch.autocast("cpu", torch.bfloat16):
        rough = model.likelihood(batch)
    assert rough.dtype == torch.float32
    torch.testing.assert_close(rough, exact, atol=0.05, rtol=0.05)


def test_odd_sizes_are_refused() -> None:
    with pytest.raises(AssayError, match="Sizes are whole numbers"):
        Sizes(hidden=3)
