"""Random subsets of a corpus, to shorten training."""

from __future__ import annotations

import random
from dataclasses import replace

from assay.data.examples import Corpus, Example
from assay.errors import AssayError


def thinned(corpus: Corpus, number: int, seed: int) -> Corpus:
    """The corpus with that number of training texts, drawn by the seed, and dev texts in proportion."""
    if number < 1:
        raise AssayError(f"The number of training texts must be at least 1, got {number}.")
    share = number / max(1, len(corpus.train))
    if share >= 1:
        return corpus
    train, dev = _drawn(corpus.train, number, seed), _drawn(corpus.dev, max(1, round(share * len(corpus.dev))), seed)
    return replace(corpus, train=train, dev=dev)


def _drawn(examples: tuple[Example, ...], number: int, seed: int) -> tuple[Example, ...]:
    """Some of the examples, in their order."""
    indices = random.Random(seed).sample(range(len(examples)), min(number, len(examples)))
    return tuple(examples[index] for index in sorted(indices))
