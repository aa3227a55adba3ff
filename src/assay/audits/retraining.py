"""Retrains on texts without the words that an explainer scores highest."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.audits.resources import Resources
from assay.data.batches import Tokenised, by_tokens, collate, tokenise
from assay.data.examples import Example
from assay.data.text import SPECIAL, UNKNOWN
from assay.models.recipes import refit
from assay.models.store import Checkpoint
from assay.models.textmodel import predict
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
        recipe = self.resources.recipe()
        assert recipe is not None
        left = [without(row, order, share) for row, order in zip(self._rows, self._orders, strict=True)]
        train, dev = len(self.splits.train), len(self.splits.train) + len(self.splits.dev)
        model = refit(self.resources.trained, recipe, left[:train], left[train:dev], checkpoint)
        classes: list[int] = predict(model.network, left[dev:]).argmax(-1).tolist()
        return classes

    @property
    def _rows(self) -> list[Tokenised]:
        return [*self.splits.train, *self.splits.dev, *self.splits.audited]

    @cached_property
    def _orders(self) -> list[Order]:
        rows = self._rows
        lengths = np.array([len(row.ids) for row in rows])
        orders: list[Order] = [row.ids for row in rows]
        for group in by_tokens(lengths, TOKENS):
            batch = collate([rows[place] for place in group], len(self.resources.model.classes)).to(
                self.resources.model.device
            )
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


def ranking(scores: Float[Tensor, "B T"], drawn: Float[Tensor, "B T"]) -> Int[Tensor, "B T"]:
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
