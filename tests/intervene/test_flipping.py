"""Sets that change the decision, by search: they do change it, and brute force says how few would be enough."""

from __future__ import annotations

from itertools import combinations

import pytest
import torch

from assay.intervene.pooled_attention import FlipSearch


class Answers:
    """A made-up model: items have votes, and pairs of items have more."""

    def __init__(self, items: int, classes: int, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.votes = torch.randn(items, classes, generator=generator, dtype=torch.float64)
        self.pairs = torch.randn(items, items, classes, generator=generator, dtype=torch.float64) / items
        self.read = 0

    def __call__(self, erased):
        self.read += len(erased)
        kept = (~erased).double()
        both = torch.einsum("vi,vj,ijc->vc", kept, kept, self.pairs)
        return (kept @ self.votes + both).softmax(-1)

    def predicted(self) -> int:
        return int(self(torch.zeros(1, len(self.votes), dtype=torch.bool)).argmax())


def erased(items: int, chosen) -> torch.Tensor:
    flags = torch.zeros(1, items, dtype=torch.bool)
    flags[0, list(chosen)] = True
    return flags


def fewest(answers: Answers) -> int | None:
    """The size of a smallest set that changes the decision, by trying all."""
    items, predicted = len(answers.votes), answers.predicted()
    for size in range(1, items + 1):
        for chosen in combinations(range(items), size):
            if int(answers(erased(items, chosen)).argmax()) != predicted:
                return size
    return None


@pytest.mark.parametrize("seed", range(12))
def test_what_is_found_changes_the_decision_and_nothing_of_it_can_be_given_back(seed) -> None:
    answers = Answers(7, 3, seed)
    predicted, least = answers.predicted(), fewest(answers)
    found = FlipSearch(answers, predicted)(torch.zeros(7))
    assert least is not None
    assert found is not None
    assert int(answers(erased(7, found)).argmax()) != predicted
    assert len(found) >= least
    for item in found:
        rest = [each for each in found if each != item]
        assert int(answers(erased(7, rest)).argmax()) == predicted
    if least == 1:
        assert len(found) == 1


def test_the_search_mostly_needs_no_more_than_is_needed() -> None:
    sizes = []
    for seed in range(20):
        answers = Answers(7, 3, seed)
        sizes.append(len(FlipSearch(answers, answers.predicted())(torch.zeros(7))) - fewest(answers))
    assert sum(size == 0 for size in sizes) >= 15


def test_nothing_is_found_where_nothing_changes_the_decision() -> None:
    assert FlipSearch(lambda erased: torch.tensor([[0.6, 0.4]]).expand(len(erased), -1), 0)(torch.zeros(5)) is None


def test_a_tie_within_rounding_is_no_change() -> None:
    found = FlipSearch(lambda erased: torch.tensor([[0.5, 0.5 + 1e-8]]).expand(len(erased), -1), 0)(torch.zeros(5))
    assert found is None


def test_a_long_text_is_read_a_bounded_number_of_times_down_the_given_ranking() -> None:
    answers = Answers(400, 2, 0)
    predicted = answers.predicted()
    answers.read = 0
    ranking = answers.votes[:, predicted] - answers.votes[:, 1 - predicted]
    found = FlipSearch(answers, predicted, versions=60)(ranking)
    assert found is not None
    assert int(answers(erased(400, found)).argmax()) != predicted
    assert answers.read < 60 + 2 * 60 + 400
