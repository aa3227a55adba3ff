"""If the words that an explanation names are removed and the model is trained again, does it get worse?"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Int

from assay import progress
from assay.audits.bench import Bench
from assay.audits.cases import Answer, Case
from assay.audits.retraining import Retraining, Splits
from assay.explainers.random import Random
from assay.models import store
from assay.models.network import Network
from assay.types import Batch, Explainer

CHANCE = "chance"
Answers = Int[np.ndarray, " N"]
"""The class that a retrained model predicts for each audited text."""


@dataclass(frozen=True)
class Roar:
    """Whether a model that learnt without the words of the highest absolute scores is right without them; low is good.

    `fall_gain` is how much more often it is wrong than a model that learnt without words drawn by chance; `accuracy@0`
    is without any removal. Each model is trained once, so intervals speak of the texts, not of the luck of a training.
    Which words are removed may itself give the predicted class away: accuracy then stays high though the words counted.
    """

    shares: tuple[float, ...] = (0.1, 0.3, 0.5)  # of the words of each text
    train_limit: int = 2000  # texts of a split, drawn by the seed
    seed: int = 0
    paper: str = "Hooker et al. (2019), RemOve And Retrain"
    lacking: str = "the texts that the model learnt from are not at hand"
    places: Mapping[tuple[int, ...], int] = field(default_factory=dict, compare=False, repr=False)
    answers: Mapping[tuple[str, float], Answers] = field(default_factory=dict, compare=False, repr=False)

    def kind(self, classes: int) -> str:
        return "sample"

    def unfit(self, case: Case) -> str | None:
        if not isinstance(case.model, Network):
            return "the model is not one that can be trained anew"
        if not case.explainers:
            return "only scores were given, not the explainers that made them"
        if not self.answers:
            return self.lacking
        return None if self.places.keys() >= set(_texts(case.batch)) else "models were trained anew for other texts"

    def prepared(self, bench: Bench) -> Roar:
        """The audit with what models that learnt without some words answer for the audited texts."""
        if (reason := bench.lacks()) is not None:
            return replace(self, lacking=reason)
        chance = Random(self.seed + 1)  # another draw than that of the explainer
        rankings: dict[str, Explainer] = {**bench.explainers, CHANCE: chance}
        splits, identity = Splits.of(bench, self.train_limit, self.seed), self._identity(bench)
        answers: dict[tuple[str, float], Answers] = {}
        done = 0
        with progress.bar() as shown:
            task = shown.add_task("roar", total=len(rankings) * (1 + len(self.shares)) + 1)
            for name, explainer in rankings.items():
                shown.update(task, description=f"roar: {name}")
                work = Retraining(bench, splits, explainer, chance, partial(shown.advance, task))
                shares = (0.0, *self.shares) if name == CHANCE else self.shares
                for share in shares:
                    about = identity | {"explainer": name, "share": share}
                    found = bench.kept(f"roar-{name}-{share:g}", about, partial(work.answers, share))
                    answers[name, share] = np.array(found, dtype=np.int64)
                    shown.advance(task)
                done += 1 + len(shares)  # the first is for the explaining, which is left out where nothing is trained
                shown.update(task, completed=done)
        places = {tuple(row.ids.tolist()): place for place, row in enumerate(bench.rows)}
        return replace(self, answers=answers, places=places)

    def __call__(self, case: Case) -> Answer:
        rows = [self.places[text] for text in _texts(case.batch)]
        labels = case.batch.labels.cpu().numpy()
        right = {key: (answers[rows] == labels).astype(np.float64) for key, answers in self.answers.items()}
        measures = {f"accuracy@{share:g}:{name}": values for (name, share), values in right.items()}
        for name in case.explainers:
            falls = [right[CHANCE, share] - right[name, share] for share in self.shares]
            measures[f"fall_gain:{name}"] = np.mean(falls, axis=0)
        return Answer(measures)

    def _identity(self, bench: Bench) -> dict[str, Any]:
        """What decides the answers besides the explainer; the model stands for the texts that it learnt from, too."""
        digest = hashlib.sha256()
        for row in bench.rows:
            digest.update(row.ids.numpy().tobytes() + b";")
        return {
            "model": store.fingerprint(bench.model.network),
            "texts": digest.hexdigest(),
            "limit": self.train_limit,
            "seed": self.seed,
        }


def _texts(batch: Batch) -> list[tuple[int, ...]]:
    """The word ids of each text."""
    return [tuple(ids[:length]) for ids, length in zip(batch.ids.tolist(), batch.lengths.tolist(), strict=True)]
