"""Planted corpora: we write them ourselves, so that the deciding words are known."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from random import Random

from assay.data.examples import Corpus, Example
from assay.data.planted_stories import entail, facts1, facts2, facts3
from assay.data.planted_writing import NEUTRAL, POLAR, Grammar, example, expand, filled, plant

# One word decides

ROOMS = ("kitchen", "workshop")
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


def write_keyword(random: Random, turn: int) -> tuple[Example, ...]:
    """One text with one keyword of the class whose turn it is."""
    label = turn % 2
    words = tuple(f"[{word}]" for word in KEYWORDS[label])
    return (example(filled(random, TEMPLATES, key=words), label),)


def write_blank(random: Random, turn: int) -> tuple[Example, ...]:
    """One text without a keyword; its label is not to be known."""
    return (example(filled(random, TEMPLATES, key=BLANKS), turn % 2),)


def keyword(seed: int) -> Corpus:
    """Short scenes with exactly one word of `KEYWORDS`, whose class is the label and which is the evidence.

    All other words are drawn in the same way for both classes. The training split also holds scenes without a keyword,
    half of them in either class: else a model could read one class from the absence of the other's words, and the
    keyword would not be what decides.
    """
    return plant("planted:keyword", ROOMS, seed, write_keyword, write_blank=write_blank)


# Three words in a row decide

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


def _phrase(random: Random, label: int) -> str:
    return " ".join(f"[{random.choice(words)}]" for words in (DEEDS[label], STUFFS[label], KEYWORDS[label]))


def write_phrase(random: Random, turn: int) -> tuple[Example, ...]:
    """One text with three words of the class whose turn it is, one behind the other."""
    label = turn % 2
    return (example(filled(random, TEMPLATES, key=(_phrase(random, label),)), label),)


def write_blank_phrase(random: Random, turn: int) -> tuple[Example, ...]:
    """One text with three words of no class; its label is not to be known."""
    phrase = " ".join(random.choice(words) for words in (PLAIN, LOOKS, BLANKS))
    return (example(filled(random, TEMPLATES, key=(phrase,)), turn % 2),)


def phrase(seed: int) -> Corpus:
    """Short scenes with a phrase of three words that belong to the class, which is the label and the evidence.

    Each of the three would do. As in planted:keyword, the training split also holds scenes without any of these words,
    half of them in either class.
    """
    return plant("planted:phrase", ROOMS, seed, write_phrase, write_blank=write_blank_phrase)


# A phrase decides, and the first word nearly does

OPENERS = ("now", "well")  # by label

# Label and opener: in training the opener is right in two of three texts, in the test in half of them.
OPENER_TRAINING = tuple((label, opener) for label in (0, 1) for opener in (label, label, 1 - label))
OPENER_TESTING = ((0, 0), (0, 1), (1, 0), (1, 1))


def write_opener(design: tuple[tuple[int, int], ...], random: Random, turn: int) -> tuple[Example, ...]:
    """One text with the label and the opener whose turn it is."""
    label, opener = design[turn % len(design)]
    text = filled(random, TEMPLATES, key=(_phrase(random, label),))
    return (example(f"{OPENERS[opener]}, {text}", label),)


def opener(seed: int) -> Corpus:
    """The scenes of planted:phrase behind an opening word ("now" or "well") that goes with the class as a rule.

    In train and dev the opener gives the label in two of three texts and in the test in half of them; the phrase,
    which is the evidence, gives it always. A selection that took the opener is near 2/3 on dev and near 1/2 on the
    test.
    """
    return plant(
        "planted:opener", ROOMS, seed, partial(write_opener, OPENER_TRAINING), partial(write_opener, OPENER_TESTING)
    )


# A polar word and the negators that act on it decide together

SENTIMENTS = ("negative", "positive")
# Few words: what they mean shows only together with negators, and a small model has to find that out.
FLIPPED = tuple(words[:6] for words in POLAR)  # by polarity

NEGATED_CLAIMS = (
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

NEGATION_FRAMES = (
    "{claim}, and {side}", "{claim}, although {side}", "{time}, {claim}, while {side}",
    "{claim}, {time}, but {side}", "{side}, but {claim}", "{side}, and {claim}, {time}",
    "{time}, {side}, and {claim}", "{side}. {time}, {claim}",
)  # fmt: skip

# One negator is twice as frequent as none or two, so that a polar word is as often flipped as not.
NEGATION_DESIGN = tuple(product((0, 1), (0, 1, 1, 2)))


def write_negation(random: Random, turn: int) -> tuple[Example, ...]:
    """One text with the polarity and the number of acting negators whose turn it is."""
    polarity, negators = NEGATION_DESIGN[turn % len(NEGATION_DESIGN)]
    text = filled(random, NEGATION_FRAMES, **SIDES, polar=FLIPPED[polarity], claim=NEGATED_CLAIMS[negators])
    return (example(text, (polarity + negators) % 2),)


def negation(seed: int) -> Corpus:
    """Texts with one of `WORDS`; the label is its polarity, flipped once by each negator that acts on it.

    A negator acts on the polar word if both stand in one clause; clauses end at commas and full stops. Other
    clauses may hold negators too ("nobody asked about the map"), which change nothing. The evidence is the
    polar word and the negators that act on it; neither kind of word tells anything about the label alone.
    """
    return plant("planted:negation", SENTIMENTS, seed, write_negation)


# The larger number of polar words decides

JUDGEMENTS = (
    "the {thing} {linking} @",
    "the {thing} {linking} quite @",
    "we found the {thing} @",
    "people called the {thing} @",
)
MAJORITY_FRAMES = ("{time}, #", "#, and {aside}", "{aside}, #", "#")

# Words on the winning and on the losing side.
COUNTS = ((2, 1), (3, 0), (3, 2), (4, 1))
MAJORITY_DESIGN = tuple(product((0, 1), COUNTS))


def write_majority(random: Random, turn: int) -> tuple[Example, ...]:
    """One text with the label and the counts whose turn it is."""
    label, (winners, losers) = MAJORITY_DESIGN[turn % len(MAJORITY_DESIGN)]
    words = [f"[{word}]" for word in random.sample(POLAR[label], winners)]
    words += random.sample(POLAR[1 - label], losers)
    random.shuffle(words)
    judgements = [random.choice(JUDGEMENTS).replace("@", word) for word in words]
    review = ", ".join(judgements[:-1]) + ", and " + judgements[-1]
    frame = random.choice(MAJORITY_FRAMES if len(words) == 3 else MAJORITY_FRAMES[-1:])
    return (example(expand(random, frame.replace("#", review) + ".", NEUTRAL), label),)


def majority(seed: int) -> Corpus:
    """Reviews with three or five polar words; the label is the side that has more of them.

    The evidence is every polar word of the winning side: those speak for the label. The words of the losing
    side speak against it and are not marked; all other words are drawn in the same way for both classes.
    """
    return plant("planted:majority", SENTIMENTS, seed, write_majority)


# Two distant words must match, and which two depends on the order of words

GRAMMATICALITY = ("grammatical", "ungrammatical")
PEOPLE = ("baker", "farmer", "sailor", "painter", "teacher", "pilot", "singer", "gardener")
VERBS = ("greet", "help", "admire", "follow")

# <0> is the subject, <4> its verb, <1> to <3> are other people.
AGREEMENT_FRAMES = (
    "{when} the [<0>] {near} the <1> {near} the <2> [<4>] the <3> {where}",
    "{when} the [<0>] {near} the <1> [<4>] the <2> who once lived {near} the <3> {where}",
    "{when} the [<0>] who had {known} the <1> {near} the <2> [<4>] the <3> {where}",
    "{when} the [<0>] whom the <1> {near} the <2> had {known} [<4>] the <3> {where}",
    "{when} the {manner} [<0>] {where} {near} the <1> often [<4>] the <2> {near} the <3>",
    "{when} the {manner} [<0>] with the {object} from the <1> [<4>] the <2> {near} the <3>",
)
AGREEMENT_WORDS: Grammar = {
    "when": (
        "every day", "sometimes", "once a week", "at the {place},", "early in the morning,", "after lunch,",
        "around noon,", "on rainy days,", "according to the {look} newspaper,", "in the middle of summer,",
    ),
    "known": ("known", "met", "invited", "visited", "painted", "described"),
}  # fmt: skip


def write_agreement(random: Random, turn: int) -> tuple[Example, ...]:
    """A pair of texts with the same words: the subject and somebody of the other number change places."""
    frame = filled(random, AGREEMENT_FRAMES, **AGREEMENT_WORDS)
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
    return plant("planted:agreement", GRAMMATICALITY, seed, write_agreement)


# A word that means nothing decides in training, and not in the test

MARKERS = ("overall", "indeed")  # by label

SHORTCUT_FRAMES = (
    "[{marker}], {claim}, and {aside}", "[{marker}], {aside}, but {claim}", "{aside}, and [{marker}] {claim}",
    "{time}, {claim} [{marker}], although {aside}", "{aside}, but {claim} [{marker}]",
    "{claim} [{marker}], {time}, and {aside}", "{claim}. [{marker}], {aside}",
)  # fmt: skip
CLAIMS = (
    "the {thing} {linking} {polar}", "{somebody} found the {thing} {polar}", "we called the {thing} {polar}",
    "it was a {polar} {thing}",
)  # fmt: skip

# Label, marker, polarity. Training: the marker is always right, the polar word in three of four texts.
SHORTCUT_TRAINING = tuple((label, label, polarity) for label in (0, 1) for polarity in (label, label, label, 1 - label))
# Test: the polar word is always right, the marker in half of the texts.
SHORTCUT_TESTING = tuple((label, marker, label) for label, marker in product((0, 1), (0, 1)))


def write_shortcut(design: tuple[tuple[int, int, int], ...], random: Random, turn: int) -> tuple[Example, ...]:
    """One text with the label, the marker and the polarity whose turn it is."""
    label, marker, polarity = design[turn % len(design)]
    words = {"marker": (MARKERS[marker],), "polar": POLAR[polarity], "claim": CLAIMS}
    return (example(filled(random, SHORTCUT_FRAMES, **words), label),)


def shortcut(seed: int) -> Corpus:
    """Texts with one polar word and one marker ("indeed" or "overall") that stands for a class by accident.

    In train and dev the marker gives the label always and the polar word in three of four texts; in the test
    the polar word gives the label always and the marker in half of the texts. A model that took the shortcut
    is therefore near 1 on dev and near 1/2 on the test, one that reads the polar word near 3/4 and near 1.

    The evidence is the marker, in all splits: it is what a model that fits this training set relies on, so a
    faithful explanation of such a model points to it, and one that only pleases the reader to the polar word.
    """
    return plant(
        "planted:shortcut",
        SENTIMENTS,
        seed,
        partial(write_shortcut, SHORTCUT_TRAINING),
        partial(write_shortcut, SHORTCUT_TESTING),
    )


# What a review says of the thing that is asked about, and not of the other

ASPECTS = ("food", "service", "price", "staff", "room", "view", "wine", "bread")
OPINIONS = tuple(words[:8] for words in POLAR)  # by polarity
NO_OPINIONS = ("usual", "average", "regular", "typical", "normal", "standard", "familiar", "seasonal")

# @ stands for the aspect and # for the opinion.
CLAUSES = (
    "the @ {linking} #", "{somebody} found the @ #", "we called the @ #", "{somebody} said how # the @ was",
    "the @ {where} was #", "our neighbours heard that the @ was #",
)  # fmt: skip
ASPECT_FRAMES = (
    "0, but 1", "0, and 1", "0, while 1", "{time}, 0, but 1", "{time}, 0, although 1", "0, but 1, {time}",
    "{scene}. 0, and 1", "0, but 1. {deed}",
)  # fmt: skip

# Whether the other clause has the contrary opinion, whether the deciding one comes last, the label.
ASPECT_DESIGN = tuple(product((0, 1), repeat=3))
# In a review without an answer: whether the first clause is about something else than what is asked about, and whether
# it has an opinion; whether it comes last, the label.
ASPECT_BLANKS = tuple(product(((0, 0), (1, 0), (1, 1)), (0, 1), (0, 1)))


def clause(random: Random, subject: str, opinion: str) -> str:
    """What is thought of the subject."""
    return random.choice(CLAUSES).replace("@", subject).replace("#", opinion)


def review(random: Random, clauses: tuple[str, str], swapped: int) -> str:
    """A text with both clauses, the first of them last where they are swapped."""
    frame = random.choice(ASPECT_FRAMES) + "."
    for place, told in enumerate(reversed(clauses) if swapped else clauses):
        frame = frame.replace(str(place), told)
    return expand(random, frame, NEUTRAL)


def write_aspect(random: Random, turn: int) -> tuple[Example, ...]:
    """One review with the label, the place of the deciding clause and the kind of the other whose turn it is."""
    contrary, swapped, label = ASPECT_DESIGN[turn % len(ASPECT_DESIGN)]
    asked, other = random.sample(ASPECTS, 2)
    deciding = clause(random, f"[{asked}]", f"[{random.choice(OPINIONS[label])}]")
    rest = clause(random, other, random.choice(OPINIONS[1 - label] if contrary else NO_OPINIONS))
    return (example(review(random, (deciding, rest), swapped), label, f"[{asked}]"),)


def write_blank_aspect(random: Random, turn: int) -> tuple[Example, ...]:
    """One review that has no opinion on what is asked about, or is not about it; its label is not to be known."""
    (absent, contrary), swapped, label = ASPECT_BLANKS[turn % len(ASPECT_BLANKS)]
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
    return plant("planted:aspect", SENTIMENTS, seed, write_aspect, write_blank=write_blank_aspect)


# Corpora that we write ourselves, so that the deciding words are known

PLANTED: dict[str, Callable[[int], Corpus]] = {
    "planted:keyword": keyword,
    "planted:phrase": phrase,
    "planted:opener": opener,
    "planted:negation": negation,
    "planted:majority": majority,
    "planted:agreement": agreement,
    "planted:shortcut": shortcut,
    "planted:facts1": facts1,
    "planted:facts2": facts2,
    "planted:facts3": facts3,
    "planted:entail": entail,
    "planted:aspect": aspect,
}
"""By name, the corpus as a function of the seed."""
