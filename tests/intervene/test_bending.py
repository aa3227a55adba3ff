"""Weights set by hand: against a loop over single rows, and what must not change does not."""

from __future__ import annotations

import pytest
import torch

from assay.intervene.edits import Attending, Bend, Within, uniform
from assay.intervene.stack_attention import Shuffled


def distributions(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).softmax(-1)


def by_hand(row: list[float], allowed: list[bool], owners: list[int], given: dict[int, float]) -> list[float]:
    """One distribution with some weights set, in plain Python."""

    def shared(places: list[int], share: float) -> dict[int, float]:
        mass = sum(row[place] for place in places)
        return {place: share * row[place] / mass if mass > 0 else share / len(places) for place in places}

    groups = {item: [at for at, owner in enumerate(owners) if owner == item and allowed[at]] for item in given}
    groups = {item: places for item, places in groups.items() if places}
    free = [at for at, owner in enumerate(owners) if allowed[at] and owner not in groups]
    left = 1 - sum(given[item] for item in groups)
    scale = 1.0 if free or left == 1 else 1 / (1 - left)
    new = shared(free, left) if free else {}
    for item, places in groups.items():
        new |= shared(places, scale * given[item])
    return [new.get(at, 0.0) for at in range(len(row))]


OWNERS = [-1, 0, 1, 1, 2, -1]
CASES = {
    "one word": {0: 0.6},
    "a word in two subwords": {1: 0.25},
    "two words": {0: 0.1, 2: 0.5},
    "all that there is": {0: 1.0},
    "nothing": {1: 0.0},
    "every word": {0: 0.1, 1: 0.2, 2: 0.3},
}


@pytest.mark.parametrize("given", CASES.values(), ids=CASES)
def test_every_row_is_what_a_loop_makes_of_it(given) -> None:
    weights = distributions(2, 3, 6, 6)
    weights[0, 0, 0] = torch.tensor([0.5, 0, 0, 0, 0, 0.5], dtype=torch.float64)  # what is set had nothing
    weights[0, 0, 1] = torch.tensor([0, 0.5, 0.5, 0, 0, 0], dtype=torch.float64)  # what is left may have nothing
    mask = torch.ones(2, 6, dtype=torch.bool)
    mask[1, 5] = False
    found = Bend(torch.tensor([OWNERS, OWNERS]), given)(weights, mask)
    for text in range(2):
        for row, new in zip(weights[text].reshape(-1, 6), found[text].reshape(-1, 6), strict=True):
            expected = by_hand(row.tolist(), mask[text].tolist(), OWNERS, given)
            torch.testing.assert_close(new, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-12)
            assert new.sum() == pytest.approx(1)


def test_places_that_see_only_some_others_are_rows_of_their_own() -> None:
    """As in a model that reads from left to right: a word that is not seen yet cannot be set."""
    weights, allowed = distributions(4, 2, 4), torch.ones(4, 4, dtype=torch.bool).tril()
    weights = weights * allowed[:, None]
    weights = weights / weights.sum(-1, keepdim=True)
    found = Bend(torch.arange(4)[None], {0: 0.3, 2: 0.4})(weights, allowed)
    for place in range(4):
        for head in range(2):
            row = weights[place, head].tolist()
            expected = by_hand(row, allowed[place].tolist(), [0, 1, 2, 3], {0: 0.3, 2: 0.4})
            torch.testing.assert_close(found[place, head], torch.tensor(expected, dtype=torch.float64))
    assert found[0, 0].tolist() == [1, 0, 0, 0]  # it sees nothing but the word that is set


def test_a_row_without_anything_to_attend_to_stays_empty() -> None:
    found = Bend(torch.arange(3)[None], {0: 0.5})(torch.zeros(1, 1, 3), torch.zeros(1, 3, dtype=torch.bool))
    assert not found.any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_weights_too_small_to_divide_by_count_as_none(dtype) -> None:
    weights = torch.tensor([[1e-38, 1 - 1e-38, 0.0]], dtype=dtype)
    found = Bend(torch.arange(3)[None], {1: 0.5})(weights, torch.ones(1, 3, dtype=torch.bool))
    assert found.dtype == dtype
    torch.testing.assert_close(found.float(), torch.tensor([[0.25, 0.5, 0.25]]))


def test_an_edit_for_some_places_leaves_the_others() -> None:
    weights, mask = distributions(1, 2, 4, 4), torch.ones(1, 4, dtype=torch.bool)
    chosen = torch.tensor([[False, True, False, False]])
    together = Attending(uniform, chosen)(weights, mask)
    assert torch.equal(together[:, :, [0, 2, 3]], weights[:, :, [0, 2, 3]])
    assert (together[:, :, 1] == 0.25).all()
    apart = Attending(uniform, chosen)(weights[0].transpose(0, 1), mask.expand(4, -1))
    assert torch.equal(apart, together[0].transpose(0, 1))


def test_an_edit_for_some_places_can_differ_from_layer_to_layer_and_stay_in_one() -> None:
    weights, mask = distributions(1, 2, 4, 4), torch.ones(1, 4, dtype=torch.bool)
    chosen = torch.tensor([[True, True, False, False]])
    edit = Attending(Shuffled(3), chosen)
    for layer in (0, 1):
        expected = Shuffled(3).at(layer)(weights, mask)
        assert torch.equal(edit.at(layer)(weights, mask)[:, :, :2], expected[:, :, :2])
    assert not torch.equal(edit.at(0)(weights, mask), edit.at(1)(weights, mask))
    assert Within(edit, [1]).at(0) is None
    one_head = Within(edit, [1], [0]).at(1)(weights, mask)
    assert torch.equal(one_head[:, 1], weights[:, 1])
    assert torch.equal(one_head[:, 0], edit.at(1)(weights, mask)[:, 0])
    assert Attending(Within(uniform, [2]), chosen).depth == 3
