"""Trains text explainers on a corpus with explanations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from assay.data.explained import Explained, ExplainedCorpus
from assay.data.text import TextOptions, Tokeniser
from assay.models.config import Training
from assay.rationales.text.deciders import reader_pairs, scorer_pairs
from assay.rationales.text.explainer import TextExplainer, candidates_of
from assay.rationales.text.modes import Task, explained_pairs, label_pairs, mode_of, unexplained, vocabulary
from assay.rationales.text.pairs import Pair
from assay.rationales.text.teaching import train
from assay.rationales.text.writer import Writer, WriterRecipe


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
