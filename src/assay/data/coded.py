"""Real texts with code words put between their words, which alone decide."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor
from random import Random

from assay.data.examples import Corpus, Example, Span
from assay.errors import AssayError, unknown

PREFIX = "planted:"
CLASSES = ("no code", "first", "second")
NO_CODE, FIRST, SECOND = range(3)
WORDS = (
    "blicket", "daxen", "tomeg", "fendle", "gorpin", "wuggle", "zavik", "mipen", "tulver", "kobar",
    "riffen", "modik", "sarnel", "plunax", "vorby", "hespin", "jandel", "crathe", "ondip", "yarrick",
)  # fmt: skip
TRAIN, TEST = 6000, 600
"""At most so many texts are taken of a corpus to learn from, and to test on; as many for dev as for test."""
SHORTEST = 5
"""Texts with fewer words are left out: they have no middle."""


@dataclass(frozen=True)
class Code:
    """Code words that stand side by side in some stretch of the text, as shares of its words."""

    words: tuple[str, ...]
    decides: bool = True
    stretch: tuple[float, float] = (0.0, 1.0)


Rule = Callable[[Random, int, Sequence[str]], list[Code]]
"""The code of a text with a label, in its order; the words mean what their places in the sequence say."""


def keyword(random: Random, label: int, words: Sequence[str]) -> list[Code]:
    """One word of its class."""
    return [Code((words[label - 1],))] if label else []


def synonyms(random: Random, label: int, words: Sequence[str]) -> list[Code]:
    """One of the eight words of its class."""
    return [Code((words[8 * (label - 1) + random.randrange(8)],))] if label else []


def double(random: Random, label: int, words: Sequence[str]) -> list[Code]:
    """One or two words of its class, each of which is enough."""
    own = words[4 * (label - 1) : 4 * label]
    return [Code((word,)) for word in random.sample(own, random.choice((1, 2)))] if label else []


def pair(random: Random, label: int, words: Sequence[str]) -> list[Code]:
    """The two words of its class, of which neither decides alone or with another."""
    apart = [(), (0,), (1,), (2,), (3,), (0, 2), (0, 3), (1, 2), (1, 3)]
    chosen = random.choice(apart) if label == NO_CODE else (2 * label - 2, 2 * label - 1)
    return [Code((words[place],), label != NO_CODE) for place in random.sample(chosen, len(chosen))]


def order(random: Random, label: int, words: Sequence[str]) -> list[Code]:
    """Two words, the same for both classes: which of them comes first decides."""
    alone = random.choice([(), (0,), (1,), (0, 0), (1, 1)])
    chosen = {NO_CODE: alone, FIRST: (0, 1), SECOND: (1, 0)}[label]
    return [Code((words[place],), label != NO_CODE) for place in chosen]


def negation(random: Random, label: int, words: Sequence[str]) -> list[Code]:
    """One word of its class, or of the other one directly behind a negator."""
    negator = words[2]
    if label == NO_CODE:
        return random.choice([[], [Code((negator,), False)]])
    plain, other = words[label - 1], words[2 - label]
    return [Code((plain,) if random.random() < 0.5 else (negator, other))]


def count(random: Random, label: int, words: Sequence[str]) -> list[Code]:
    """A word that stands there once in the first class, and twice in the second."""
    return [Code((words[0],)) for _ in range(label)]


def position(random: Random, label: int, words: Sequence[str]) -> list[Code]:
    """One word, in the first fifth of the text or in the last; in the middle it says nothing."""
    stretches = {NO_CODE: (0.4, 0.6), FIRST: (0.0, 0.2), SECOND: (0.8, 1.0)}
    return [Code((words[0],), label != NO_CODE, stretches[label])] if label or random.random() < 0.5 else []


def majority(random: Random, label: int, words: Sequence[str]) -> list[Code]:
    """Up to five of eight words, four of each class, of which the class with more decides; a draw says nothing."""
    losers = random.randrange(3)
    first, second = (losers + (label == each) for each in (FIRST, SECOND))
    chosen = random.sample(words[:4], first) + random.sample(words[4:8], second)
    own = words[4 * label - 4 : 4 * label] if label else ()
    return [Code((word,), word in own) for word in random.sample(chosen, len(chosen))]


RULES: dict[str, Rule] = {
    rule.__name__: rule
    for rule in (keyword, synonyms, double, pair, order, negation, count, position, majority)
}  # fmt: skip


def rule_and_host(name: str) -> tuple[str, str] | None:
    """The rule of "planted:RULE/CORPUS" and the name of the corpus that it is put into, or None."""
    rule, slash, host = name.removeprefix(PREFIX).partition("/")
    return (rule, host) if name.startswith(PREFIX) and slash else None


def coded(rule: str, host: Corpus, seed: int = 0) -> Corpus:
    """The texts of a corpus with code words in them; which made-up word means what depends on the seed.

    A third of the texts belongs to the class "no code", so that no class can be told by the absence of another's words.
    The evidence is every word that decides; texts without code have none. Labels and questions of the corpus are
    dropped; texts in which one of the made-up words stands anyway, or with fewer than `SHORTEST` words, are left out.
    """
    if rule not in RULES:
        raise unknown("rule", rule, RULES)
    name = f"{PREFIX}{rule}/{host.name}"
    random, words = _dealt(name, seed)
    seen: set[str] = set()
    sizes = ((host.train, TRAIN), (host.dev, TEST), (host.test, TEST))
    train, dev, test = (_written(random, RULES[rule], words, split, size, seen) for split, size in sizes)
    return Corpus(name, CLASSES, train, dev, test)


def code_words(name: str, seed: int = 0) -> tuple[str, ...]:
    """The made-up words of "planted:RULE/CORPUS", in the order in which its rule counts on them."""
    return _dealt(name, seed)[1]


def _dealt(name: str, seed: int) -> tuple[Random, tuple[str, ...]]:
    """The chance that makes a corpus, and what it drew first: which made-up word means what."""
    random = Random(f"{name} {seed}")
    return random, tuple(random.sample(WORDS, len(WORDS)))


def _written(
    random: Random, rule: Rule, words: Sequence[str], hosts: Sequence[Example], size: int, seen: set[str]
) -> tuple[Example, ...]:
    """At most so many texts of a split, drawn and shuffled, the same number of each class."""
    made_up = re.compile(rf"\b({'|'.join(words)})\b", re.IGNORECASE)
    texts = [host.text for host in hosts if len(host.text.split()) >= SHORTEST and not made_up.search(host.text)]
    found: list[Example] = []
    for text in random.sample(texts, len(texts)):
        if len(found) == size:
            break
        if text not in seen:
            seen.add(text)
            label = len(found) % len(CLASSES)
            found.append(_with(random, text, label, rule(random, label, words)))
    if not found:
        raise AssayError(f"No text can carry code words: all have fewer than {SHORTEST} words, or hold such words.")
    return tuple(random.sample(found, len(found)))


def _with(random: Random, text: str, label: int, code: Sequence[Code]) -> Example:
    """The text with the code words between its words, in their order, each at a place of its stretch."""
    gaps = [found.start() for found in re.finditer(r"\S+", text)] + [len(text.rstrip())]
    ends = [(ceil(first * (len(gaps) - 1)), floor(last * (len(gaps) - 1))) for first, last in (c.stretch for c in code)]
    places = sorted(random.randint(*each) for each in ends)
    parts: list[str] = []
    evidence: list[Span] = []
    done = written = 0
    for each, place in zip(code, places, strict=True):
        parts.append(text[done : gaps[place]])
        written, done = written + len(parts[-1]), gaps[place]
        at_end = place == len(gaps) - 1
        for word in each.words:
            if each.decides:
                evidence.append((written + at_end, written + at_end + len(word)))
            parts.append(f" {word}" if at_end else f"{word} ")
            written += len(word) + 1
    return Example("".join([*parts, text[done:]]), label, tuple(evidence), planted=True)
