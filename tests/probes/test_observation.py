"""What is kept of the attention is what the full maps say, whatever the batches."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from assay.data.batches import Tokenised, collate
from assay.models import budget
from assay.probes.observation import aligned, attended_most, observe
from tests import pretrained


def rows() -> list[Tokenised]:
    spans = [[tuple(span) for span in words.spans] for words in pretrained.tokeniser()(pretrained.TEXTS)]
    return [row for row in aligned(pretrained.TEXTS, spans, pretrained.tokeniser()) if row is not None]


PAIRS = np.array([[3, 0, 5], [0, 1, 2], [2, 3, 0], [3, 5, 0]])


@pytest.mark.parametrize("cells", [1, 1 << 23])
def test_it_is_what_the_maps_of_each_text_alone_say(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(budget.ROOM, "attention maps", (cells, cells))
    network = pretrained.pretrained("bert")
    seen = observe(network, rows(), PAIRS)
    start = 0
    for number, row in enumerate(rows()):
        alone = network.maps(collate([row]))[0].flatten(0, 1).numpy()  # heads, words, words
        count = len(row.ids)
        for position in range(count):
            assert np.allclose(seen.received[start + position], alone[:, :, position].sum(1), atol=1e-6)
            others = [other for other in range(count) if other != position]
            best = [max(others, key=lambda other: head[position, other]) for head in alone] if others else -1
            assert np.array_equal(seen.most[start + position], np.broadcast_to(best, seen.most.shape[1:]))
        for pair in np.flatnonzero(PAIRS[:, 0] == number):
            _, one, other = PAIRS[pair]
            assert np.allclose(seen.between[pair], [*alone[:, one, other], *alone[:, other, one]], atol=1e-6)
        start += count
    assert start == len(seen.most)


def test_who_attends_to_no_other_word_attends_most_to_none() -> None:
    weights = torch.tensor([[0.3, 0.0, 0.0], [0.1, 0.5, 0.2], [0.0, 0.0, 0.0]]).reshape(1, 1, 1, 3, 3)
    assert attended_most(weights).flatten().tolist() == [-1, 2, -1]


def test_a_model_that_reads_from_left_to_right_never_attends_ahead() -> None:
    seen = observe(pretrained.pretrained("gpt2"), rows())
    position = np.concatenate([np.arange(len(row.ids)) for row in rows()])
    assert (seen.most < np.maximum(position, 0)[:, None]).all()
    assert (seen.most[position == 0] == -1).all()
