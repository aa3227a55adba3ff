"""One cell: a recipe, played by one kind of model on one corpus, and what its selections are worth."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from assay.data.corpora import corpus
from assay.data.examples import Corpus
from assay.errors import AssayError
from assay.files import write_text
from assay.models.recipes import Recipe
from assay.rationales.training import Rationalising, rationaliser
from assay.run.selections import examined
from assay.run.wanted import chosen
from studies.results import Result

CORPORA = ("hatexplain", "movies", "planted:phrase")
MODELS = ("bilstm", "minilm")
LONGEST = 4000  # words: no review is left out where a network of ours reads; MiniLM reads the first 512 pieces

BILSTM = {"encoder": "lstm", "vectors": "glove", "hidden": 100, "learning_rate": 1e-3}
SETTINGS: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("hatexplain", "bilstm"): BILSTM | {"epochs": 12, "batch_size": 128},
    ("movies", "bilstm"): BILSTM | {"epochs": 20, "batch_size": 32},
    ("planted:phrase", "bilstm"): {"encoder": "lstm", "embedding": 48, "hidden": 32, "epochs": 20, "batch_size": 64},
    ("hatexplain", "minilm"): {"epochs": 6, "batch_size": 64},
    ("movies", "minilm"): {"epochs": 8, "batch_size": 16},
    ("planted:phrase", "minilm"): {"epochs": 10, "batch_size": 64},
}
KEPT = ("created", "device", "versions", "selecting", "reads", "critic", "measures", "pooled", "collapse")


@dataclass(frozen=True)
class Cell:
    """A recipe by name, on a corpus by name, with "bilstm" or "minilm" players."""

    corpus: str
    model: str
    recipe: str
    seed: int = 0
    limit: int | None = None  # of training texts, for a trial

    @property
    def name(self) -> str:
        trial = "" if self.limit is None else f"-{self.limit}"
        return f"{self.corpus.replace(':', '-')}-{self.model}-{self.recipe}{trial}"

    def asked(self, device: str) -> Rationalising:
        options = dict(SETTINGS[self.corpus, self.model])
        encoder = "minilm" if self.model == "minilm" else None
        wanted = chosen(self.recipe, encoder, seed=self.seed, device=device, **options)
        if isinstance(wanted.base, Recipe):
            text = replace(wanted.base.text, longest=LONGEST)
            wanted = replace(wanted, base=replace(wanted.base, text=text))
        return wanted

    def result(self, device: str, runs: Path | None = None) -> Result:
        """The measures, or why there are none; with a folder for runs, an interrupted training goes on there."""
        given, started = texts(self.corpus, self.seed, self.limit), time.monotonic()
        folder = None if runs is None else runs / self.name / "model"
        try:
            model = rationaliser(given, self.asked(device), folder, device)
        except AssayError as fault:
            return {"failed": str(fault)}
        except torch.OutOfMemoryError:
            return {"failed": "not enough memory"}
        seconds = round(time.monotonic() - started, 1)
        answer = examined(model, given, self.seed)
        held = {name: answer[name] for name in KEPT if name in answer}
        about = {"name": given.name, **{name: answer["corpus"][name] for name in ("measured", "marked", "majority")}}
        training = {name: answer["model"][name] for name in ("epochs", "best_epoch", "best_dev", "shares")}
        return held | {"corpus": about, "training": training, "seconds": seconds}


def kept(cell: Cell, results: Path, device: str, again: bool = False, runs: Path | None = None) -> Result:
    """The result in the folder, or one that is made now and put there."""
    path = results / f"{cell.name}.json"
    found: Result = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if not found or (again and "failed" in found):
        found = cell.result(device, runs)
        write_text(path, json.dumps(found, indent=1, allow_nan=False) + "\n")
    return found


@cache
def texts(name: str, seed: int, limit: int | None) -> Corpus:
    """The corpus, read once by each process."""
    from assay.data.subsets import thinned

    found = corpus(name, seed)
    return found if limit is None else thinned(found, limit, seed)
