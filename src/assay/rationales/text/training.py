"""From a corpus with explanations to an explainer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from assay.data.explained import Explained, ExplainedCorpus
from assay.data.text import TextOptions, Tokeniser
from assay.models.options import Training
from assay.rationales.text.deciders import reader_pairs, scorer_pairs
from assay.rationales.text.explainer import TextExplainer, candidates_of
from assay.rationales.text.modes import Task, explained_pairs, label_pairs, mode_of, unexplained, vocabulary
from assay.rationales.text.pairs import Pair
from assay.rationales.text.teaching import train
from assay.rationales.text.writer import Writer, WriterRecipe


@dataclass(frozen=True)
class TextRecipe:
    """How the parts are trained.

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
    """A corpus, its words, and where all writers start and are kept."""

    corpus: ExplainedCorpus
    recipe: TextRecipe
    tokeniser: Tokeniser
    start: Writer | None
    folder: Path | None
    device: str

    @classmethod
    def of(cls, corpus: ExplainedCorpus, recipe: TextRecipe, folder: Path | None = None, device: str = "cpu") -> School:
        """Where the recipe wants it, labels have been learnt."""
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
        """Items whose explanations no writer has learnt, or where there are none, those to train on."""
        return unexplained(self.corpus.unexplained[: self.recipe.more]) or self.corpus.train

    def taught(self, name: str, recipe: WriterRecipe, pairs: Sequence[Pair], dev: Sequence[Pair]) -> Writer:
        """A writer that learnt the pairs; what is stored under that name is only read."""
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
        """What tells the label of an explanation that it sees alone, taught by those that people wrote."""
        pairs = [reader_pairs(self.task, each) for each in (self.corpus.train, self.corpus.dev)]
        return self.taught("reader", self.recipe.decider, *pairs)

    def scorer(self, writer: Writer) -> Writer:
        """What scores an explanation for each label, taught by those of the writer for examples it did not learn."""
        task, beside = self.task, self.recipe.beside
        pairs = [
            scorer_pairs(task, each, candidates_of(writer, task, each), beside)
            for each in (self.aside, self.corpus.dev)
        ]
        return self.taught("scorer-beside" if beside else "scorer", self.recipe.decider, *pairs)
