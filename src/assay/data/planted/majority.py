"""The larger number of polar words decides."""

from __future__ import annotations

from itertools import product
from random import Random

from assay.data.examples import Corpus, Example
from assay.data.planted.lexicon import NEUTRAL, POLAR
from assay.data.planted.writing import example, expand, plant

CLASSES = ("negative", "positive")

JUDGEMENTS = (
    "the {thing} {linking} @",
    "the {thing} {linking} quite @",
    "we found the {thing} @",
    "people called the {thing} @",
)
FRAMES = ("{time}, #", "#, and {aside}", "{aside}, #", "#")

# Words on the winning and on the losing side.
COUNTS = ((2, 1), (3, 0), (3, 2), (4, 1))
DESIGN = tuple(product((0, 1), COUNTS))


def write(random: Random, turn: int) -> tuple[Example, ...]:
    """One text with the label and the counts whose turn it is."""
    label, (winners, losers) = DESIGN[turn % len(DESIGN)]
    words = [f"[{word}]" for word in random.sample(POLAR[label], winners)]
    words += random.sample(POLAR[1 - label], losers)
    random.shuffle(words)
    judgements = [random.choice(JUDGEMENTS).replace("@", word) for word in words]
    review = ", ".join(judgements[:-1]) + ", and " + judgements[-1]
    frame = random.choice(FRAMES if len(words) == 3 else FRAMES[-1:])
    return (example(expand(random, frame.replace("#", review) + ".", NEUTRAL), label),)


def majority(seed: int) -> Corpus:
    """Reviews with three or five polar words; the label is the side that has more of them.

    The evidence is every polar word of the winning side: those speak for the label. The words of the losing
    side speak against it and are not marked; all other words are drawn in the same way for both classes.
    """
    return plant("planted:majority", CLASSES, seed, write)
