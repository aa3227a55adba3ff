"""One corpus of the study: explainers in all modes, what their explanations are worth, and those of people."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from assay.data.annotated import Explained, ExplainedCorpus
from assay.data.text import TextOptions
from assay.metrics.intervals import shares
from assay.metrics.performance import Simulatability
from assay.models.config import Training
from assay.rationales.sequences import Sizes
from assay.rationales.text_explanations import Answers, School, Task, TextExplainer, TextRecipe, deranged, read
from assay.rationales.text_measuring import consistency, exchanged, overlap, simulated
from assay.rationales.writers import Writer, WriterRecipe
from studies.results import Result

PLAIN = Training(epochs=10, patience=2, batch_size=128, learning_rate=1e-3, decay=1e-2, clip=1.0)
FEW = replace(PLAIN, epochs=5, patience=1)
FULL, SMALL = Sizes(embedding=256, hidden=192, layers=0, dropout=0.3), Sizes(128, 64, layers=0, dropout=0.1)


@dataclass(frozen=True)
class Scale:
    """How the parts are trained, and how many items of each split are used."""

    recipe: TextRecipe
    labels: Training
    items: dict[str, int | None]

    def of(self, corpus: ExplainedCorpus) -> ExplainedCorpus:
        """So much of the corpus."""
        return replace(corpus, **{name: getattr(corpus, name)[:count] for name, count in self.items.items()})


SCALES = {
    "full": Scale(
        TextRecipe(WriterRecipe(FULL, PLAIN), WriterRecipe(FULL, FEW), more=10_000),
        replace(PLAIN, epochs=6, batch_size=64),
        {},
    ),
    "small": Scale(
        TextRecipe(
            WriterRecipe(SMALL, replace(PLAIN, epochs=5, batch_size=32)),
            WriterRecipe(SMALL, replace(FEW, epochs=3, batch_size=32)),
            more=1_500,
            text=TextOptions(min_count=5),
        ),
        replace(PLAIN, epochs=4, batch_size=32),
        {"train": 1_500, "dev": 250, "test": 600, "unexplained": 12_000},
    ),
    "trial": Scale(
        TextRecipe(WriterRecipe(Sizes(16, 8), FEW), WriterRecipe(Sizes(16, 8), replace(FEW, epochs=2)), more=20),
        replace(FEW, epochs=1),
        dict.fromkeys(("train", "dev", "test", "unexplained"), 20),
    ),
}
BEAMS, ERASED, SHOWN = 4, 1000, 5
BESIDE = "label_specific, example beside"
TOGETHER = (
    ("predict_then_explain",),
    ("explain_then_predict",),
    ("label_specific", BESIDE),
    ("joint_prefix",),
    ("people",),
)
"""Rows; those that share a writer stand together."""

ROWS = tuple(name for group in TOGETHER for name in group)


@dataclass(frozen=True)
class Cell:
    """A corpus, the folder of its models, and how they are trained."""

    corpus: ExplainedCorpus
    folder: Path
    device: str = "cpu"
    scale: str = "full"

    @property
    def recipe(self) -> TextRecipe:
        scale = SCALES[self.scale]
        return replace(scale.recipe, labels=scale.labels if self.corpus.unexplained else None)

    @cached_property
    def school(self) -> School:
        return School.of(self.corpus, self.recipe, self.folder, self.device)

    @cached_property
    def reader(self) -> Writer:
        return self.school.reader()

    @property
    def task(self) -> Task:
        return self.school.task

    def about(self) -> Result:
        """The corpus and where the models were trained."""
        corpus, start = self.corpus, self.school.start
        labels = np.array([item.example.label for item in corpus.test])
        sizes = {name: len(getattr(corpus, name)) for name in ("train", "dev", "test", "unexplained")}
        alone = (
            None if start is None else _shares(start.chosen(_asked(self.task, corpus.test), self.task.words) == labels)
        )
        return {
            "created": datetime.now(UTC).isoformat(timespec="minutes"),
            "device": torch.cuda.get_device_name() if self.device.startswith("cuda") else "cpu",
            "versions": {"torch": torch.__version__.partition("+")[0]},
            "sizes": sizes,
            "scale": self.scale,
            "words": len(self.school.tokeniser.vocabulary),
            "labels alone": alone,
            "most frequent": float(np.bincount(labels).max() / len(labels)),
        }

    def rows(self, names: Sequence[str]) -> dict[str, Result]:
        """Some rows, one after the other."""
        return {name: self.row(name) for name in names}

    def row(self, name: str) -> Result:
        """All that is known of one mode, or of what people wrote."""
        return self.people() if name == "people" else self.mode(name)

    def mode(self, name: str) -> Result:
        """An explainer in one mode: how often it is right, how close to people, and whether explanations matter."""
        began, items = time.monotonic(), self.corpus.test
        school = replace(self.school, recipe=replace(self.school.recipe, beside=name == BESIDE))
        explainer = school.explainer(name.partition(",")[0])
        answers = explainer(items, BEAMS)
        taught = school.aside
        las = simulated(
            school,
            name.replace(", ", "-").replace(" ", "-"),
            (taught, explainer(taught)),
            (items, answers),
            self.recipe.decider,
        )
        found = self._worth(explainer, answers) | {"las": _las(las)}
        if name == "joint_prefix":
            found["labels alone"] = _shares(explainer.labels_alone(items) == _labels(items))
        shown = [{"label": self.task.words[item.example.label]} for item in items[:SHOWN]]  # the texts are not ours
        for line, label, why in zip(shown, answers.labels, answers.explanations, strict=False):
            line |= {"answer": self.task.words[label] if label >= 0 else "none", "explanation": why}
        return found | {"shown": shown, "parameters": _size(explainer.writer), "seconds": time.monotonic() - began}

    def _worth(self, explainer: TextExplainer, answers: Answers) -> Result:
        items, words = self.corpus.test, self.school.tokeniser
        references = [item.explanations for item in items]
        first = items[:ERASED]
        part = Answers(explainer(first).labels, answers.explanations[:ERASED])
        return {
            "accuracy": _shares(answers.labels == _labels(items)),
            "overlap": overlap(answers.explanations, references, words),
            "overlap, two references": overlap(answers.explanations, [each[:2] for each in references], words),
            "exchanged": _means(exchanged(explainer, answers, items, self.reader)),
            "erased": _means(consistency(explainer, part, first)),
        }

    def people(self) -> Result:
        """The same for what people wrote: explanations of the right label."""
        items, task = self.corpus.test, self.task
        written = [item.explanations[-1] for item in items]
        labels, others = _labels(items), deranged(len(items))
        own = float((read(self.reader, task, items, written) == labels).mean())
        moved = float((read(self.reader, task, items, [written[place] for place in others]) == labels).mean())
        taught, tested = (
            (each, Answers(_labels(each), tuple(item.explanations[-1] for item in each)))
            for each in (self.corpus.train, items)
        )
        las = simulated(self.school, "people", taught, tested, self.recipe.decider)
        several = [(item.explanations[-1], item.explanations[:-1]) for item in items if len(item.explanations) > 1]
        known = overlap([one for one, _ in several], [rest for _, rest in several]) if several else None
        return {"exchanged": {"own": own, "others": moved}, "las": _las(las), "overlap, two references": known}


def _means(found: object) -> Result:
    """The share of items for which each of its flags is true."""
    return {name: float(flags.mean()) for name, flags in vars(found).items()}


def _asked(task: Task, items: Sequence[Explained]) -> list[str]:
    return [task.asked(item) for item in items]


def _labels(items: Sequence[Explained]) -> np.ndarray:
    return np.array([item.example.label for item in items])


def _size(writer: Writer) -> int:
    return sum(parameter.numel() for parameter in writer.network.parameters())


def _shares(right: np.ndarray) -> list[float]:
    """The mean and its interval."""
    found = shares(right[:, None].astype(np.float64))
    return [float(each[0]) for each in (found.mean, found.low, found.high)]


def _las(found: Simulatability) -> Result:
    """What JSON can hold of it: no nan."""
    values = asdict(found) | {"count": list(found.count), "empty": list(found.empty)}
    values["gain"] = [None if np.isnan(each) else each for each in found.gain]
    return values
