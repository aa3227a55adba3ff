"""Labelled texts before tokenisation; corpora with pairs joined or parted, thinned, or with a model's classes."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from assay.errors import AssayError, unknown

Span = tuple[int, int]
Item = TypeVar("Item")


@dataclass(frozen=True)
class Example:
    """One labelled text; `evidence` holds the character spans of decisive words where they are known.

    `planted` evidence is what decides by construction; other evidence is what people hold to be the reason.
    """

    text: str
    label: int
    evidence: tuple[Span, ...] | None = None
    query: str | None = None
    planted: bool = False
    query_evidence: tuple[Span, ...] = ()
    candidates: tuple[int, ...] | None = None  # the classes that can be right, where not all can

    def relabelled(self, index: Sequence[int]) -> Example:
        """The example with labels mapped to other class indices."""
        allowed = None if self.candidates is None else tuple(sorted(index[label] for label in self.candidates))
        return replace(self, label=index[self.label], candidates=allowed)


@dataclass(frozen=True)
class Corpus:
    """Train, dev and test splits over the same classes; `skipped` counts left-out examples by reason."""

    name: str
    classes: tuple[str, ...]
    train: tuple[Example, ...]
    dev: tuple[Example, ...]
    test: tuple[Example, ...]
    skipped: dict[str, int] = field(default_factory=dict)

    @property
    def examples(self) -> tuple[Example, ...]:
        """All of the three splits."""
        return self.train + self.dev + self.test

    def mapped(self, change: Callable[[Example], Example], suffix: str) -> Corpus:
        """The corpus with every example changed, and a suffix to its name."""
        train, dev, test = (tuple(map(change, split)) for split in (self.train, self.dev, self.test))
        return replace(self, name=self.name + suffix, train=train, dev=dev, test=test)


# Random subsets of a corpus, to shorten training


def sample(items: Sequence[Item], size: int, seed: int) -> tuple[Item, ...]:
    """So many of the items, drawn at random, in their order; all where there are no more."""
    indices = random.Random(seed).sample(range(len(items)), min(size, len(items)))
    return tuple(items[index] for index in sorted(indices))


def thinned(corpus: Corpus, number: int, seed: int) -> Corpus:
    """The corpus with that number of training texts, drawn by the seed, and dev texts in proportion."""
    if number < 1:
        raise AssayError(f"The number of training texts must be at least 1, got {number}.")
    share = number / max(1, len(corpus.train))
    if share >= 1:
        return corpus
    dev = sample(corpus.dev, max(1, round(share * len(corpus.dev))), seed)
    return replace(corpus, train=sample(corpus.train, number, seed), dev=dev)


# The classes of a corpus as those of a model


def examples_for(corpus: Corpus, split: str, classes: Sequence[str]) -> tuple[Example, ...]:
    """The examples of a split, or of "all", with labels as class indices of the model."""
    splits = {"train": corpus.train, "dev": corpus.dev, "test": corpus.test, "all": corpus.examples}
    if split not in splits:
        raise unknown("split", split, splits)
    if corpus.classes == tuple(classes):
        return splits[split]
    index = matched(corpus.classes, classes)
    return tuple(example.relabelled(index) for example in splits[split])


def matched(names: Sequence[str], known: Sequence[str]) -> list[int]:
    """The index of each class among a model's classes: by name, ignoring case, or by number."""
    if all(re.fullmatch(r"\d+", name) and int(name) < len(known) for name in names) and not set(names) & set(known):
        return [int(name) for name in names]
    lower = [name.lower() for name in known]
    found = []
    for name in names:
        if name not in known and lower.count(name.lower()) != 1:
            raise AssayError(
                f"The corpus has the class {name!r}; the model does not know it, only {', '.join(known)}. "
                "Rename it, or give the model's classes other names with --classes."
            )
        found.append(known.index(name) if name in known else lower.index(name.lower()))
    return found


# Pairs as single texts, for models that read one, and texts of two lines as pairs, for models that read two


def joined(corpus: Corpus) -> Corpus:
    """The corpus with each query and a line break before its text; its name ends in "+joined".

    The evidence is that of the query, where it is known, and that of the text.
    """
    if not any(example.query for example in corpus.examples):
        raise AssayError(f"{corpus.name!r} has no pairs to join; use it as it is.")
    return corpus.mapped(as_one, "+joined")


def as_one(example: Example) -> Example:
    """The example with its query as the first line of the text.

    It has no candidates either: a model of one text chooses among all classes.
    """
    if not example.query:
        return example
    head = f"{example.query}\n"
    evidence = None
    if example.evidence is not None:
        evidence = (*example.query_evidence, *((start + len(head), end + len(head)) for start, end in example.evidence))
    return replace(example, text=head + example.text, evidence=evidence, query=None, query_evidence=(), candidates=None)


def parted(corpus: Corpus) -> Corpus:
    """The corpus with the second line of each text as its query; its name ends in "+parted".

    Evidence goes with its line.
    """
    if not two_lines(corpus):
        raise AssayError(
            f"Texts can be parted where each has two lines and no question yet, and {corpus.name!r} has others."
        )
    return corpus.mapped(as_pair, "+parted")


def two_lines(corpus: Corpus) -> bool:
    """Whether every text has two lines."""
    return all(each.query is None and len(_lines(each.text)) == 2 for each in corpus.examples)


def as_pair(example: Example) -> Example:
    """The example with its second line as query."""
    first, second = _lines(example.text)
    begin = len(first) + 1
    evidence, asked = example.evidence, tuple[tuple[int, int], ...]()
    if evidence is not None:
        asked = tuple((max(start, begin) - begin, end - begin) for start, end in evidence if end > begin)
        evidence = tuple((start, min(end, begin - 1)) for start, end in evidence if start < begin - 1)
    return replace(example, text=first, query=second, evidence=evidence, query_evidence=asked)


def _lines(text: str) -> list[str]:
    """The lines, or none where one of them is blank."""
    lines = text.split("\n")
    return lines if all(line.strip() for line in lines) else []


# Cloze questions whose answer is one of the entities in the text, @entity0, @entity1 and so on

ENTITY = r"@entity\d+"


def is_cloze(classes: Sequence[str]) -> bool:
    """Whether all classes are entities."""
    return bool(classes) and all(re.fullmatch(ENTITY, name) for name in classes)


def entities(text: str) -> set[str]:
    """The entities that occur in a text."""
    return set(re.findall(ENTITY, text))


def candidates(text: str, classes: Sequence[str]) -> tuple[int, ...]:
    """The classes whose entity occurs in the text."""
    named = entities(text)
    return tuple(number for number, name in enumerate(classes) if name in named)


def among_entities(corpus: Corpus) -> Corpus:
    """The corpus with the entities of each text as its candidates (Hermann et al. 2015).

    The classes become the entities that are an answer in training. Left out and counted are the questions that no
    model could answer: those whose answer is not in the text, and those whose answer is no class.
    """
    splits = (corpus.train, corpus.dev, corpus.test)
    asked = [[(example, corpus.classes[example.label]) for example in split] for split in splits]
    named = [[(example, answer) for example, answer in split if answer in entities(example.text)] for split in asked]
    classes = sorted({answer for _, answer in named[0]}, key=lambda name: int(name.removeprefix("@entity")))
    index = {name: number for number, name in enumerate(classes)}
    train, dev, test = (
        tuple(
            replace(example, label=index[answer], candidates=candidates(example.text, classes))
            for example, answer in split
            if answer in index
        )
        for split in named
    )
    sizes = [sum(map(len, stage)) for stage in (asked, named, (train, dev, test))]
    lost = {"answer not in the text": sizes[0] - sizes[1], "answer never seen in training": sizes[1] - sizes[2]}
    skipped = corpus.skipped | {reason: count for reason, count in lost.items() if count}
    return replace(corpus, classes=tuple(classes), train=train, dev=dev, test=test, skipped=skipped)
