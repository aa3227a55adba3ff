"""Sentences of an invented language in which the governor of every word is known."""

from __future__ import annotations

from random import Random

from assay.data.annotated import Sentence

COLOURS = ("red", "blue", "green", "grey")
_STEMS = ("ba", "do", "fi", "gu", "ke", "lo", "mi", "nu", "pa", "ri")
_ENDINGS = dict(zip(COLOURS, ("an", "en", "in", "on"), strict=True))

NOUNS = {colour: tuple(stem + "l" + ending for stem in _STEMS) for colour, ending in _ENDINGS.items()}
VERBS = {colour: tuple(stem + "t" + ending for stem in _STEMS) for colour, ending in _ENDINGS.items()}
PARTICLES = ("sa", "se", "si", "so", "su")
"""The words by what they are; nouns and verbs by their colour."""


def grammar(seed: int, count: int) -> tuple[Sentence, ...]:
    """So many sentences, each of two verbs of two colours, nouns of these colours, and particles.

    A noun is governed by the nearest verb of its colour ("argument"), which may stand anywhere; a particle by the word
    after it ("mark"), which any head that looks one word ahead finds; a verb by the first one ("chain").
    """
    random = Random(f"planted grammar {seed}")
    found: list[Sentence] = []
    while len(found) < count:
        made = _sentence(random)
        if made is not None:
            found.append(made)
    return tuple(found)


def _sentence(random: Random) -> Sentence | None:
    """A sentence by chance, or None where two verbs are as near to a noun."""
    colours = random.sample(COLOURS, 2)
    kinds = [("VERB", colour) for colour in colours for _ in range(2)]
    kinds += [("NOUN", random.choice(colours)) for _ in range(random.randint(4, 8))]
    random.shuffle(kinds)
    for place in sorted(random.sample(range(len(kinds)), 2), reverse=True):
        kinds.insert(place, ("PART", ""))
    governors = [_governor(kinds, place) for place in range(len(kinds))]
    if None in governors:
        return None
    words = [_word(random, *kind) for kind in kinds]
    names = {"VERB": "chain", "NOUN": "argument", "PART": "mark"}
    relations = ["root" if governor == -1 else names[kind[0]] for kind, governor in zip(kinds, governors, strict=True)]
    starts = [sum(map(len, words[:place])) + place for place in range(len(words))]
    return Sentence(
        text=" ".join(words),
        spans=tuple((start, start + len(word)) for start, word in zip(starts, words, strict=True)),
        words=tuple(words),
        tags=tuple(kind for kind, _ in kinds),
        governors=tuple(governor for governor in governors if governor is not None),
        relations=tuple(relations),
    )


def _governor(kinds: list[tuple[str, str]], place: int) -> int | None:
    """The place of the governor, -1 for the first verb, or None where two are as near."""
    kind, colour = kinds[place]
    verbs = [other for other, (name, _) in enumerate(kinds) if name == "VERB"]
    if kind == "VERB":
        return -1 if place == verbs[0] else verbs[0]
    if kind == "PART":
        return place + 1
    near = sorted((abs(verb - place), verb) for verb in verbs if kinds[verb][1] == colour)
    return None if near[0][0] == near[1][0] else near[0][1]


def _word(random: Random, kind: str, colour: str) -> str:
    return random.choice(PARTICLES if kind == "PART" else {"NOUN": NOUNS, "VERB": VERBS}[kind][colour])
