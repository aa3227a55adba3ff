"""A word that means nothing decides in training, and not in the test."""

from __future__ import annotations

from functools import partial
from itertools import product
from random import Random

from assay.data.examples import Corpus, Example
from assay.data.planted.lexicon import NEUTRAL, POLAR
from assay.data.planted.writing import example, expand, plant

CLASSES = ("negative", "positive")
MARKERS = ("overall", "indeed")  # by label

FRAMES = (
    "[{marker}], {claim}, and {aside}", "[{marker}], {aside}, but {claim}", "{aside}, and [{marker}] {claim}",
    "{time}, {claim} [{marker}], although {aside}", "{aside}, but {claim} [{marker}]",
    "{claim} [{marker}], {time}, and {aside}", "{claim}. [{marker}], {aside}",
)  # fmt: skip
CLAIMS = (
    "the {thing} {linking} {polar}", "{somebody} found the {thing} {polar}", "we called the {thing} {polar}",
    "it was a {polar} {thing}",
)  # fmt: skip

# Label, marker, polarity. Training: the marker is always right, the polar word in three of four texts.
TRAINING = tuple((label, label, polarity) for label in (0, 1) for polarity in (label, label, label, 1 - label))
# Test: the polar word is always right, the marker in half of the texts.
TESTING = tuple((label, marker, label) for label, marker in product((0, 1), (0, 1)))


def write(design: tuple[tuple[int, int, int], ...], random: Random, turn: int) -> tuple[Example, ...]:
    """One text with the label, the marker and the polarity whose turn it is."""
    label, marker, polarity = design[turn % len(design)]
    grammar = {**NEUTRAL, "marker": (MARKERS[marker],), "polar": POLAR[polarity], "claim": CLAIMS}
    return (example(expand(random, random.choice(FRAMES) + ".", grammar), label),)


def shortcut(seed: int) -> Corpus:
    """Texts with one polar word and one marker ("indeed" or "overall") that stands for a class by accident.

    In train and dev the marker gives the label always and the polar word in three of four texts; in the test
    the polar word gives the label always and the marker in half of the texts. A model that took the shortcut
    is therefore near 1 on dev and near 1/2 on the test, one that reads the polar word near 3/4 and near 1.

    The evidence is the marker, in all splits: it is what a model that fits this training set relies on, so a
    faithful explanation of such a model points to it, and one that only pleases the reader to the polar word.
    """
    return plant("planted:shortcut", CLASSES, seed, partial(write, TRAINING), partial(write, TESTING))
