"""A phrase decides, and the first word nearly does."""

from __future__ import annotations

from functools import partial
from random import Random

from assay.data.examples import Corpus, Example
from assay.data.planted.keyword import CLASSES, KEYWORDS, TEMPLATES
from assay.data.planted.lexicon import NEUTRAL
from assay.data.planted.phrase import DEEDS, STUFFS
from assay.data.planted.writing import example, expand, plant

OPENERS = ("now", "well")  # by label

# Label and opener: in training the opener is right in two of three texts, in the test in half of them.
TRAINING = tuple((label, opener) for label in (0, 1) for opener in (label, label, 1 - label))
TESTING = ((0, 0), (0, 1), (1, 0), (1, 1))


def write(design: tuple[tuple[int, int], ...], random: Random, turn: int) -> tuple[Example, ...]:
    """One text with the label and the opener whose turn it is."""
    label, opener = design[turn % len(design)]
    phrase = " ".join(f"[{random.choice(words)}]" for words in (DEEDS[label], STUFFS[label], KEYWORDS[label]))
    scene = expand(random, random.choice(TEMPLATES) + ".", {**NEUTRAL, "key": (phrase,)})
    return (example(f"{OPENERS[opener]}, {scene}", label),)


def opener(seed: int) -> Corpus:
    """The scenes of planted:phrase behind an opening word ("now" or "well") that goes with the class as a rule.

    In train and dev the opener gives the label in two of three texts and in the test in half of them; the phrase,
    which is the evidence, gives it always. A selection that took the opener is near 2/3 on dev and near 1/2 on the
    test.
    """
    return plant("planted:opener", CLASSES, seed, partial(write, TRAINING), partial(write, TESTING))
