"""What a review says of the thing that is asked about, and not of the other."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from random import Random

from assay.data.examples import Corpus, Example
from assay.data.planted.lexicon import NEUTRAL, POLAR
from assay.data.planted.writing import example, expand, gather, plant

CLASSES = ("negative", "positive")
ASPECTS = ("food", "service", "price", "staff", "room", "view", "wine", "bread")
OPINIONS = tuple(words[:8] for words in POLAR)  # by polarity
NO_OPINIONS = ("usual", "average", "regular", "typical", "normal", "standard", "familiar", "seasonal")

# @ stands for the aspect and # for the opinion.
CLAUSES = (
    "the @ {linking} #", "{somebody} found the @ #", "we called the @ #", "{somebody} said how # the @ was",
    "the @ {where} was #", "our neighbours heard that the @ was #",
)  # fmt: skip
FRAMES = (
    "0, but 1", "0, and 1", "0, while 1", "{time}, 0, but 1", "{time}, 0, although 1", "0, but 1, {time}",
    "{scene}. 0, and 1", "0, but 1. {deed}",
)  # fmt: skip

# Whether the other clause has the contrary opinion, whether the deciding one comes last, the label.
DESIGN = tuple(product((0, 1), repeat=3))
# In a review without an answer: whether the first clause is about something else than what is asked about, and whether
# it has an opinion; whether it comes last, the label.
BLANKS = tuple(product(((0, 0), (1, 0), (1, 1)), (0, 1), (0, 1)))


def clause(random: Random, subject: str, opinion: str) -> str:
    """What is thought of the subject."""
    return random.choice(CLAUSES).replace("@", subject).replace("#", opinion)


def review(random: Random, clauses: tuple[str, str], swapped: int) -> str:
    """A text with both clauses, the first of them last where they are swapped."""
    frame = random.choice(FRAMES) + "."
    for place, told in enumerate(reversed(clauses) if swapped else clauses):
        frame = frame.replace(str(place), told)
    return expand(random, frame, NEUTRAL)


def write(random: Random, turn: int) -> tuple[Example, ...]:
    """One review with the label, the place of the deciding clause and the kind of the other whose turn it is."""
    contrary, swapped, label = DESIGN[turn % len(DESIGN)]
    asked, other = random.sample(ASPECTS, 2)
    deciding = clause(random, f"[{asked}]", f"[{random.choice(OPINIONS[label])}]")
    rest = clause(random, other, random.choice(OPINIONS[1 - label] if contrary else NO_OPINIONS))
    return (example(review(random, (deciding, rest), swapped), label, f"[{asked}]"),)


def write_blank(random: Random, turn: int) -> tuple[Example, ...]:
    """One review that has no opinion on what is asked about, or is not about it; its label is not to be known."""
    (absent, contrary), swapped, label = BLANKS[turn % len(BLANKS)]
    asked, other, third = random.sample(ASPECTS, 3)
    polarity = random.randrange(2)
    first = clause(random, third if absent else asked, random.choice(OPINIONS[polarity] if contrary else NO_OPINIONS))
    second = clause(random, other, random.choice(OPINIONS[1 - polarity]))
    return (example(review(random, (first, second), swapped), label, asked),)


def aspect(seed: int) -> Corpus:
    """Reviews of two aspects (text), and one of these (query); the label is the opinion on it.

    Each clause names one of `ASPECTS`. That which is asked about has one of `OPINIONS`; the other has the contrary
    opinion in half of the reviews and none in the rest. The evidence is the aspect and the opinion of the clause that
    is asked about, and the query. The training split also holds reviews with no opinion on what is asked about, or not
    about it at all, half of them in either class: else a model could turn the other clause's opinion around, know one
    class by the absence of the other's words, or find the clause by what it is not about. (The pattern is that of Wang
    et al., 2016: "The appetizers are ok, but the service is slow.")
    """
    corpus = plant("planted:aspect", CLASSES, seed, write)
    blanks = gather(Random(f"planted:aspect blanks {seed}"), len(corpus.train) // 4, write_blank, set())
    return replace(corpus, train=corpus.train + blanks)
