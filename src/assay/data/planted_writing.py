"""Writes sentences by a grammar, with the deciding words in brackets."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from random import Random

from assay.data.examples import Corpus, Example, Span

# How planted texts are written: slots are filled by a seeded grammar, [brackets] mark the deciding words

Grammar = Mapping[str, tuple[str, ...]]
"""The ways to fill each slot; a filling may hold slots itself."""

Write = Callable[[Random, int], tuple[Example, ...]]
"""Takes a source of chance and a turn; returns examples that belong to one split together, or none."""

# Multiples of 24, so that every design below (2, 3, 4, 6 or 8 kinds of example in turn) comes out balanced.
TRAIN, DEV, TEST = 1992, 312, 504


def expand(random: Random, template: str, grammar: Grammar) -> str:
    """The template with every {slot} filled by chance, without repeating a filling while others are left."""
    used: set[str] = set()
    while slot := re.search(r"\{(\w+)\}", template):
        fresh = [filling for filling in grammar[slot[1]] if filling not in used]
        filling = random.choice(fresh or grammar[slot[1]])
        used.add(filling)
        template = template[: slot.start()] + filling + template[slot.end() :]
    return template


def spell(marked: str) -> str:
    """The text with capitals at the start of its sentences and "an" before vowels."""
    marked = re.sub(r"\b([Aa]) (?=\[?[aeiou])", r"\1n ", marked)
    return re.sub(r"(?:^|\.\]? )\[?[a-z]", lambda start: start[0].upper(), marked)


def example(marked: str, label: int, query: str | None = None) -> Example:
    """The example whose evidence is what stands in [brackets]; a query may have some too."""
    text, evidence = unmarked(spell(marked))
    if query is None:
        return Example(text, label, evidence, planted=True)
    asked, asked_evidence = unmarked(spell(query))
    return Example(text, label, evidence, asked, planted=True, query_evidence=asked_evidence)


def unmarked(marked: str) -> tuple[str, tuple[Span, ...]]:
    """The text without brackets, and where the words in brackets stand."""
    text, spans = "", []
    for position, piece in enumerate(re.split(r"[\[\]]", marked)):
        if position % 2:
            spans.append((len(text), len(text) + len(piece)))
        text += piece
    return text, tuple(spans)


def plant(
    name: str,
    classes: tuple[str, ...],
    seed: int,
    write: Write,
    write_test: Write | None = None,
    write_blank: Write | None = None,
) -> Corpus:
    """The corpus of distinct texts that `write` gives turn by turn; `write_test` may write the test split.

    A quarter more of the training texts may be blank: without what decides, and with each class equally often.
    """
    random = Random(f"{name} {seed}")
    seen: set[str] = set()
    train, dev = (gather(random, size, write, seen) for size in (TRAIN, DEV))
    test = gather(random, TEST, write_test or write, seen)
    if write_blank is not None:
        train += gather(Random(f"{name} blanks {seed}"), len(train) // 4, write_blank, set())
    return Corpus(name, classes, train, dev, test)


def gather(random: Random, size: int, write: Write, seen: set[str]) -> tuple[Example, ...]:
    """The first `size` examples with texts not in `seen`, shuffled; a turn that fails is taken again."""
    found: list[Example] = []
    turn = 0
    while len(found) < size:
        group = write(random, turn)
        if not group or any(member.text in seen for member in group):
            continue
        found.extend(group)
        seen.update(member.text for member in group)
        turn += 1
    random.shuffle(found)
    return tuple(found)


# The words of the planted corpora: a neutral stock, and the polar words and negators apart

POSITIVE = (
    "good", "great", "lovely", "pleasant", "charming", "delightful",
    "brilliant", "splendid", "wonderful", "superb", "excellent", "enjoyable",
)  # fmt: skip
NEGATIVE = (
    "bad", "awful", "poor", "dreadful", "boring", "terrible",
    "clumsy", "tedious", "horrible", "lousy", "annoying", "mediocre",
)  # fmt: skip
POLAR = (NEGATIVE, POSITIVE)  # by label
NEGATORS = ("not", "never", "hardly", "nobody")

NEUTRAL: Grammar = {
    "time": (
        "early in the morning", "late in the evening", "on a rainy Tuesday", "one autumn day", "after lunch",
        "around noon", "shortly after sunrise", "on the first day of spring", "during the long weekend",
        "last winter", "that afternoon", "a week before the holidays", "on Friday evening",
        "at the end of May", "soon after the storm", "in the middle of summer", "on our way home",
        "just before midnight",
    ),
    "near": ("near", "behind", "beside", "next to", "across from", "in front of", "close to", "opposite"),
    "place": (
        "bridge", "river", "market", "station", "school", "church", "library", "museum", "park", "square",
        "harbour", "bakery", "mill", "tower", "castle", "village", "forest", "hill", "lake", "meadow",
        "orchard", "farm", "road", "gate", "fountain", "courtyard", "lighthouse", "railway", "bank", "canal",
    ),
    "setting": ("old", "new", "small", "large", "wide", "empty", "sunny", "northern", "second", "nearest"),
    "where": ("{near} the {place}", "{near} the {setting} {place}"),
    "person": (
        "baker", "farmer", "sailor", "painter", "teacher", "pilot", "singer", "gardener", "doctor", "writer",
        "carpenter", "tailor", "driver", "dancer", "student", "neighbour", "lawyer", "miller", "hunter",
        "jeweller", "plumber", "potter", "weaver", "barber",
    ),
    "manner": ("tall", "young", "old", "retired", "foreign", "local", "elderly", "bearded", "curious"),
    "somebody": ("the {person}", "the {manner} {person}"),
    "object": (
        "basket", "letter", "umbrella", "blanket", "suitcase", "candle", "map", "coin", "ticket", "ring",
        "bicycle", "radio", "mirror", "notebook", "clock", "parcel", "photograph", "jacket", "scarf", "hat",
        "bell", "feather", "newspaper", "stone", "bottle", "drum", "lantern", "pencil", "wallet", "carpet",
    ),
    "look": (
        "small", "large", "old", "narrow", "round", "wooden", "ordinary", "new", "tiny", "long", "painted",
        "plain", "{colour}",
    ),
    "colour": ("blue", "green", "red", "yellow", "grey", "brown", "white", "orange", "purple", "black"),
    "item": ("the {object}", "the {look} {object}", "a {look} {object}"),
    "weather": ("rain", "snow", "fog", "mist", "dust", "sunlight"),
    "opening": ("door", "window", "gate", "shutter", "curtain", "cupboard"),
    "drank": ("tea", "coffee", "water", "milk", "cider", "lemonade"),
    "scene": (
        "the wind came from the {place}", "{weather} covered the {place}", "a train passed {where}",
        "the lamps were lit {where}", "the last bus stopped {where}", "the clock stopped {where}",
        "the {look} {opening} stayed open", "{weather} drifted over the {place}", "a bell rang {where}",
        "the leaves turned {colour}", "the shops opened {where}", "the river reached the {place}",
        "the evening turned cold", "music drifted from the {place}", "smoke rose {where}",
    ),
    "deed": (
        "{somebody} waited {where}", "{somebody} carried {item}", "{somebody} looked for {item} {where}",
        "{somebody} spoke about {item}", "{somebody} wrote to {somebody}", "{somebody} closed the {opening}",
        "{somebody} sold {item} to {somebody}", "{somebody} drank some {drank} {where}",
        "{somebody} borrowed {item}", "{somebody} walked home with {item}",
        "{somebody} met {somebody} {where}", "{somebody} painted the {opening} {colour}",
        "{somebody} hid {item} {where}", "{somebody} lived {where}", "{somebody} counted the chairs",
        "{somebody} asked about {item}",
    ),
    "aside": ("{scene}", "{deed}"),
    "thing": (
        "film", "soup", "concert", "hotel", "book", "play", "meal", "song", "exhibition", "novel", "service",
        "dinner", "story", "ending", "acting", "dessert", "lecture", "tour", "room", "menu", "view",
        "journey", "plot", "dialogue", "breakfast", "camera work", "costume design", "first chapter",
        "second half",
    ),
    "linking": ("was", "seemed", "felt", "turned out", "proved", "appeared"),
}  # fmt: skip


def filled(random: Random, templates: Sequence[str], **words: tuple[str, ...]) -> str:
    """One of the templates as a sentence, with neutral words in its slots, and these words in theirs."""
    return expand(random, random.choice(templates) + ".", {**NEUTRAL, **words})
