"""Four modes of self-rationalising sequence models: source and target formats, and the decider."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from assay.data.examples import Example
from assay.data.explained import Explained, ExplainedCorpus
from assay.data.text import TextOptions, Tokeniser
from assay.errors import AssayError, unknown
from assay.rationales.text.pairs import Pair

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
