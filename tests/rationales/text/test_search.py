"""Beam search against a plain greedy loop and against all sentences there are."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import Tensor

from assay.rationales.sequences import END_ID, FIRST, NEVER, EncoderDecoder, Row, Sequences, Sizes, search, together

WORDS, LONGEST = 7, 3


def setting(seed: int) -> tuple[EncoderDecoder, Sequences]:
    torch.manual_seed(seed)
    network = EncoderDecoder(Sizes(6, 4, 1, 0.0), WORDS).double().eval()
    with torch.no_grad():
        network.bias.normal_(std=1.0)
    sources = [torch.tensor([4, 7, 5]), torch.tensor([6]), torch.tensor([5, 5, 4, 6])]
    return network, together([Row(source, torch.tensor([END_ID]), ("yak",) * bool(7 in source)) for source in sources])


def alone(batch: Sequences, place: int) -> Sequences:
    length = int(batch.mask[place].sum())
    rows = slice(place, place + 1)
    return Sequences(batch.source[rows, :length], batch.mask[rows, :length], batch.target[rows], batch.extra)


def greedy(network: EncoderDecoder, batch: Sequences) -> tuple[list[int], float]:
    """One example, word by word."""
    memory = network.encode(batch)
    hidden, last, words, total = memory.begin, FIRST, [], 0.0
    while len(words) < LONGEST and last != END_ID:
        following, hidden = network.following(memory, torch.tensor([last]), hidden)
        following[:, NEVER] = -torch.inf
        last = int(following[0].argmax())
        words.append(last)
        total += float(following[0, last])
    return words, total


def likelihood(network: EncoderDecoder, batch: Sequences, words: tuple[int, ...]) -> float:
    return float(network.likelihood(Sequences(batch.source, batch.mask, torch.tensor([words]), batch.extra)).sum())


def sentences(words: int) -> list[tuple[int, ...]]:
    """All that can be written: what ends, and what is cut."""
    open_words = [word for word in range(words) if word not in (*NEVER, END_ID)]
    ended = [(*start, END_ID) for length in range(LONGEST) for start in product(open_words, repeat=length)]
    return ended + list(product(open_words, repeat=LONGEST))


def written(row: Tensor) -> list[int]:
    return [word for word in row.tolist() if word]


@pytest.mark.parametrize("seed", range(3))
@torch.no_grad()
def test_a_beam_of_one_is_greedy(seed: int) -> None:
    network, batch = setting(seed)
    found, scores = search(network, batch, beams=1, longest=LONGEST)
    for place in range(len(batch.source)):
        words, total = greedy(network, alone(batch, place))
        assert written(found[place]) == words
        assert float(scores[place]) == pytest.approx(total, abs=1e-10)


@pytest.mark.parametrize("seed", range(3))
@torch.no_grad()
def test_a_beam_as_wide_as_all_sentences_finds_the_best_one(seed: int) -> None:
    network, batch = setting(seed)
    found, scores = search(network, batch, beams=40, longest=LONGEST)
    greedy_scores = search(network, batch, beams=1, longest=LONGEST)[1]
    for place in range(len(batch.source)):
        one = alone(batch, place)
        likely = {words: likelihood(network, one, words) for words in sentences(WORDS + batch.extra)}
        best = max(likely, key=likely.__getitem__)
        assert written(found[place]) == list(best)
        assert float(scores[place]) == pytest.approx(likely[best], abs=1e-8)
        assert float(scores[place]) >= float(greedy_scores[place]) - 1e-12


@torch.no_grad()
def test_a_score_is_the_likelihood_of_what_was_written_and_padding_changes_nothing() -> None:
    network, batch = setting(4)
    for beams in (1, 3):
        found, scores = search(network, batch, beams, longest=6)
        again, same = search(network, batch, beams, longest=6)
        assert torch.equal(found, again) and torch.equal(scores, same)
        for place in range(len(batch.source)):
            one = alone(batch, place)
            assert float(scores[place]) == pytest.approx(
                likelihood(network, one, tuple(written(found[place]))), abs=1e-8
            )
            single, score = search(network, one, beams, longest=6)
            assert written(single[0]) == written(found[place])
            assert float(score[0]) == pytest.approx(float(scores[place]), abs=1e-10)


@torch.no_grad()
def test_nothing_follows_the_end_and_nothing_unknown_is_written() -> None:
    network, batch = setting(2)
    found, _ = search(network, batch, beams=2, longest=8)
    for row in found.tolist():
        if END_ID in row:
            assert not any(row[row.index(END_ID) + 1 :])
        assert not {1, 2} & set(row)
