"""One model of the study: trained on labels of which some are wrong, asked for them, for ten texts, and for speed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from assay.data.batches import Tokenised, tokenise
from assay.data.examples import Corpus
from assay.influence.functions import FastIF, InfluenceFunctions, recall
from assay.influence.mislabelled import SIGNALS, graded
from assay.influence.representations import representations
from assay.influence.setting import Setting
from assay.influence.similarity import query_gradients, train_products
from assay.influence.solvers import Lissa
from assay.influence.training_run import TrainingRun
from assay.metrics.performance import accuracy
from assay.models.config import Architecture, Training
from assay.models.hf_finetuning import FineTuning, finetune
from assay.models.hf_loading import Opening
from assay.models.recipes import Recipe, train
from assay.models.store import Opened
from assay.models.textmodel import predict
from studies.influence.methods import method
from studies.results import Result

FLIPPED, ASKED, SHOWN, TOP = 0.05, 10, 3, 10
CANDIDATES = (0.025, 0.1, 0.25)
SERIES = Lissa(batch=16, repeats=1, terms=100)
BILSTM = Recipe(
    Architecture(embedding=100, hidden=64, alignment_size=64, dropout_words=0.3, dropout_decoder=0.3),
    training=Training(epochs=8, patience=2),
)


def noisy(corpus: Corpus, share: float, seed: int) -> tuple[Corpus, frozenset[int]]:
    """The corpus with another label for that share of its training texts, and which these are."""
    random = np.random.default_rng(seed)
    chosen = frozenset(random.permutation(len(corpus.train))[: round(share * len(corpus.train))].tolist())
    steps = random.integers(1, len(corpus.classes), len(corpus.train)).tolist()
    changed = tuple(
        replace(example, label=(example.label + step) % len(corpus.classes)) if place in chosen else example
        for place, (example, step) in enumerate(zip(corpus.train, steps, strict=True))
    )
    return replace(corpus, train=changed, name=f"{corpus.name}, {share:.0%} flipped"), chosen


@dataclass
class Cell:
    """A model by its name, "bilstm" or "minilm", on a corpus."""

    name: str
    corpus: Corpus
    folder: Path
    device: str = "cpu"
    dtype: str = "float32"
    recipe: Recipe = field(default_factory=lambda: BILSTM)
    series: Lissa = SERIES
    seed: int = 0

    @cached_property
    def planted(self) -> tuple[Corpus, frozenset[int]]:
        return noisy(self.corpus, FLIPPED, self.seed)

    @cached_property
    def model(self) -> Opened:
        given, folder = self.planted[0], self.folder / "model"
        if self.name == "minilm":
            return finetune(given, FineTuning(dtype=self.dtype), folder, Opening(device=self.device, truncate=True))
        return train(given, self.recipe, folder, self.device)

    @cached_property
    def training_run(self) -> TrainingRun:
        return TrainingRun.of(self.model, self.planted[0])

    def rows(self, split: str) -> list[Tokenised]:
        tokeniser = self.model.tokeniser
        return tokenise(getattr(self.corpus, split), tokeniser, tokeniser.options.longest)[0]

    @cached_property
    def asked(self) -> list[Tokenised]:
        """The test texts that are asked about, drawn by the seed."""
        rows = self.rows("test")
        places = np.random.default_rng(self.seed).permutation(len(rows))[:ASKED]
        return [rows[place] for place in sorted(places)]

    @cached_property
    def setting(self) -> Setting:
        return Setting.of(self.model.network, self.training_run.rows, self.asked, training_run=self.training_run)

    def about(self) -> Result:
        """The model, and how good it is on test texts, whose labels are right."""
        started = time.monotonic()
        network, rows = self.model.network, self.rows("test")
        seconds = time.monotonic() - started
        right = accuracy(np.array([row.label for row in rows]), predict(network, rows).argmax(1))
        wrong = self.wrong
        learnt = predict(network, self.training_run.rows).argmax(1) == [row.label for row in self.training_run.rows]
        where = torch.cuda.get_device_name() if self.device.startswith("cuda") else "cpu"
        return {
            "created": datetime.now(UTC).isoformat(timespec="minutes"),
            "device": where,
            "versions": {"torch": torch.__version__.partition("+")[0]},
            "classes": list(self.model.classes),
            "parameters": network.parameter_count,
            "epochs": self.training_run.epochs,
            "train": len(wrong),
            "flipped": int(wrong.sum()),
            "accuracy": round(right, 4),
            "learnt": {"right labels": _share(learnt[~wrong]), "wrong labels": _share(learnt[wrong])},
            "training_seconds": round(seconds, 1),
        }

    @cached_property
    def wrong(self) -> np.ndarray:
        """Which training rows have a wrong label."""
        return np.array([row.index in self.planted[1] for row in self.training_run.rows])

    def signal(self, name: str) -> Result:
        """How well wrong labels are found by one signal, and how long it takes; or why it is not known."""

        def made() -> Result:
            suspicion = (SIGNALS[name] if name in SIGNALS else method(name, self.device).own)(self.setting)
            return {key: round(value, 4) for key, value in asdict(graded(suspicion, self.wrong)).items()}

        return _timed(made)

    def shown(self, name: str) -> Result:
        """The training examples that support and oppose the decision on each of the test texts most."""

        def made() -> Result:
            found = method(name, self.device)(self.setting)
            probabilities = predict(self.model.network, self.asked)
            texts = []
            for number, (row, scores) in enumerate(zip(self.asked, found.scores, strict=True)):
                order = np.argsort(scores, kind="stable")
                decided = int(self.setting.classes[number])
                texts.append(
                    {
                        "row": row.index,
                        "label": row.label,
                        "predicted": decided,
                        "probability": round(float(probabilities[number, decided]), 4),
                        "supporting": [self._example(place, scores) for place in order[:SHOWN]],
                        "opposing": [self._example(place, scores) for place in order[::-1][:SHOWN]],
                        "largest": np.argsort(-np.abs(scores), kind="stable")[:TOP].tolist(),
                    }
                )
            return {"texts": texts, "damping": found.notes.get("damping")}

        return _timed(made)

    def _example(self, place: int, scores: np.ndarray) -> Result:
        row = self.training_run.rows[place]
        return {
            "row": row.index,
            "label": row.label,
            "flipped": bool(self.wrong[place]),
            "score": float(f"{scores[place]:.4g}"),
        }

    def fast(self, largest: Sequence[Sequence[int]] = ()) -> Result:
        """The recall and the speed-up of FastIF for one text; `largest` are the top places of another method."""

        def made() -> Result:
            representations(self.model.network, self.training_run.rows, folder=self.folder / "kept")
            one = replace(self.setting, queries=self.asked[:1], classes=self.setting.classes[:1])
            started = time.perf_counter()
            vectors = InfluenceFunctions(self.series).inverse(one, query_gradients(one))
            solved = time.perf_counter() - started
            started = time.perf_counter()
            train_products(one, vectors)
            whole = time.perf_counter() - started
            every = InfluenceFunctions(self.series).inverse(self.setting, query_gradients(self.setting))
            scores = train_products(self.setting, every) * self.setting.weights
            found = {}
            for share in CANDIDATES:
                fast = FastIF(share, inverse=lambda setting, given: vectors, folder=self.folder / "kept")
                seconds = fast(one).notes["seconds"]
                near = fast.near(self.setting)
                found[str(share)] = {
                    "recall": recall(scores, near),
                    "recall_of_other": _met(largest, near) if len(largest) else None,
                    "search_seconds": round(seconds["search"], 3),
                    "product_seconds": round(seconds["products"], 3),
                    "speed_up": round((solved + whole) / (solved + seconds["search"] + seconds["products"]), 2),
                    "speed_up_of_products": round(whole / (seconds["search"] + seconds["products"]), 2),
                }
            return {"solve_seconds": round(solved, 3), "product_seconds": round(whole, 3), "candidates": found}

        return _timed(made)


def _met(largest: Sequence[Sequence[int]], near: np.ndarray) -> float:
    return float(np.mean([np.isin(top, own).mean() for top, own in zip(largest, near, strict=True)]))


def _share(values: np.ndarray) -> float:
    return round(float(np.mean(values)), 4) if len(values) else 0.0


def _timed(made: Callable[[], dict[str, Any]]) -> Result:
    """What was made and the seconds it took, or the reason why it could not be."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    started = time.monotonic()
    try:
        found = made()
    except Exception as fault:  # one method must not take the others along
        return {"failed": f"{type(fault).__name__}: {' '.join(str(fault).split())[:200]}"}
    finally:
        torch.cuda.empty_cache()
    return found | {"seconds": round(time.monotonic() - started, 2)}
