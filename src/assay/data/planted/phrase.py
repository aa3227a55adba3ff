"""Three words in a row decide."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from assay.data.examples import Corpus, Example
from assay.data.planted.keyword import BLANKS, CLASSES, KEYWORDS, TEMPLATES
from assay.data.planted.lexicon import NEUTRAL
from assay.data.planted.writing import example, expand, gather, plant

# All begin with a consonant: an article before them gives nothing away.
DEEDS = (
    ("simmering", "roasting", "baking", "frying", "boiling", "toasting", "steaming", "grilling"),
    ("drilling", "welding", "filing", "planing", "sanding", "riveting", "polishing", "bolting"),
)  # by label
STUFFS = (
    ("buttery", "salted", "peppered", "sugared", "creamy", "floury", "juicy", "crusty"),
    ("wrought", "tempered", "threaded", "greased", "soldered", "varnished", "hardened", "galvanised"),
)  # by label
PLAIN = ("travelling", "sleeping", "singing", "waiting", "walking", "drifting", "wandering", "resting")
LOOKS = ("pleasing", "curious", "painted", "borrowed", "forgotten", "peculiar", "modest", "tidy")


def write(random: Random, turn: int) -> tuple[Example, ...]:
    """One text with three words of the class whose turn it is, one behind the other."""
    label = turn % 2
    phrase = " ".join(f"[{random.choice(words)}]" for words in (DEEDS[label], STUFFS[label], KEYWORDS[label]))
    return (example(expand(random, random.choice(TEMPLATES) + ".", {**NEUTRAL, "key": (phrase,)}), label),)


def write_blank(random: Random, turn: int) -> tuple[Example, ...]:
    """One text with three words of no class; its label is not to be known."""
    phrase = " ".join(random.choice(words) for words in (PLAIN, LOOKS, BLANKS))
    return (example(expand(random, random.choice(TEMPLATES) + ".", {**NEUTRAL, "key": (phrase,)}), turn % 2),)


def phrase(seed: int) -> Corpus:
    """Short scenes with a phrase of three words that belong to the class, which is the label and the evidence.

    Each of the three would do. As in planted:keyword, the training split also holds scenes without any of these words,
    half of them in either class.
    """
    corpus = plant("planted:phrase", CLASSES, seed, write)
    blanks = gather(Random(f"planted:phrase blanks {seed}"), len(corpus.train) // 4, write_blank, set())
    return replace(corpus, train=corpus.train + blanks)
