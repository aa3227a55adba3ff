"""Words that others have marked are read in the subwords that begin in them."""

from __future__ import annotations

import pytest
import torch

from assay.data.batches import collate
from assay.probes.observation import aligned, read_words
from tests import pretrained

TEXT = "Unwatchable, isn't it"
SPANS = ((0, 11), (11, 12), (13, 15), (15, 18), (19, 21))


def test_every_piece_belongs_to_the_word_that_it_begins_in() -> None:
    (row,) = aligned([TEXT], [SPANS], pretrained.tokeniser())
    assert row is not None and row.subwords is not None
    inner = pretrained.tokenizer()
    shown = [
        inner.convert_ids_to_tokens([subword for subword in word if subword >= 0]) for word in row.subwords.tolist()
    ]
    assert shown == [["un", "##w", "##a", "##t", "##c", "##h", "##able"], [","], ["is"], ["##n", "[UNK]", "t"], ["it"]]
    assert (
        torch.cat([word[word >= 0] for word in row.subwords]).tolist()
        == inner(TEXT, add_special_tokens=False)["input_ids"]
    )


def test_a_word_in_which_no_piece_begins_stays_without() -> None:
    (row,) = aligned(["the film"], [((0, 1), (1, 3), (4, 8))], pretrained.tokeniser())
    assert row is not None
    assert read_words(row) == [True, False, True]
    weights = pretrained.pretrained("bert").maps(collate([row]))
    assert weights.shape[-2:] == (3, 3)
    assert not weights[..., 1].any() and not weights[..., 1, :].any()


def test_what_is_longer_than_the_model_reads_is_left_out() -> None:
    long = "a " * 61
    spans = [tuple((2 * position, 2 * position + 1) for position in range(61)), ((0, 1),)]
    rows = aligned([long.strip(), "a"], spans, pretrained.tokeniser())
    assert rows[0] is None and rows[1] is not None


@pytest.mark.parametrize("architecture", ["bert", "gpt2"])
def test_maps_over_the_words_of_others_gather_the_maps_over_pieces(architecture: str) -> None:
    network = pretrained.pretrained(architecture)
    (row,) = aligned([TEXT], [SPANS], pretrained.tokeniser())
    assert row is not None and row.subwords is not None
    counts = (row.subwords >= 0).sum(-1).tolist()
    found = network.maps(collate([row]))[0]
    pieces = pretrained.batch((TEXT,), words=False)
    plain = network.maps(pieces)[0]
    bounds = [sum(counts[:position]) for position in range(len(counts) + 1)]
    for one in range(len(counts)):
        for other in range(len(counts)):
            block = plain[..., bounds[one] : bounds[one + 1], bounds[other] : bounds[other + 1]]
            torch.testing.assert_close(found[..., one, other], block.sum(-1).mean(-1))
