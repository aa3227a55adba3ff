"""What a process that trains is told: a folder with JSON and, where a lesson has a teacher, its weights."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from assay.data.examples import Corpus, Example
from assay.files import write_text
from assay.models import tensors
from assay.models.architecture import Architecture
from assay.models.lessons import Guided, Imitated, Labels, Lesson, Without
from assay.models.network import Network
from assay.models.recipes import Recipe
from assay.models.shapes import built

TOLD, TEACHER = "job.json", "teacher.safetensors"
LESSONS: dict[str, type[Any]] = {kind.__name__: kind for kind in (Labels, Guided, Imitated, Without)}


@dataclass(frozen=True)
class Job:
    """One training; rounding depends on the number of threads, so it is the caller's."""

    corpus: Corpus
    recipe: Recipe
    folder: Path
    device: str
    lesson: Lesson | None
    threads: int

    def write(self, place: Path) -> None:
        """Leaves all that decides the weights in a folder; evidence and test texts have no part in them."""
        told = {
            "corpus": {"name": self.corpus.name, "classes": self.corpus.classes},
            "train": [_row(example) for example in self.corpus.train],
            "dev": [_row(example) for example in self.corpus.dev],
            "recipe": asdict(self.recipe),
            "folder": str(self.folder.absolute()),
            "device": self.device,
            "lesson": None if self.lesson is None else _lesson(self.lesson, place),
            "threads": self.threads,
        }
        write_text(place / TOLD, json.dumps(told))

    @classmethod
    def read(cls, place: Path) -> Job:
        """The job that was left there."""
        told = json.loads((place / TOLD).read_text(encoding="utf-8"))
        train, dev = (tuple(map(_example, told[split])) for split in ("train", "dev"))
        corpus = Corpus(told["corpus"]["name"], tuple(told["corpus"]["classes"]), train, dev, ())
        lesson = None if told["lesson"] is None else _taught(told["lesson"], place)
        return cls(corpus, Recipe.of(told["recipe"]), Path(told["folder"]), told["device"], lesson, told["threads"])


def _row(example: Example) -> list[Any]:
    return [example.text, example.label, example.query, example.candidates]


def _example(row: list[Any]) -> Example:
    text, label, query, candidates = row
    return Example(text, label, query=query, candidates=None if candidates is None else tuple(candidates))


def _lesson(lesson: Any, place: Path) -> dict[str, Any]:
    """The lesson as JSON can hold it; its network is stored beside."""
    told: dict[str, Any] = {"kind": type(lesson).__name__}
    for each in fields(lesson):
        value = getattr(lesson, each.name)
        if isinstance(value, Network):
            tensors.save(value.state_dict(), place / TEACHER)
            sizes = value.embedding.num_embeddings, value.decoder.out_features
            value = {"architecture": asdict(value.architecture), "sizes": sizes}
        told[each.name] = value
    return told


def _taught(told: dict[str, Any], place: Path) -> Lesson:
    given: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in told.items()}
    if (teacher := given.get("teacher")) is not None:
        weights = load_file(place / TEACHER)
        network = built(Architecture(**teacher["architecture"]), *teacher["sizes"])
        given["teacher"] = network.to(weights["decoder.weight"].dtype).eval()
        network.load_state_dict(weights)
    lesson: Lesson = LESSONS[given.pop("kind")](**given)
    return lesson
