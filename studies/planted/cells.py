"""One cell: a candidate that is taught and judged by dev texts, or the audit of the chosen one on test texts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

import numpy as np
import torch

from assay.data.batches import tokenise
from assay.data.examples import Corpus, Example
from assay.data.planted import PLANTED
from assay.metrics.performance import accuracy
from assay.models import store
from assay.models.recipes import Recipe, train
from assay.models.store import Trained
from assay.models.textmodel import predict
from assay.records import Record
from assay.run.auditing import audited
from assay.run.examination import AuditPlan
from studies.planted import subjects
from studies.planted.lessons import APART, Lesson, gone_on, taught
from studies.planted.subjects import Subject
from studies.results import Result

KEPT = (("truth", "auprc"), ("shortcut", "shown"), ("shortcut", "used"), ("erasure", "comprehensiveness"))
WIDE = 256  # models with states of this size and above are trained on the device that was asked for, others on the CPU


@dataclass(frozen=True)
class Taught:
    """A candidate taught with one seed: its weights stay in the folder for runs."""

    subject: str
    candidate: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.subject}/{self.candidate}/{self.seed}"

    def made(self, runs: Path, device: str) -> Result:
        """The accuracy on dev texts, of all corpora together and of each."""
        started, subject, lesson = monotonic(), self._subject, self._lesson
        corpus = replace(lesson.corpus(subject.corpora[0], self.seed), test=())
        where = device if lesson.recipe.architecture.hidden >= WIDE else "cpu"
        model = learnt(corpus, lesson, self.seed, self.folder(runs), where)
        return {
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "device": named(model.device),
            "torch": torch.__version__,
            "dev": right(model, corpus.dev),
            "each": {name: right(model, first(name, self.seed).dev) for name in subject.corpora},
            "texts": len(corpus.train),
            "best_epoch": model.history["best_epoch"],
            "seconds": round(monotonic() - started, 1),
        }

    def folder(self, runs: Path) -> Path:
        return runs / self.name

    def model(self, runs: Path) -> Trained:
        """What was taught, on the CPU."""
        return store.load(self.folder(runs) / ("model" if self._lesson.second is None else "second"), "cpu")

    @property
    def _subject(self) -> Subject:
        return subjects.SUBJECTS[self.subject]

    @property
    def _lesson(self) -> Lesson:
        return self._subject.candidates[self.candidate]


@dataclass(frozen=True)
class Audited:
    """The audit of a model that was taught, on the test texts of one corpus."""

    subject: str
    candidate: str
    seed: int
    corpus: str

    @property
    def name(self) -> str:
        return f"{self.subject}/{self.candidate}/{self.seed}/{subjects.title(self.corpus)}"

    def made(self, runs: Path, device: str) -> Result:
        """The accuracy on all test texts, and what the audits find on some of them; always on the CPU."""
        started, subject = monotonic(), subjects.SUBJECTS[self.subject]
        model, corpus = Taught(self.subject, self.candidate, self.seed).model(runs), first(self.corpus, self.seed)
        plan = AuditPlan(subject.explainers, subject.audits, seed=self.seed, limit=subjects.texts(self.corpus))
        record = audited(model, corpus.test, plan, runs / self.name, {"corpus": {"name": corpus.name}}, corpus)
        return {
            "created": record.summary["created"],
            "device": record.summary["device"],
            "torch": record.summary["versions"]["torch"],
            "test": right(model, corpus.test),
            "texts": record.summary["corpus"]["audited"],
            "measures": measures(record),
            "seconds": round(monotonic() - started, 1),
        }


def first(name: str, seed: int) -> Corpus:
    """The corpus whose dev and test texts belong to a seed of the study."""
    return taught(PLANTED[name], seed * APART)


def learnt(corpus: Corpus, lesson: Lesson, seed: int, folder: Path, device: str) -> Trained:
    """The model that had the lesson; an interrupted training goes on."""
    model = train(replace(corpus, name="+".join(lesson.together) or corpus.name), seeded(lesson.recipe, seed),
                  folder / "model", device)  # fmt: skip
    if lesson.second is None:
        return model
    return gone_on(model, corpus, replace(lesson.second, seed=seed), folder / "second")


def seeded(recipe: Recipe, seed: int) -> Recipe:
    return replace(recipe, training=replace(recipe.training, seed=seed))


def right(model: Trained, examples: tuple[Example, ...]) -> float:
    """The accuracy."""
    rows, _ = tokenise(examples, model.tokeniser, model.tokeniser.options.longest)
    return round(accuracy(np.array([row.label for row in rows]), predict(model.network, rows).argmax(-1)), 6)


def measures(record: Record) -> dict[str, dict[str, float]]:
    """The means that the page shows: by audit and measure, then by explainer."""
    found: dict[str, dict[str, float]] = {}
    for each in record.findings:
        if (each.audit, each.measure) in KEPT and each.group == "all":
            found.setdefault(f"{each.audit}.{each.measure}", {})[each.subject] = round(each.mean, 6)
    return found


def named(device: torch.device) -> str:
    """The device as records name it."""
    return "cpu" if device.type == "cpu" else torch.cuda.get_device_name(device)
