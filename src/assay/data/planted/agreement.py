"""Two distant words must match, and which two depends on the order of words."""

from __future__ import annotations

from random import Random

from assay.data.examples import Corpus, Example
from assay.data.planted.lexicon import NEUTRAL
from assay.data.planted.writing import Grammar, example, expand, plant

CLASSES = ("grammatical", "ungrammatical")
PEOPLE = ("baker", "farmer", "sailor", "painter", "teacher", "pilot", "singer", "gardener")
VERBS = ("greet", "help", "admire", "follow")

# <0> is the subject, <4> its verb, <1> to <3> are other people.
FRAMES = (
    "{when} the [<0>] {near} the <1> {near} the <2> [<4>] the <3> {where}",
    "{when} the [<0>] {near} the <1> [<4>] the <2> who once lived {near} the <3> {where}",
    "{when} the [<0>] who had {known} the <1> {near} the <2> [<4>] the <3> {where}",
    "{when} the [<0>] whom the <1> {near} the <2> had {known} [<4>] the <3> {where}",
    "{when} the {manner} [<0>] {where} {near} the <1> often [<4>] the <2> {near} the <3>",
    "{when} the {manner} [<0>] with the {object} from the <1> [<4>] the <2> {near} the <3>",
)
WORDS: Grammar = {
    "when": (
        "every day", "sometimes", "once a week", "at the {place},", "early in the morning,", "after lunch,",
        "around noon,", "on rainy days,", "according to the {look} newspaper,", "in the middle of summer,",
    ),
    "known": ("known", "met", "invited", "visited", "painted", "described"),
}  # fmt: skip


def write(random: Random, turn: int) -> tuple[Example, ...]:
    """A pair of texts with the same words: the subject and somebody of the other number change places."""
    frame = expand(random, random.choice(FRAMES) + ".", {**NEUTRAL, **WORDS})
    plural = [False, False, True, True]
    random.shuffle(plural)
    nouns = [word + "s" * many for word, many in zip(random.sample(PEOPLE, 4), plural, strict=True)]
    many_do = turn % 2 == 1
    verb = random.choice(VERBS) + "s" * (not many_do)
    other = random.choice([place for place in (1, 2, 3) if plural[place] != plural[0]])
    swapped = list(nouns)
    swapped[0], swapped[other] = nouns[other], nouns[0]
    label = int(plural[0] != many_do)
    texts = (compose(frame, [*nouns, verb]), compose(frame, [*swapped, verb]))
    return example(texts[0], label), example(texts[1], 1 - label)


def compose(frame: str, words: list[str]) -> str:
    """The frame with its numbered places filled."""
    for place, word in enumerate(words):
        frame = frame.replace(f"<{place}>", word)
    return frame


def agreement(seed: int) -> Corpus:
    """Sentences that are grammatical if the verb agrees in number with the subject, the first of four nouns.

    The nouns of `PEOPLE` stand twice in the singular and twice in the plural, in any order: each other
    has the number of the first in a third of the texts. One verb of `VERBS` follows the first at a distance,
    with others in between. The evidence is the subject and the verb. Every text has a partner in its split
    with the same words in another order and the other label, so a bag of words tells nothing. (Linzen, Dupoux
    and Goldberg 2016 measure language models by such attractors.)
    """
    return plant("planted:agreement", CLASSES, seed, write)
