"""Cloze questions whose answer is one of the entities in the text, @entity0, @entity1 and so on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from assay.data.examples import Corpus

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
