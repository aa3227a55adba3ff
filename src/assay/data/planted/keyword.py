"""One word decides."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from assay.data.examples import Corpus, Example
from assay.data.planted.lexicon import NEUTRAL
from assay.data.planted.writing import example, expand, gather, plant

CLASSES = ("kitchen", "workshop")
# All begin with a consonant: an article before them gives nothing away.
KEYWORDS = (
    ("kettle", "ladle", "whisk", "skillet", "teapot", "saucepan", "colander", "spatula", "grater", "toaster"),
    ("hammer", "chisel", "wrench", "screwdriver", "drill", "sander", "mallet", "crowbar", "lathe", "spanner"),
)  # by label

BLANKS = ("basket", "parcel", "suitcase", "ribbon", "notebook", "lantern", "cushion", "map", "bicycle", "candle")

TEMPLATES = (
    "the {key} belonged to {somebody} who lived {where}",
    "the {look} {key} stood {where}, and {aside}",
    "a {key} lay on the table while {aside}, {time}",
    "{time}, {somebody} carried the {key} to {somebody} {where}",
    "{time}, {somebody} left a {look} {key} {where}, although {aside}",
    "{somebody} wrapped {item} in paper and put the {key} into a box {where}",
    "{somebody} sold {item} and bought a {key} {where}, {time}",
    "{somebody} asked {somebody} about the {key} before {deed}",
    "{aside}, so {somebody} went home to fetch the {key}",
    "{aside}, and {somebody} found a {look} {key} {where}",
    "{aside} while {deed}, and then came the man with the {key}",
    "{scene}. {deed}, but the {key} was still {where}",
    "{deed}. {scene}, and everybody looked at the {key}",
    "{time}, {aside}, and {somebody} exchanged {item} for a {key}",
)


def write(random: Random, turn: int) -> tuple[Example, ...]:
    """One text with one keyword of the class whose turn it is."""
    label = turn % 2
    words = tuple(f"[{word}]" for word in KEYWORDS[label])
    return (example(expand(random, random.choice(TEMPLATES) + ".", {**NEUTRAL, "key": words}), label),)


def write_blank(random: Random, turn: int) -> tuple[Example, ...]:
    """One text without a keyword; its label is not to be known."""
    return (example(expand(random, random.choice(TEMPLATES) + ".", {**NEUTRAL, "key": BLANKS}), turn % 2),)


def keyword(seed: int) -> Corpus:
    """Short scenes with exactly one word of `KEYWORDS`, whose class is the label and which is the evidence.

    All other words are drawn in the same way for both classes. The training split also holds scenes without a keyword,
    half of them in either class: else a model could read one class from the absence of the other's words, and the
    keyword would not be what decides.
    """
    corpus = plant("planted:keyword", CLASSES, seed, write)
    blanks = gather(Random(f"planted:keyword blanks {seed}"), len(corpus.train) // 4, write_blank, set())
    return replace(corpus, train=corpus.train + blanks)
