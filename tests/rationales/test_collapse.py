"""Collapsed selections are told, and others are not."""

import numpy as np
import pytest
import torch

from assay.data.batches import Tokenised
from assay.rationales.measuring import Selected, collapse

FAIR = 0.5


def texts(choose, right=lambda place: place % 10 > 0, count=60):
    """Texts of 10 to 14 words; `choose` says which are selected, by number and ids."""
    random = np.random.default_rng(0)
    found = []
    for place in range(count):
        ids = random.permutation(40)[: 10 + place % 5]
        row = Tokenised(
            place, torch.tensor(ids), torch.zeros(len(ids), 2).int(), torch.zeros(len(ids)).long(), place % 2
        )
        kept = choose(random, ids)
        said = np.eye(2)[place % 2 if right(place) else 1 - place % 2]
        found.append(Selected(row, kept, kept.astype(float), said, {}))
    return found


def scattered(random, ids):
    """Three words anywhere."""
    kept = np.zeros(len(ids), dtype=bool)
    kept[random.permutation(len(ids))[:3]] = True
    return kept


def test_a_selection_here_and_there_that_decides_well_has_not_collapsed():
    assert collapse(texts(scattered), [0.4, 0.25], FAIR) == []


@pytest.mark.parametrize(("share", "word"), [(0.99, "99%"), (0.001, "hardly any")])
def test_what_is_drawn_in_the_last_epoch_is_told(share, word):
    (told,) = collapse(texts(scattered), [0.3, share], FAIR)
    assert word in told
    assert collapse(texts(scattered), [share, 0.3], FAIR) == []


@pytest.mark.parametrize(
    ("choose", "word"),
    [
        (lambda random, ids: np.ones(len(ids), dtype=bool), "every word"),
        (lambda random, ids: np.zeros(len(ids), dtype=bool), "no word"),
        (lambda random, ids: np.arange(len(ids)) < 2, "from the start"),
        (lambda random, ids: np.arange(len(ids)) >= len(ids) - 2, "from the end"),
    ],
)
def test_selections_that_are_the_same_for_every_text_are_told(choose, word):
    (told,) = collapse(texts(choose), [0.2], FAIR)
    assert word in told


def test_one_word_that_is_all_that_is_selected_is_told():
    def mark(random, ids):
        place = int(random.integers(len(ids)))
        ids[place] = 99
        return np.arange(len(ids)) == place

    found = texts(mark)
    for each in found:
        each.row.ids[torch.tensor(each.kept)] = 99
    (told,) = collapse(found, [0.1], FAIR)
    assert "One word makes up 100%" in told


def test_decisions_like_those_of_a_guess_are_told():
    (told,) = collapse(texts(scattered, right=lambda place: place % 4 < 2), [0.2], FAIR)
    assert "no better than always guessing" in told
