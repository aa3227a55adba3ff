"""Costs of concepts, in closed form."""

from __future__ import annotations

import math
from itertools import product

import pytest
import torch

from assay.rationales.losses import likeness, overlap
from assay.rationales.players import Concepts, Rules
from assay.rationales.relaxations import RELAXATIONS, Excerpt, Window
from assay.rationales.units import Decoding

MASK = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])


def scores(parameters: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(2, 3, 6, parameters, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def windows(theta: torch.Tensor, longest: int) -> dict[tuple[int, int], float]:
    """The probability of each window of one mask of one text, written out."""
    units = len(theta)
    allowed = [(i, j) for i, j in product(range(units), repeat=2) if 0 <= j - i < longest]
    weight = {(i, j): math.exp(float(theta[i, 0] + theta[j, 1])) for i, j in allowed}
    return {window: each / sum(weight.values()) for window, each in weight.items()}


def test_masks_without_a_word_in_common_cost_nothing_and_shared_words_cost_their_square():
    apart = torch.eye(3, dtype=torch.float64).repeat_interleave(2, dim=1)[None]  # three masks of two words each
    two = torch.tensor([2.0], dtype=torch.float64)
    assert overlap(apart, two) == 0
    same = apart.clone()
    same[0, 1] = same[0, 0]
    torch.testing.assert_close(overlap(same, two), torch.tensor([2 * (2 / 2) ** 2 / 3], dtype=torch.float64))
    longer = torch.ones(1, 1, 6, dtype=torch.float64)  # one mask with six words instead of two
    assert overlap(longer, two) == (6 / 2 - 1) ** 2


def test_likeness_is_the_mean_cosine_between_concepts():
    vectors = torch.tensor([[[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]]], dtype=torch.float64)
    torch.testing.assert_close(likeness(vectors), torch.tensor([2 * 0.5**0.5 / 3], dtype=torch.float64))
    assert likeness(vectors[:, :1]) == 0


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_an_excerpt_is_one_window_and_its_chances_are_those_of_all_windows_together(temperature):
    relaxation, theta = Excerpt(3, temperature), scores(2)
    drawn = relaxation.draw(theta, MASK)
    for row, mask in product(range(2), range(3)):
        length = int(MASK[row].sum())
        likely = windows(theta[row, mask, :length], 3)
        expected = [sum(p for (i, j), p in likely.items() if i <= place <= j) for place in range(length)]
        torch.testing.assert_close(drawn.chance[row, mask, :length], torch.tensor(expected, dtype=torch.float64))
        there = drawn.z[row, mask].round().nonzero()[:, 0].tolist()
        assert there == list(range(there[0], there[-1] + 1)) and len(there) <= 3 and there[-1] < length
    if temperature == 0:
        assert drawn.log_probability is not None
        chosen = [[drawn.z[row, mask].nonzero()[:, 0] for mask in range(3)] for row in range(2)]
        for row, some in enumerate(chosen):
            likely = [windows(theta[row, mask, : int(MASK[row].sum())], 3) for mask in range(3)]
            expected = sum(math.log(each[int(of[0]), int(of[-1])]) for each, of in zip(likely, some, strict=True))
            assert float(drawn.log_probability[row]) == pytest.approx(expected, abs=1e-12)


def test_windows_are_drawn_as_often_as_they_are_likely():
    torch.manual_seed(3)
    theta = scores(2)[:1].expand(4000, -1, -1, -1)
    for relaxation in (Excerpt(3), Excerpt(3, 1.0), Window(0.4, 0.0), Window(0.4)):
        given = theta[..., : relaxation.parameters]
        drawn = relaxation.draw(given, MASK[:1].expand(4000, -1))
        expected = relaxation.chance(given[:1], MASK[:1])[0]
        error = (expected * (1 - expected) / 4000).sqrt()
        assert ((drawn.z.detach().round().mean(0) - expected).abs() <= 4 * error + 1e-9).all()


def test_a_window_has_the_length_that_decoding_gives_it_and_stays_in_the_text():
    relaxation, rule = Window(0.4), Decoding("window", 0.4)
    drawn = relaxation.draw(scores(1), MASK)
    assert torch.equal(drawn.z.round().sum(-1).long(), rule.counts(MASK)[:, None].expand(-1, 3))
    assert not drawn.z[1, :, 4:].any() and not drawn.chance[1, :, 4:].any()
    torch.testing.assert_close(drawn.chance.sum(-1), rule.counts(MASK)[:, None].expand(-1, 3).double())


@pytest.mark.parametrize("relaxation", [Excerpt(2, 1.0), Window(0.3)])
def test_gradients_pass_through_windows_that_have_a_temperature(relaxation):
    theta = scores(relaxation.parameters).requires_grad_()
    value = torch.randn(6, dtype=torch.float64)
    (gradient,) = torch.autograd.grad((relaxation.draw(theta, MASK).z * value).sum(), theta)
    assert gradient.isfinite().all() and gradient[0].abs().sum() > 0 and not gradient[1, :, 4:].any()


def test_rules_with_concepts_survive_being_stored():
    rules = Rules(relaxation=Excerpt(4, 0.5), decoding=Decoding("window", 0.1), masks=5, answers="presence")
    assert Rules.of(rules.json()) == rules
    assert RELAXATIONS["window"] is Window


@pytest.mark.parametrize("weighted", [True, False])
def test_contributions_are_presence_times_votes_and_sum_to_the_logits(weighted):
    module = Concepts(5, 3, 2, weighted).double()
    features, read = torch.randn(4, 3, 5).double(), torch.randn(4, 3, 2).double()
    for decoded in (True, False):
        found = module(features, read, decoded)
        assert torch.equal(found.logits, found.contributions.sum(1))
        votes = module.weights.expand(4, -1, -1) if weighted else read
        torch.testing.assert_close(found.contributions, found.presence.round()[..., None] * votes)
    normed = torch.nn.functional.layer_norm(features, (5,))
    by_hand = torch.stack([normed[:, k] @ module.presence.weight[k] + module.presence.bias[k] for k in range(3)], 1)
    torch.testing.assert_close(found.chance, by_hand.sigmoid())
