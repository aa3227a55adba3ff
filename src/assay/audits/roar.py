"""If the words that an explanation names are removed and the model is trained again, does it get worse?"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from assay import progress
from assay.audits.answers import beating, rivals, tested
from assay.audits.cases import Answer, Case
from assay.audits.resources import FOREIGN, LACKING, Resources
from assay.audits.retraining import Retraining, Splits
from assay.data.batches import collate
from assay.explainers.baselines import Random
from assay.models import store
from assay.models.network import Network
from assay.records import CHANCE, Record
from assay.stories import Conclusion, Drawing, Measure, Rule, Story
from assay.types import Batch, Explainer

Answers = Int[np.ndarray, " N"]
"""The class that a retrained model predicts for each audited text."""

Text = tuple[tuple[int, ...], ...]
"""All that a model reads of an example."""


STORY = Story(
    title="Can the model learn without the words that are shown?",
    measures=(
        Measure(
            "fall_gain",
            "accuracy lost beyond random removal",
            better="high",
            column="ROAR",
            place=6,
            help="accuracy that a retrained model loses beyond random removal",
            main=True,
        ),
        Measure("accuracy", better="high"),
    ),
    drawings=(
        Drawing(
            "dots",
            "roar",
            (
                "Accuracy lost by retraining without the highest words, beyond random words (the dashed line "
                "at 0), with 95 % intervals; p from a paired test of the mean."
            ),
            {
                "measures": {"fall_gain": ""},
                "title": "accuracy lost beyond random words",
                "null": 0.0,
                "drawn": "best",
            },
        ),
        Drawing(
            "curves",
            "roar_by_share",
            (
                "Accuracy of the retrained models, for the five explainers with the largest falls at most, "
                "and for random words (dashed)."
            ),
            {
                "measure": "accuracy",
                "best": "fall_gain",
                "title": "accuracy after retraining without them",
            },
        ),
    ),
    reading=(
        "The highest words are removed from the training texts too, and a model is trained from the start: it "
        "has never seen whole texts, so nothing surprises it. Accuracy should fall faster than without "
        "random words. Where the same thing can be learnt from other words, it need not fall at all."
    ),
    rule=Rule(
        "Passes when the 95 % interval of the gain over random words lies above 0, fails when nothing of "
        "it does. In between it gets a warning.",
        measure="fall_gain",
        sentence="Beyond random words the accuracy of a retrained model falls by {found} "
        "without the words that {name} ranks highest.",
    ),
    terms=("ROAR",),
)


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
    story: ClassVar[Story] = STORY
    paper: str = "Hooker et al. (2019), RemOve And Retrain"
    lacking: str = LACKING
    places: Mapping[Text, int] = field(default_factory=dict, compare=False, repr=False)
    answers: Mapping[tuple[str, float], Answers] = field(default_factory=dict, compare=False, repr=False)

    def kind(self, classes: int) -> str:
        return "sample"

    def unfit(self, case: Case) -> str | None:
        if not isinstance(case.model, Network):
            return FOREIGN
        if not case.explainers:
            return "only scores were given, not the explainers that made them"
        if not self.answers:
            return self.lacking
        return None if self.places.keys() >= set(_texts(case.batch)) else "models were trained anew for other texts"

    def prepared(self, resources: Resources) -> Roar:
        """The audit with what models that learnt without some words answer for the audited texts."""
        if (reason := resources.lacks()) is not None:
            return replace(self, lacking=reason)
        chance = Random(self.seed + 1)  # another draw than that of the explainer
        rankings: dict[str, Explainer] = {**resources.explainers, CHANCE: chance}
        splits, identity = Splits.of(resources, self.train_limit, self.seed), self._identity(resources)
        answers: dict[tuple[str, float], Answers] = {}
        done = 0
        with progress.bar() as shown:
            task = shown.add_task("roar", total=len(rankings) * (1 + len(self.shares)) + 1)
            for name, explainer in rankings.items():
                shown.update(task, description=f"roar: {name}")
                work = Retraining(resources, splits, explainer, chance, partial(shown.advance, task))
                shares = (0.0, *self.shares) if name == CHANCE else self.shares
                for share in shares:
                    about = identity | {"explainer": name, "share": share}
                    found = resources.cached(f"roar-{name}-{share:g}", about, partial(work.answers, share))
                    answers[name, share] = np.array(found, dtype=np.int64)
                    shown.advance(task)
                done += 1 + len(shares)  # the first is for the explaining, which is left out where nothing is trained
                shown.update(task, completed=done)
        return replace(self, answers=answers, places={text: place for place, text in enumerate(_audited(resources))})

    def conclude(self, record: Record) -> Conclusion:
        gains = rivals(record, "roar", "fall_gain")
        if not gains:
            return Conclusion()
        leader = max(gains, key=lambda f: f.mean)
        return Conclusion(
            f"Best is {leader.subject}: a model trained anew without the words that it ranks highest loses "
            f"{tested(leader)} more of its accuracy than one trained without random words. {beating(gains)}"
        )

    def __call__(self, case: Case) -> Answer:
        rows = [self.places[text] for text in _texts(case.batch)]
        labels = case.batch.labels.cpu().numpy()
        right = {key: (answers[rows] == labels).astype(np.float64) for key, answers in self.answers.items()}
        measures = {f"accuracy@{share:g}:{name}": values for (name, share), values in right.items()}
        for name in case.explainers:
            falls = [right[CHANCE, share] - right[name, share] for share in self.shares]
            measures[f"fall_gain:{name}"] = np.mean(falls, axis=0)
        return Answer(measures)

    def _identity(self, resources: Resources) -> dict[str, Any]:
        """What decides the answers besides the explainer; the model stands for the texts that it learnt from, too."""
        digest = hashlib.sha256()
        for text in _audited(resources):
            digest.update(repr(text).encode())
        return {
            "model": store.fingerprint(resources.model.network),
            "texts": digest.hexdigest(),
            "limit": self.train_limit,
            "seed": self.seed,
        }


def _audited(resources: Resources) -> list[Text]:
    classes = len(resources.model.classes)
    return [text for row in resources.rows for text in _texts(collate([row], classes))]


def _texts(batch: Batch) -> list[Text]:
    """The words of each example, their sentences, the words of its query, and the classes that cannot be right."""
    nothing: list[tuple[int, ...]] = [()] * len(batch)
    words = _chosen(batch.ids, batch.mask)
    sentences = nothing if batch.sentences is None else _chosen(batch.sentences, batch.mask)
    query = nothing if batch.query is None else _chosen(batch.query.ids, batch.query.mask)
    barred = nothing
    if batch.candidates is not None:
        classes = torch.arange(batch.candidates.shape[1], device=batch.ids.device)
        barred = _chosen(classes.expand_as(batch.candidates), ~batch.candidates)
    return list(zip(words, sentences, query, barred, strict=True))


def _chosen(numbers: Int[Tensor, "B N"], chosen: Bool[Tensor, "B N"]) -> list[tuple[int, ...]]:
    """Some numbers of each row."""
    return [tuple(row[which].tolist()) for row, which in zip(numbers.cpu(), chosen.cpu(), strict=True)]
