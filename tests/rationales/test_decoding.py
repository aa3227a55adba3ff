"""What is read when nothing is left to chance, against loops over each text."""

from __future__ import annotations

from math import ceil

import pytest
import torch

from assay.errors import AssayError
from assay.rationales.units import Decoding

RATES = (0.05, 0.2, 0.34, 1.0)


def chances(seed: int = 0):
    """Chances of 7 texts of 1 to 9 units with 2 masks each, 0 on padding."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.tensor([1, 9, 5, 2, 7, 3, 9])
    mask = torch.arange(9) < lengths[:, None]
    return torch.rand(7, 2, 9, generator=generator, dtype=torch.float64) * mask[:, None], mask


@pytest.mark.parametrize("rate", RATES)
def test_the_top_units_are_the_likeliest_of_each_text(rate: float) -> None:
    chance, mask = chances()
    kept = Decoding("top", rate)(chance, mask)
    for text in range(7):
        length = int(mask[text].sum())
        wanted = max(1, ceil(rate * length - 1e-9))
        for row in range(2):
            order = sorted(range(length), key=lambda unit: -float(chance[text, row, unit]))
            expected = torch.zeros(9, dtype=torch.float64)
            expected[order[:wanted]] = 1
            assert torch.equal(kept[text, row], expected)


@pytest.mark.parametrize("rate", RATES)
def test_the_window_is_the_stretch_with_the_highest_sum(rate: float) -> None:
    chance, mask = chances()
    kept = Decoding("window", rate)(chance, mask)
    for text in range(7):
        length = int(mask[text].sum())
        wanted = max(1, ceil(rate * length - 1e-9))
        sums = [float(chance[text, 1, start : start + wanted].sum()) for start in range(length - wanted + 1)]
        start = max(range(len(sums)), key=sums.__getitem__)
        expected = torch.zeros(9, dtype=torch.float64)
        expected[start : start + wanted] = 1
        assert torch.equal(kept[text, 1], expected)


def test_a_threshold_keeps_what_is_likelier_than_not() -> None:
    chance, mask = chances()
    assert torch.equal(Decoding("threshold")(chance, mask), (chance > 0.5).double())


@pytest.mark.parametrize("rule", ["top", "window"])
def test_of_equal_chances_the_earlier_is_read_and_padding_never_is(rule: str) -> None:
    mask = torch.arange(6) < torch.tensor([[6], [4]])
    for value in (0.0, 0.5, 1.0):
        kept = Decoding(rule, 0.5)(torch.full((2, 1, 6), value) * mask[:, None], mask)
        assert kept[:, 0].tolist() == [[1, 1, 1, 0, 0, 0], [1, 1, 0, 0, 0, 0]]


def test_wider_padding_changes_no_choice() -> None:
    chance, mask = chances()
    for rule in ("top", "window", "threshold"):
        narrow = Decoding(rule, 0.3)(chance, mask)
        wide = Decoding(rule, 0.3)(torch.nn.functional.pad(chance, (0, 4)), torch.nn.functional.pad(mask, (0, 4)))
        assert torch.equal(wide[..., :9], narrow) and not wide[..., 9:].any()


def test_unknown_rules_and_impossible_rates_are_refused() -> None:
    with pytest.raises(AssayError, match="top"):
        Decoding("best")
    for rate in (0.0, 1.5):
        with pytest.raises(AssayError):
            Decoding("top", rate)
