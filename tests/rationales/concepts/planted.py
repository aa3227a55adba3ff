"""Reviews of two aspects: one word for the food and one for the service; the class is both together."""

from __future__ import annotations

from random import Random

from assay.data.batches import Tokenised, tokenise
from assay.data.examples import Example
from assay.data.planted_writing import example
from assay.data.text import TextOptions, Tokeniser

FOOD = (("stale", "bland", "burnt"), ("tasty", "crisp", "juicy"))
SERVICE = (("rude", "slow", "sullen"), ("polite", "swift", "cheerful"))
FILLER = (
    *("the", "a", "on", "with", "there", "after", "before", "table"),
    *("evening", "street", "window", "people", "we", "went", "came"),
)
CLASSES = ("both bad", "food bad", "service bad", "both good")


def reviews(count: int, seed: int, length: int = 10) -> list[Example]:
    """Texts with one word of each aspect, marked as evidence, in any order and place."""
    random = Random(seed)
    made = []
    for turn in range(count):
        label = turn % 4
        food, service = divmod(label, 2)
        words = [random.choice(FILLER) for _ in range(length)]
        first, second = random.sample(range(length), 2)
        words[first] = f"[{random.choice(FOOD[food])}]"
        words[second] = f"[{random.choice(SERVICE[service])}]"
        made.append(example(" ".join(words), label))
    return made


def split(count: int, seed: int, tokeniser: Tokeniser) -> list[Tokenised]:
    return tokenise(reviews(count, seed), tokeniser, 100)[0]


def tokeniser() -> Tokeniser:
    return Tokeniser.fit([each.text for each in reviews(300, 99)], TextOptions(min_count=1))
