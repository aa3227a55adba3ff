"""Converts pairs to single texts, for models that read one."""

from __future__ import annotations

from dataclasses import replace

from assay.data.examples import Corpus, Example
from assay.errors import AssayError

SUFFIX = "+joined"


def joined(corpus: Corpus) -> Corpus:
    """The corpus with each query and a line break before its text; its name ends in "+joined".

    The evidence is that of the query, where it is known, and that of the text.
    """
    splits = (corpus.train, corpus.dev, corpus.test)
    if not any(example.query for split in splits for example in split):
        raise AssayError(f"{corpus.name!r} has no pairs to join; use it as it is.")
    train, dev, test = (tuple(as_one(example) for example in split) for split in splits)
    return replace(corpus, name=corpus.name + SUFFIX, train=train, dev=dev, test=test)


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
