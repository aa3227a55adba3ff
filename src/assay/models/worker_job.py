"""Serialises one training job for a worker process: JSON in a folder, with the weights of a teacher, if any."""

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
from assay.models.network import Network
from assay.models.objectives import Guided, Imitated, Labels, Objective, Without
from assay.models.recipes import Recipe
from assay.models.shapes import built

JOB_FILE, TEACHER = "job.json", "teacher.safetensors"
OBJECTIVES: dict[str, type[Any]] = {kind.__name__: kind for kind in (Labels, Guided, Imitated, Without)}


@dataclass(frozen=True)
class WorkerJob:
    """The arguments of one training run; rounding depends on the number of threads, so it is the caller's."""

    corpus: Corpus
    recipe: Recipe
    folder: Path
    device: str
    objective: Objective | None
    threads: int

    def write(self, folder: Path) -> None:
        """Writes all that decides the weights to a folder; evidence and test texts are left out."""
        stored = {
            "corpus": {"name": self.corpus.name, "classes": self.corpus.classes},
            "train": [_row(example) for example in self.corpus.train],
            "dev": [_row(example) for example in self.corpus.dev],
            "recipe": asdict(self.recipe),
            "folder": str(self.folder.absolute()),
            "device": self.device,
            "objective": None if self.objective is None else _objective_json(self.objective, folder),
            "threads": self.threads,
        }
        write_text(folder / JOB_FILE, json.dumps(stored))

    @classmethod
    def read(cls, folder: Path) -> WorkerJob:
        """Reads the job from a folder."""
        stored = json.loads((folder / JOB_FILE).read_text(encoding="utf-8"))
        train, dev = (tuple(map(_example, stored[split])) for split in ("train", "dev"))
        corpus = Corpus(stored["corpus"]["name"], tuple(stored["corpus"]["classes"]), train, dev, ())
        objective = None if stored["objective"] is None else _objective(stored["objective"], folder)
        return cls(
            corpus, Recipe.of(stored["recipe"]), Path(stored["folder"]), stored["device"], objective, stored["threads"]
        )


def _row(example: Example) -> list[Any]:
    return [example.text, example.label, example.query, example.candidates]


def _example(row: list[Any]) -> Example:
    text, label, query, candidates = row
    return Example(text, label, query=query, candidates=None if candidates is None else tuple(candidates))


def _objective_json(objective: Any, folder: Path) -> dict[str, Any]:
    """An objective as JSON; the weights of its teacher go into a file beside it."""
    stored: dict[str, Any] = {"kind": type(objective).__name__}
    for each in fields(objective):
        value = getattr(objective, each.name)
        if isinstance(value, Network):
            tensors.save(value.state_dict(), folder / TEACHER)
            sizes = value.embedding.num_embeddings, value.decoder.out_features
            value = {"architecture": asdict(value.architecture), "sizes": sizes}
        stored[each.name] = value
    return stored


def _objective(stored: dict[str, Any], folder: Path) -> Objective:
    given: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()}
    if (teacher := given.get("teacher")) is not None:
        weights = load_file(folder / TEACHER)
        network = built(Architecture(**teacher["architecture"]), *teacher["sizes"])
        given["teacher"] = network.to(weights["decoder.weight"].dtype).eval()
        network.load_state_dict(weights)
    objective: Objective = OBJECTIVES[given.pop("kind")](**given)
    return objective
