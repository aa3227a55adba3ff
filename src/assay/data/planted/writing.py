"""How planted texts are written: slots are filled by a seeded grammar, [brackets] mark the deciding words."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from random import Random

from assay.data.examples import Corpus, Example, Span

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


def plant(name: str, classes: tuple[str, ...], seed: int, write: Write, write_test: Write | None = None) -> Corpus:
    """The corpus of distinct texts that `write` gives turn by turn; `write_test` may write the test split."""
    random = Random(f"{name} {seed}")
    seen: set[str] = set()
    train, dev = (gather(random, size, write, seen) for size in (TRAIN, DEV))
    return Corpus(name, classes, train, dev, gather(random, TEST, write_test or write, seen))


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
