"""Does a word that training examples of another class learnt their class by flip a text?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int

from assay.data.batches import Tokenised, collate
from assay.explainers.gradients import input_x_gradient
from assay.influence.inverses import Inverse
from assay.influence.products import Vectors, query_gradients, train_products
from assay.influence.setting import Setting
from assay.influence.tokens import deletion
from assay.models.predictions import predict


@dataclass(frozen=True)
class Swap:
    """A text with one token in place of another: whence it comes, and what the model makes of it."""

    row: Tokenised
    place: int  # of the token in the text
    example: int  # the training example that the new one is taken from
    token: int  # its place there
    before: float  # the probability of the class that was decided
    after: float
    flipped: bool


@dataclass(frozen=True)
class Swapping:
    """Puts the most responsible token of the most influential opposing example in the place of the salient token.

    After Meng et al. (2020), section 5. For each text, the opposing example is that of another label without which
    the target would rise most; its responsible token is the one that changes this influence most, either way, when it
    is deleted (a word that an example was learnt by keeps its gradient small); the salient token speaks most for the
    decision by input × gradient. With `tries` the next examples are taken too, and the swap that leaves the class
    least probable counts.
    """

    inverse: Inverse
    tries: int = 1

    def __call__(self, setting: Setting) -> list[Swap]:
        vectors = self.inverse(setting, query_gradients(setting))
        scores = train_products(setting, vectors) * setting.weights / len(setting.train)
        own = np.array([row.label for row in setting.train])
        opposed = np.where(own[None] != setting.classes[:, None], scores, -np.inf)
        chosen = np.argsort(-opposed, axis=1, kind="stable")[:, : self.tries]
        tokens = _responsible(setting, vectors, chosen)
        return swapped(setting, salient(setting), chosen, tokens)


def _responsible(setting: Setting, vectors: Vectors, chosen: Int[np.ndarray, "Q n"]) -> Int[np.ndarray, "Q n"]:
    """The token of each chosen example without which its influence on the query changes most."""
    examples, places = np.unique(chosen, return_inverse=True)
    found = deletion(setting, vectors, examples.tolist())
    pairs = places.reshape(chosen.shape)
    return np.array([[np.abs(found[place][query]).argmax() for place in row] for query, row in enumerate(pairs)])


def salient(setting: Setting) -> list[int]:
    """The place of the token in each query that speaks most for the class."""
    found = [0] * len(setting.queries)
    for places, batch in setting.batches(setting.queries):
        classes = torch.from_numpy(setting.classes[places]).to(batch.ids.device)
        scores = input_x_gradient(setting.network, batch, classes).masked_fill(~batch.mask, -torch.inf)
        for place, best in zip(places, scores.argmax(1).tolist(), strict=True):
            found[place] = best
    return found


def swapped(
    setting: Setting, salient: Sequence[int], examples: Int[np.ndarray, "Q n"], tokens: Int[np.ndarray, "Q n"]
) -> list[Swap]:
    """The swap of each query that leaves its class least probable, among those with the tokens of some examples."""
    tries = examples.shape[1]
    rows = [
        put(query, place, setting.train[example], int(token))
        for query, place, own, theirs in zip(setting.queries, salient, examples, tokens, strict=True)
        for example, token in zip(own, theirs, strict=True)
    ]
    before = _probable(setting, list(setting.queries), 1)[:, 0]
    after = _probable(setting, rows, tries)
    decided = predict(setting.network, rows).argmax(1).reshape(-1, tries)
    best = after.argmin(1)
    return [
        Swap(
            rows[number * tries + one],
            place,
            int(examples[number, one]),
            int(tokens[number, one]),
            float(before[number]),
            float(after[number, one]),
            bool(decided[number, one] != setting.classes[number]),
        )
        for number, (one, place) in enumerate(zip(best, salient, strict=True))
    ]


def _probable(setting: Setting, rows: list[Tokenised], tries: int) -> Float[np.ndarray, "Q n"]:
    """The probability of the class that is asked about."""
    found = predict(setting.network, rows).reshape(-1, tries, setting.network.classes)
    return np.take_along_axis(found, setting.classes[:, None, None], 2)[..., 0]


def put(row: Tokenised, place: int, other: Tokenised, token: int) -> Tokenised:
    """The row with one token of another in the place of one of its own."""
    ids = row.ids.clone()
    ids[place] = other.ids[token]
    if row.subwords is None or other.subwords is None:
        return replace(row, ids=ids)
    subwords = collate([row, other]).subwords  # as wide as both need
    assert subwords is not None
    own = subwords[0, : len(row.ids)].clone()
    own[place] = subwords[1, token]
    return replace(row, ids=ids, subwords=own)
