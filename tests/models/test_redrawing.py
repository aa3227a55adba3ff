"""Versions of texts with drawn words, beside the same texts put together by hand and read alone."""

from __future__ import annotations

import pytest
import torch

from assay.data.batches import Tokenised, collate, tokenise
from assay.data.examples import Example
from assay.data.text import TextOptions, Tokeniser
from assay.models.erasure import WORDS, Pool, redrawn_probabilities
from assay.models.store import Opened
from assay.types import Batch
from tests import builders, pretrained

TEXTS = ("not a watchable film", "very unfun", "a good long dull film is good", "bad")


def opened(kind: str) -> Opened:
    if kind == "bert":
        return Opened(pretrained.pretrained("bert", initializer_range=0.3), pretrained.tokeniser(), ("no", "yes"), {})
    tokeniser = Tokeniser.fit(TEXTS, TextOptions(min_count=1))
    model = builders.model(encoder="lstm", dtype=torch.float32)
    return Opened(model, tokeniser, ("no", "yes"), {})


def rows_of(model: Opened) -> list[Tokenised]:
    return tokenise([Example(text, 0) for text in TEXTS], model.tokeniser, 100)[0]


@pytest.mark.parametrize("kind", ["lstm", "bert"])
def test_every_version_is_the_text_with_other_words(kind: str) -> None:
    model = opened(kind)
    rows = rows_of(model)
    pool, batch = Pool.of(rows), collate(rows)
    places = [(row, place) for row in rows for place in range(len(row.ids))]
    assert len(pool) == len(places)
    draw = torch.Generator().manual_seed(3)
    example = torch.tensor([2, 0, 0, 3, 1, 2, 2])
    kept = torch.rand(7, batch.ids.shape[1], generator=draw) < 0.5
    drawn = torch.randint(len(pool), kept.shape, generator=draw)
    with torch.no_grad():
        found = redrawn_probabilities(model.network, batch, pool, example, kept, drawn)
        for version, number in enumerate(example.tolist()):
            whole = [
                (rows[number], place) if kept[version, place] else places[int(drawn[version, place])]
                for place in range(len(rows[number].ids))
            ]
            alone = by_hand(whole)
            expected = model.network(model.network.embed(alone), alone).probabilities[0]
            torch.testing.assert_close(found[version], expected, atol=1e-6, rtol=1e-5)


def by_hand(words: list[tuple[Tokenised, int]]) -> Batch:
    """One text of these words."""
    ids = torch.tensor([[int(row.ids[place]) for row, place in words]])
    mask, pieces = torch.ones_like(ids, dtype=torch.bool), None
    if words[0][0].subwords is not None:
        each = [[int(piece) for piece in row.subwords[place] if piece >= 0] for row, place in words]  # type: ignore[index]
        width = max(map(len, each))
        pieces = torch.tensor([[word + [-1] * (width - len(word)) for word in each]])
    return Batch(ids, mask, torch.tensor([0]), subwords=pieces)


def test_nothing_is_drawn_where_all_is_kept() -> None:
    model = opened("lstm")
    rows = rows_of(model)
    batch = collate(rows)
    everything = torch.ones_like(batch.mask)
    found = redrawn_probabilities(
        model.network, batch, Pool.of(rows), torch.arange(4), everything, torch.zeros_like(batch.ids)
    )
    with torch.no_grad():
        torch.testing.assert_close(found, model.network(model.network.embed(batch), batch).probabilities)


@pytest.mark.parametrize("kind", ["lstm", "bert"])
def test_a_vocabulary_holds_words_and_nothing_special(kind: str) -> None:
    model = opened(kind)
    pool = Pool.of_vocabulary(model)
    assert 0 < len(pool) <= WORDS
    known = {model.tokeniser(["film"])[0].ids[0], model.tokeniser(["good"])[0].ids[0]}
    assert known <= set(pool.ids.tolist())
    if kind == "lstm":
        assert min(pool.ids.tolist()) >= 4
