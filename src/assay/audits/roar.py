"""Remove and retrain: the accuracy of models that learnt without the highest words."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from assay import progress
from assay.audits.cases import FOREIGN, LACKING, Answer, BaseAudit, Case, Resources, Scores
from assay.audits.statements import beating, rivals, tested
from assay.data.batches import Tokenised, by_tokens, collate, tokenise
from assay.data.examples import Example
from assay.data.text import SPECIAL, UNKNOWN
from assay.explainers.baselines import Random
from assay.models import store
from assay.models.network import Network
from assay.models.recipes import refit
from assay.models.store import Checkpoint
from assay.models.textmodel import predict
from assay.records import CHANCE, Record
from assay.stories import Conclusion, Drawing, Measure, Rule, Story
from assay.types import Batch, Explainer

TOKENS = 4096  # explained at once

Order = Int[Tensor, " T"]
"""The places of a text, the first to be removed first."""


@dataclass(frozen=True)
class Splits:
    """The texts for training, for early stopping, and the audited ones."""

    train: Sequence[Tokenised]
    dev: Sequence[Tokenised]
    audited: Sequence[Tokenised]

    @classmethod
    def of(cls, resources: Resources, limit: int, seed: int) -> Splits:
        """From the resources, with at most `limit` training texts and as many for early stopping."""
        assert resources.corpus is not None
        chosen = (_sample(examples, limit, seed) for examples in (resources.corpus.train, resources.corpus.dev))
        tokeniser = resources.model.tokeniser
        train, dev = (tokenise(examples, tokeniser, tokeniser.options.longest)[0] for examples in chosen)
        return cls(train, dev, resources.rows)


@dataclass(frozen=True)
class Retraining:
    """Removes the words with the highest scores on the audited model, and trains a new model.

    Texts are explained when the first training needs it. Of equal scores `chance` decides; `ticked` is told which share
    of the explaining is done.
    """

    resources: Resources
    splits: Splits
    explainer: Explainer
    chance: Explainer
    ticked: Callable[[float], None]

    def answers(self, share: float, checkpoint: Checkpoint | None = None) -> list[int]:
        """Predictions on the audited texts without their highest words, by a model trained without theirs."""
        left = [without(row, order, share) for row, order in zip(self._rows, self._orders, strict=True)]
        train, dev = len(self.splits.train), len(self.splits.train) + len(self.splits.dev)
        model = refit(self.resources.trained, self.resources.made, left[:train], left[train:dev], checkpoint)
        classes: list[int] = predict(model.network, left[dev:]).argmax(-1).tolist()
        return classes

    @property
    def _rows(self) -> list[Tokenised]:
        return [*self.splits.train, *self.splits.dev, *self.splits.audited]

    @cached_property
    def _orders(self) -> list[Order]:
        rows, model = self._rows, self.resources.model
        lengths = np.array([len(row.ids) for row in rows])
        orders: list[Order] = [row.ids for row in rows]
        for group in by_tokens(lengths, TOKENS):
            batch = collate([rows[place] for place in group], len(model.classes)).to(model.device)
            for place, order in zip(group, self._ranked(batch).cpu(), strict=True):
                orders[place] = order[: lengths[place]]
            self.ticked(lengths[group].sum() / lengths.sum())
        return orders

    def _ranked(self, batch: Batch) -> Int[Tensor, "B T"]:
        """The places of each text by the size of the scores for the predicted class, highest first, padding last."""
        network = self.resources.model.network
        with torch.no_grad():
            predicted = network(network.embed(batch), batch).logits.argmax(-1)
        scores, drawn = (each(network, batch, predicted) for each in (self.explainer, self.chance))
        # Signs are left out: what speaks for one class speaks against the other, so the removed words would tell which
        # class was predicted, and a model trained without them would read it there.
        return ranking(scores.abs().masked_fill(~batch.mask, -torch.inf), drawn)


def ranking(scores: Scores, drawn: Scores) -> Int[Tensor, "B T"]:
    """The places of each row by scores, highest first; of equal ones, those with the higher draw."""
    shuffled = drawn.argsort(dim=-1, descending=True)
    return shuffled.gather(1, scores.gather(1, shuffled).argsort(dim=-1, descending=True, stable=True))


def without(row: Tokenised, order: Order, share: float) -> Tokenised:
    """The text with the first words of the order unknown: a share of all, and at least one if the share is not 0."""
    # differs from Hooker et al. (2019): a pixel gives way to the mean of all; so does a word to the unknown word
    count = max(1, round(share * len(order))) if share > 0 else 0
    return replace(row, ids=row.ids.index_fill(0, order[:count], SPECIAL.index(UNKNOWN)))


def _sample(examples: Sequence[Example], limit: int, seed: int) -> list[Example]:
    """At most `limit` of the examples, in their order."""
    places = range(len(examples))
    return [examples[place] for place in sorted(random.Random(seed).sample(places, min(limit, len(places))))]


Answers = Int[np.ndarray, " N"]
"""The class that a retrained model predicts for each audited text."""

Text = tuple[tuple[int, ...], ...]
"""All that a model reads of an example."""


STORY = Story(
    title="Can the model learn without the words that are shown?",
    question="If the words that an explanation names are removed and the model is trained again, does it get worse?",
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
class Roar(BaseAudit):
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
