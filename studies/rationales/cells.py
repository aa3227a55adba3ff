"""One cell: a recipe, played by one kind of model on one corpus, and what its selections are worth."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from assay.data.batches import tokenise
from assay.data.corpora import corpus
from assay.data.examples import Corpus
from assay.errors import AssayError
from assay.models.recipes import Recipe
from assay.models.store import Opened
from assay.rationales.measuring import selected
from assay.rationales.rationaliser import Selecting
from assay.rationales.trainers import Rationalising, train_model
from assay.run.rationalising import chosen, examined
from studies.rationales.sentences import OVERLAPS, SHARE, iou_f1
from studies.results import Result

CORPORA = ("hatexplain", "movies", "planted:phrase")
MODELS = ("bilstm", "minilm")
UNITS = {"movies": ("word", "sentence")}  # what is selected at once; posts and planted texts are hardly sentences
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
CHANGED: Mapping[tuple[str, str, str], Mapping[str, Any]] = {
    ("movies", "bilstm", "sentence"): {"rate": SHARE},
    ("movies", "minilm", "sentence"): {"rate": SHARE, "epochs": 20},  # also as they train; their rate is ours, 5e-5
}
KEPT = ("created", "device", "versions", "selecting", "reads", "critic", "measures", "pooled", "collapse")


@dataclass(frozen=True)
class Cell:
    """A recipe by name, on a corpus by name, with "bilstm" or "minilm" players, that selects words or sentences.

    The seed draws weights, masks and the order of texts; the texts are the same for all seeds.
    """

    corpus: str
    model: str
    recipe: str
    seed: int = 0
    units: str = "word"
    limit: int | None = None  # of training texts, for a trial

    @property
    def table(self) -> str:
        """The name of the file that the result stands in."""
        trial = "" if self.limit is None else f"-{self.limit}"
        return f"{self.corpus.replace(':', '-')}-{self.model}{trial}"

    @property
    def name(self) -> str:
        units = "" if self.units == "word" else f"-{self.units}"
        return f"{self.table}-{self.recipe}{units}" + (f"-seed-{self.seed}" if self.seed else "")

    @property
    def key(self) -> tuple[str, str, int]:
        return self.recipe, self.units, self.seed

    def asked(self, device: str) -> Rationalising:
        options = {**SETTINGS[self.corpus, self.model], **CHANGED.get((self.corpus, self.model, self.units), {})}
        encoder = "minilm" if self.model == "minilm" else None
        units = "token" if self.units == "word" else self.units
        wanted = chosen(self.recipe, encoder, units=units, seed=self.seed, device=device, **options)
        assert isinstance(wanted, Rationalising)
        if isinstance(wanted.base, Recipe):
            text = replace(wanted.base.text, longest=LONGEST)
            wanted = replace(wanted, base=replace(wanted.base, text=text))
        return wanted

    def result(self, device: str, runs: Path | None = None) -> Result:
        """The measures, or why there are none; with a folder for runs, an interrupted training goes on there."""
        given, started = texts(self.corpus, self.limit), time.monotonic()
        folder = None if runs is None else runs / self.name / "model"
        try:
            model = train_model(given, self.asked(device), folder, device)
        except AssayError as fault:
            return {"failed": str(fault)}
        except torch.OutOfMemoryError:
            return {"failed": "not enough memory"}
        seconds = round(time.monotonic() - started, 1)
        answer = examined(model, given, self.seed)
        held = {name: answer[name] for name in KEPT if name in answer}
        if self.units == "sentence":
            held["pooled"] |= by_sentence(model, given)
        about = {"name": given.name, **{name: answer["corpus"][name] for name in ("measured", "marked", "majority")}}
        training = {name: answer["model"][name] for name in ("epochs", "best_epoch", "best_dev", "shares")}
        return held | {"corpus": about, "training": training, "seconds": seconds}


def by_sentence(model: Opened, given: Corpus) -> dict[str, float | None]:
    """The IOU F1 of selected sentences at each overlap of OVERLAPS, by name."""
    assert isinstance(model.network, Selecting)
    rows, _ = tokenise(given.test, model.tokeniser, model.tokeniser.options.longest)
    found = selected(model.network, rows)
    return {f"iou_f1_sentences_{overlap:g}": iou_f1(found, overlap) for overlap in OVERLAPS}


@cache
def texts(name: str, limit: int | None) -> Corpus:
    """The corpus, read once by each process."""
    from assay.data.examples import thinned

    found = corpus(name)
    return found if limit is None else thinned(found, limit, 0)
