"""What is selected at once: tokens, spans and sentences, against loops over each text."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from assay.errors import AssayError
from assay.rationales.units import Units
from tests import builders

ALL = (Units(), Units("span", 3), Units("sentence"))


def owners(units: Units, batch, row: int) -> list[int]:
    """The unit of each real token of one text."""
    length = int(batch.lengths[row])
    if units.kind == "sentence":
        return batch.sentences[row, :length].tolist()
    return [place // (1 if units.kind == "token" else units.width) for place in range(length)]


@pytest.mark.parametrize("units", ALL, ids=lambda units: units.kind)
def test_each_token_has_the_unit_that_a_loop_gives_it(units: Units) -> None:
    batch = builders.texts()
    grouping = units(batch)
    for row in range(len(batch)):
        expected = owners(units, batch, row)
        assert grouping.owner[row, : len(expected)].tolist() == expected
        sizes = [expected.count(unit) for unit in range(grouping.mask.shape[1])]
        assert grouping.sizes[row].tolist() == sizes
        assert grouping.mask[row].tolist() == [size > 0 for size in sizes]


@pytest.mark.parametrize("units", ALL, ids=lambda units: units.kind)
def test_numbers_of_units_stand_at_their_tokens_and_states_are_means(units: Units) -> None:
    batch = builders.texts()
    grouping = units(batch)
    numbers = torch.randn(len(batch), 2, grouping.mask.shape[1], dtype=torch.float64)
    states = torch.randn(*batch.ids.shape, 3, dtype=torch.float64)
    spread, pooled = grouping.expanded(numbers), grouping.pooled(states)
    for row in range(len(batch)):
        expected = owners(units, batch, row)
        for place, unit in enumerate(expected):
            assert torch.equal(spread[row, :, place], numbers[row, :, unit])
        for unit in range(grouping.mask.shape[1]):
            places = [place for place, owner in enumerate(expected) if owner == unit]
            mean = states[row, places].mean(0) if places else torch.zeros(3, dtype=torch.float64)
            assert torch.allclose(pooled[row, unit], mean, atol=1e-14)
    assert not spread.transpose(1, 2)[~batch.mask].any()


def test_spans_of_one_token_are_tokens_and_a_text_without_sentences_is_one() -> None:
    plain = builders.batch()
    assert torch.equal(Units("span", 1)(plain).owner, Units()(plain).owner)
    whole = Units("sentence")(replace(plain, sentences=None))
    assert whole.mask.shape == (len(plain), 1) and torch.equal(whole.sizes[:, 0], plain.lengths)


def test_unknown_units_and_empty_spans_are_refused() -> None:
    with pytest.raises(AssayError, match="sentence"):
        Units("paragraph")
    with pytest.raises(AssayError):
        Units("span", 0)
