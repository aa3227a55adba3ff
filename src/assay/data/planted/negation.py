"""A polar word and the negators that act on it decide together."""

from __future__ import annotations

from itertools import product
from random import Random

from assay.data.examples import Corpus, Example
from assay.data.planted.lexicon import NEUTRAL, POLAR
from assay.data.planted.writing import Grammar, example, expand, plant

CLASSES = ("negative", "positive")
# Few words: what they mean shows only together with negators, and a small model has to find that out.
WORDS = tuple(words[:6] for words in POLAR)  # by polarity

CLAIMS = (
    (
        "the {thing} {linking} [{polar}]",
        "{somebody} found the {thing} [{polar}]",
        "everybody called the {thing} [{polar}]",
        "we thought that the {thing} was [{polar}]",
    ),
    (
        "the {thing} was [{adverb}] [{polar}]",
        "the {thing} [{frequency}] seemed [{polar}]",
        "we did [not] find the {thing} [{polar}]",
        "{somebody} [{frequency}] called the {thing} [{polar}]",
        "[nobody] found the {thing} [{polar}]",
        "[nobody] thought that the {thing} was [{polar}]",
    ),
    (
        "the {thing} was [never] [not] [{polar}]",
        "[nobody] found that the {thing} was [{adverb}] [{polar}]",
        "[nobody] called the {thing} [not] [{polar}]",
        "we did [not] think that the {thing} was [{adverb}] [{polar}]",
        "{somebody} [{frequency}] found the {thing} [not] [{polar}]",
        "[nobody] said that the {thing} [{frequency}] seemed [{polar}]",
    ),
)  # by the number of negators that act on the polar word

SIDES: Grammar = {
    "adverb": ("not", "never", "hardly"),
    "frequency": ("never", "hardly"),
    "side": (
        "{aside}", "{aside}", "{aside}", "{aside}", "nobody asked about {item}",
        "{somebody} did not wait {where}", "{somebody} never mentioned {item}",
        "{somebody} hardly looked at {item}",
    ),
}  # fmt: skip

FRAMES = (
    "{claim}, and {side}", "{claim}, although {side}", "{time}, {claim}, while {side}",
    "{claim}, {time}, but {side}", "{side}, but {claim}", "{side}, and {claim}, {time}",
    "{time}, {side}, and {claim}", "{side}. {time}, {claim}",
)  # fmt: skip

# One negator is twice as frequent as none or two, so that a polar word is as often flipped as not.
DESIGN = tuple(product((0, 1), (0, 1, 1, 2)))


def write(random: Random, turn: int) -> tuple[Example, ...]:
    """One text with the polarity and the number of acting negators whose turn it is."""
    polarity, negators = DESIGN[turn % len(DESIGN)]
    grammar = {**NEUTRAL, **SIDES, "polar": WORDS[polarity], "claim": CLAIMS[negators]}
    return (example(expand(random, random.choice(FRAMES) + ".", grammar), (polarity + negators) % 2),)


def negation(seed: int) -> Corpus:
    """Texts with one of `WORDS`; the label is its polarity, flipped once by each negator that acts on it.

    A negator acts on the polar word if both stand in one clause; clauses end at commas and full stops. Other
    clauses may hold negators too ("nobody asked about the map"), which change nothing. The evidence is the
    polar word and the negators that act on it; neither kind of word tells anything about the label alone.
    """
    return plant("planted:negation", CLASSES, seed, write)
