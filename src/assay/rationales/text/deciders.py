"""Deciders: models that predict from explanations, alone or beside the example."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Int

from assay.data.explained import Explained
from assay.errors import AssayError
from assay.rationales.text.modes import Task
from assay.rationales.text.pairs import Pair
from assay.rationales.text.writer import Writer

Labels = Int[np.ndarray, " N"]
Candidates = Sequence[Sequence[str]]
"""Explanations of each item, one for each label."""


def reader_pairs(task: Task, items: Iterable[Explained]) -> list[Pair]:
    """Training pairs of a reader: explanation to label; Camburu et al. (2018)."""
    return [
        Pair(task.read(item, why), task.words[item.example.label], whole=False)
        for item in items
        for why in item.explanations
    ]


def read(reader: Writer, task: Task, items: Sequence[Explained], explanations: Sequence[str]) -> Labels:
    """The labels that a reader predicts from explanations alone."""
    sources = [task.read(item, why) for item, why in zip(items, explanations, strict=True)]
    return reader.chosen(sources, task.words)


def scorer_pairs(
    task: Task, items: Sequence[Explained], candidates: Candidates, beside: bool = False, seed: int = 0
) -> list[Pair]:
    """Training pairs of a scorer: the explanation for each label to the right label.

    Where the example stands `beside`, a scorer could ignore explanations: those of other examples are taught as well,
    each with a label drawn at random, so that they tell nothing (Kumar and Talukdar, 2020, "negative samples").
    """
    # differs from Kumar and Talukdar (2020): were explanations of others merely wrong, then what little probability is
    # left to each label would still tell the label of the example; the best answer to a random label is none
    random, others = np.random.default_rng(seed), deranged(len(items), seed)
    pairs = []
    for item, own, other in zip(items, candidates, others, strict=True):
        for label, why in enumerate(own):
            pairs.append(Pair(task.scored(item, label, why, beside), task.words[item.example.label], whole=False))
            if beside:
                drawn, strange = int(random.integers(len(task.words))), candidates[other][label]
                pairs.append(Pair(task.scored(item, label, strange, beside), task.words[drawn], whole=False))
    return pairs


def scored(
    scorer: Writer, task: Task, items: Sequence[Explained], candidates: Candidates, beside: bool = False
) -> Labels:
    """The label whose own explanation supports it most; Kumar and Talukdar (2020), NILE, independent."""
    count, pairs = len(task.words), zip(items, candidates, strict=True)
    sources = [task.scored(item, label, why, beside) for item, each in pairs for label, why in enumerate(each)]
    scores = scorer.first(sources, task.words).reshape(len(items), count, count)
    labels: Labels = np.diagonal(scores, axis1=1, axis2=2).argmax(-1)
    return labels


def deranged(count: int, seed: int = 0) -> Int[np.ndarray, " N"]:
    """A random permutation without fixed points."""
    if count < 2:
        raise AssayError("At least two items are needed to exchange their explanations.")
    order = np.random.default_rng(seed).permutation(count)
    moved = np.empty_like(order)
    moved[order] = np.roll(order, 1)
    return moved
