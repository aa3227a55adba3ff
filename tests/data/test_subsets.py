"""A part of a corpus to learn from."""

from __future__ import annotations

import pytest

from assay.data.examples import Corpus, Example, thinned
from assay.errors import AssayError

EVERY = tuple(Example(f"text {number}", number % 2) for number in range(130))
CORPUS = Corpus("invented", ("no", "yes"), EVERY[:100], EVERY[100:120], EVERY[120:])


def test_so_many_texts_are_drawn_and_dev_texts_in_proportion():
    part = thinned(CORPUS, 30, seed=1)
    assert len(part.train) == 30
    assert len(part.dev) == 6
    assert part.test == CORPUS.test
    assert set(part.train) < set(CORPUS.train)
    assert list(part.train) == sorted(part.train, key=CORPUS.train.index)


def test_the_seed_decides_what_is_drawn():
    assert thinned(CORPUS, 30, seed=1) == thinned(CORPUS, 30, seed=1)
    assert thinned(CORPUS, 30, seed=1).train != thinned(CORPUS, 30, seed=2).train


def test_a_corpus_with_no_more_texts_stays_whole():
    assert thinned(CORPUS, 100, seed=0) == CORPUS
    assert len(thinned(CORPUS, 1, seed=0).dev) == 1


def test_nothing_to_train_on_is_refused():
    with pytest.raises(AssayError, match="at least 1"):
        thinned(CORPUS, 0, seed=0)
