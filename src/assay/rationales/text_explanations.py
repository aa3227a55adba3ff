"""Explanations as sentences: modes of self-rationalising sequence models, their training, and tests of faithfulness."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import Int

from assay.data.annotated import Explained, ExplainedCorpus
from assay.data.examples import Example
from assay.data.text import TextOptions, Tokeniser
from assay.errors import AssayError, unknown
from assay.models.config import Training
from assay.rationales.sequences import Pair
from assay.rationales.writers import Writer, WriterRecipe, train

# Modes: formats of source and target, and what decides

BECAUSE, EXPLAIN, EXPLANATION = "because", "explain", "explanation :"


@dataclass(frozen=True)
class Task:
    """Task description: the classes and the names of a corpus's parts."""

    classes: tuple[str, ...]
    parts: tuple[str, str]

    @classmethod
    def of(cls, corpus: ExplainedCorpus) -> Task:
        """The task of a corpus."""
        return cls(corpus.classes, corpus.parts)

    @property
    def words(self) -> tuple[str, ...]:
        """The one-word label of each class."""
        names = tuple(name.lower() for name in self.classes)
        if odd := next((name for name in names if not name.isalnum()), None):
            raise AssayError(f"The class {odd!r} is not one word; rename it, since labels are written as words.")
        return names

    def asked(self, item: Explained) -> str:
        """The example as one source text."""
        first, second = self.parts
        return f"{first} : {item.example.text} {second} : {item.example.query or ''}"

    def named(self, item: Explained, label: int) -> str:
        """The label with the answer choice that it stands for."""
        name = self.words[label]
        return name if item.choices is None else f"{name} {item.choices[label]}"

    def read(self, item: Explained, explanation: str) -> str:
        """An explanation alone, as the reader's source."""
        choices = "" if item.choices is None else f" {self.parts[1]} : {item.example.query}"
        return f"{EXPLANATION} {explanation}{choices}"

    def scored(self, item: Explained, label: int, explanation: str, beside: bool) -> str:
        """An explanation for one label, optionally with the example, as the scorer's source."""
        example = f" {self.asked(item)}" if beside else ""
        return f"{self.named(item, label)} {self.read(item, explanation)}{example}"


@dataclass(frozen=True)
class Mode:
    """Formats of one mode: `source` from the label and the example, `target` from the label and an explanation.

    Who `decides`: the first word that is written, a reader of the explanation alone, or a scorer of one explanation
    for each label. With `bare`, sources without the prefix are answered by the label alone.
    """

    source: Callable[[str, str], str]
    target: Callable[[str, str], str]
    decides: Literal["prefix", "reader", "scorer"]
    bare: bool = False


MODES = {
    # Camburu et al. (2018), PredictAndExplain
    "predict_then_explain": Mode(lambda label, asked: asked, lambda label, why: f"{label} {BECAUSE} {why}", "prefix"),
    # Camburu et al. (2018), ExplainThenPredict
    "explain_then_predict": Mode(lambda label, asked: asked, lambda label, why: why, "reader"),
    # Kumar and Talukdar (2020), NILE
    "label_specific": Mode(lambda label, asked: f"{label} : {asked}", lambda label, why: why, "scorer"),
    # Narang et al. (2020), WT5
    "joint_prefix": Mode(
        lambda label, asked: f"{EXPLAIN} {asked}", lambda label, why: f"{label} {BECAUSE} {why}", "prefix", bare=True
    ),
}


def mode_of(name: str) -> Mode:
    """The mode of that name."""
    if name not in MODES:
        raise unknown("mode", name, MODES)
    return MODES[name]


def unexplained(examples: Iterable[Example]) -> list[Explained]:
    """Examples without explanations."""
    return [Explained(example, ()) for example in examples]


def explained_pairs(name: str, task: Task, items: Sequence[Explained], more: Sequence[Explained] = ()) -> list[Pair]:
    """Training pairs of the writer: every explanation of every item and, in modes with bare sources, labels."""
    mode, pairs = mode_of(name), []
    for item in items:
        asked, label = task.asked(item), item.example.label
        for why in item.explanations:
            source = mode.source(task.named(item, label), asked)
            pairs.append(Pair(source, mode.target(task.words[label], why)))
    return pairs + (label_pairs(task, (*items, *more)) if mode.bare else [])


def label_pairs(task: Task, items: Iterable[Explained]) -> list[Pair]:
    """Training pairs from the example alone to the label alone."""
    return [Pair(task.asked(item), task.words[item.example.label]) for item in items]


def vocabulary(corpus: ExplainedCorpus, options: TextOptions | None = None) -> Tokeniser:
    """One tokeniser for sources and targets: the training words, and those of the formats."""
    options = options or TextOptions()
    task = Task.of(corpus)

    def texts() -> Iterator[str]:
        for _ in range(options.min_count):
            yield from (*task.words, *task.parts, BECAUSE, EXPLAIN, EXPLANATION)
        for item in (*corpus.train, *unexplained(corpus.unexplained)):
            yield task.asked(item)
            yield from item.explanations

    return Tokeniser.fit(texts(), options)


# Deciders: models that predict from explanations, alone or beside the example

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


# The explainer: a writer, and where the mode needs it, a decider


@dataclass(frozen=True)
class Answers:
    """A label for each item (−1 where none was generated), its explanation, and those of all labels where generated."""

    labels: Labels
    explanations: tuple[str, ...]
    candidates: tuple[tuple[str, ...], ...] | None = None


@dataclass(frozen=True)
class TextExplainer:
    """Predicts and explains in one of four modes; a decider may read the example `beside` each explanation."""

    mode: str
    task: Task
    writer: Writer
    decider: Writer | None = None
    beside: bool = False

    def __call__(self, items: Sequence[Explained], beams: int = 1) -> Answers:
        """Predictions with explanations."""
        mode, task = mode_of(self.mode), self.task
        if mode.decides == "scorer":
            candidates = candidates_of(self.writer, task, items, beams)
            labels = self.decided(items, candidates)
            chosen = tuple(each[label] for each, label in zip(candidates, labels, strict=True))
            return Answers(labels, chosen, candidates)
        written, _ = self.writer([mode.source("", task.asked(item)) for item in items], beams)
        if mode.decides == "reader":
            return Answers(self.decided(items, [(text,) for text in written]), tuple(written))
        split = [text.partition(f" {BECAUSE} ") for text in written]
        known = {name: label for label, name in enumerate(task.words)}
        labels = np.array([known.get(start.strip(), -1) for start, _, _ in split])
        return Answers(labels, tuple(why for _, _, why in split))

    def decided(self, items: Sequence[Explained], candidates: Candidates) -> Labels:
        """The labels predicted from explanations: one for each item, or one for each of its labels."""
        if self.decider is None:
            raise AssayError(f"In the mode {self.mode!r} nothing decides by the explanation; use a reader.")
        if mode_of(self.mode).decides == "scorer":
            return scored(self.decider, self.task, items, candidates, self.beside)
        return read(self.decider, self.task, items, [why for (why,) in candidates])

    def labels_alone(self, items: Sequence[Explained]) -> Labels:
        """Labels without explanations, from bare sources; Narang et al. (2020)."""
        return self.writer.chosen([self.task.asked(item) for item in items], self.task.words)


def candidates_of(
    writer: Writer, task: Task, items: Sequence[Explained], beams: int = 1
) -> tuple[tuple[str, ...], ...]:
    """An explanation of each item for each label."""
    source, count = mode_of("label_specific").source, len(task.words)
    asked = [source(task.named(item, label), task.asked(item)) for item in items for label in range(count)]
    written, _ = writer(asked, beams)
    return tuple(tuple(written[start : start + count]) for start in range(0, len(written), count))


# Training


@dataclass(frozen=True)
class TextRecipe:
    """Training options of writer and deciders.

    Of the examples without explanation, all teach `labels` before anything else where that is asked for; so many of
    them as `more` says teach the bare label in the joint mode, and what scores explanations for labels.
    """

    writer: WriterRecipe = field(default_factory=WriterRecipe)
    decider: WriterRecipe = field(default_factory=WriterRecipe)
    labels: Training | None = None
    more: int = 10_000
    text: TextOptions = field(default_factory=TextOptions)
    beside: bool = False  # the scorer sees the example beside each explanation


@dataclass(frozen=True)
class School:
    """A corpus with its vocabulary, the initial writer, and the folder where writers are stored."""

    corpus: ExplainedCorpus
    recipe: TextRecipe
    tokeniser: Tokeniser
    start: Writer | None
    folder: Path | None
    device: str

    @classmethod
    def of(cls, corpus: ExplainedCorpus, recipe: TextRecipe, folder: Path | None = None, device: str = "cpu") -> School:
        """Prepares a corpus; trains on labels first where the recipe says so."""
        school = cls(corpus, recipe, vocabulary(corpus, recipe.text), None, folder, device)
        if recipe.labels is None:
            return school
        more = unexplained(corpus.unexplained)
        pairs = [label_pairs(school.task, each) for each in ((*corpus.train, *more), corpus.dev)]
        return replace(school, start=school.taught("labels", replace(recipe.writer, training=recipe.labels), *pairs))

    @property
    def task(self) -> Task:
        return Task.of(self.corpus)

    @property
    def aside(self) -> Sequence[Explained]:
        """Items whose explanations no writer was trained on, or the training items where there are none."""
        return unexplained(self.corpus.unexplained[: self.recipe.more]) or self.corpus.train

    def taught(self, name: str, recipe: WriterRecipe, pairs: Sequence[Pair], dev: Sequence[Pair]) -> Writer:
        """A writer trained on the pairs; one stored under that name is only loaded."""
        folder = None if self.folder is None else self.folder / name
        return train(recipe, pairs, dev, self.tokeniser, folder, self.start, self.device)

    def explainer(self, mode: str) -> TextExplainer:
        """The explainer of that mode."""
        decides, task, corpus = mode_of(mode).decides, self.task, self.corpus
        more = unexplained(corpus.unexplained[: self.recipe.more])
        pairs, dev = explained_pairs(mode, task, corpus.train, more), explained_pairs(mode, task, corpus.dev)
        writer = self.taught(mode, self.recipe.writer, pairs, dev)
        if decides == "prefix":
            return TextExplainer(mode, task, writer)
        decider = self.reader() if decides == "reader" else self.scorer(writer)
        return TextExplainer(mode, task, writer, decider, self.recipe.beside)

    def reader(self) -> Writer:
        """The decider by explanations alone, trained on human ones."""
        pairs = [reader_pairs(self.task, each) for each in (self.corpus.train, self.corpus.dev)]
        return self.taught("reader", self.recipe.decider, *pairs)

    def scorer(self, writer: Writer) -> Writer:
        """The scorer of an explanation for each label, trained on the writer's own for held-out examples."""
        task, beside = self.task, self.recipe.beside
        pairs = [
            scorer_pairs(task, each, candidates_of(writer, task, each), beside)
            for each in (self.aside, self.corpus.dev)
        ]
        return self.taught("scorer-beside" if beside else "scorer", self.recipe.decider, *pairs)
