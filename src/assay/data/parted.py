"""Converts texts of two lines to pairs, for models that read a text and a question or hypothesis."""

from __future__ import annotations

from dataclasses import replace

from assay.data.examples import Corpus, Example
from assay.errors import AssayError

SUFFIX = "+parted"


def parted(corpus: Corpus) -> Corpus:
    """The corpus with the second line of each text as its query; its name ends in "+parted".

    Evidence goes with its line.
    """
    splits = (corpus.train, corpus.dev, corpus.test)
    if not two_lines(corpus):
        raise AssayError(
            f"Texts can be parted where each has two lines and no question yet, and {corpus.name!r} has others."
        )
    train, dev, test = (tuple(as_pair(example) for example in split) for split in splits)
    return replace(corpus, name=corpus.name + SUFFIX, train=train, dev=dev, test=test)


def two_lines(corpus: Corpus) -> bool:
    """Whether every text has two lines."""
    examples = (*corpus.train, *corpus.dev, *corpus.test)
    return all(each.query is None and len(_lines(each.text)) == 2 for each in examples)


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
