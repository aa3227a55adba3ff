"""Adversarial swaps: does a word by which training examples of another class were learnt flip a text?"""

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
from assay.models.textmodel import predict


@dataclass(frozen=True)
class Swap:
    """One token replaced by a token of a training example, and the probability of the class before and after."""

    row: Tokenised
    position: int  # of the token in the text
    example: int  # the training example that the new one is taken from
    token: int  # its position there
    before: float  # the probability of the class that was decided
    after: float
    flipped: bool


@dataclass(frozen=True)
class Swapping:
    """Replaces the salient token by the most responsible token of the most influential opposing example.

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
    """The token of each chosen example whose deletion changes its influence on the query most."""
    examples, indices = np.unique(chosen, return_inverse=True)
    found = deletion(setting, vectors, examples.tolist())
    pairs = indices.reshape(chosen.shape)
    return np.array([[np.abs(found[position][query]).argmax() for position in row] for query, row in enumerate(pairs)])


def salient(setting: Setting) -> list[int]:
    """The position of the token in each query that speaks most for the class, by input × gradient."""
    found = [0] * len(setting.queries)
    for indices, batch in setting.batches(setting.queries):
        classes = torch.from_numpy(setting.classes[indices]).to(batch.ids.device)
        scores = input_x_gradient(setting.network, batch, classes).masked_fill(~batch.mask, -torch.inf)
        for position, best in zip(indices, scores.argmax(1).tolist(), strict=True):
            found[position] = best
    return found


def swapped(
    setting: Setting, salient: Sequence[int], examples: Int[np.ndarray, "Q n"], tokens: Int[np.ndarray, "Q n"]
) -> list[Swap]:
    """The swap of each query that leaves its class least probable, among those with the tokens of some examples."""
    tries = examples.shape[1]
    rows = [
        put(query, index, setting.train[example], int(token))
        for query, index, own, theirs in zip(setting.queries, salient, examples, tokens, strict=True)
        for example, token in zip(own, theirs, strict=True)
    ]
    before = _probable(setting, list(setting.queries), 1)[:, 0]
    after = _probable(setting, rows, tries)
    decided = predict(setting.network, rows).argmax(1).reshape(-1, tries)
    best = after.argmin(1)
    return [
        Swap(
            rows[number * tries + one],
            position,
            int(examples[number, one]),
            int(tokens[number, one]),
            float(before[number]),
            float(after[number, one]),
            bool(decided[number, one] != setting.classes[number]),
        )
        for number, (one, position) in enumerate(zip(best, salient, strict=True))
    ]


def _probable(setting: Setting, rows: list[Tokenised], tries: int) -> Float[np.ndarray, "Q n"]:
    """The probability of each query's target class."""
    found = predict(setting.network, rows).reshape(-1, tries, setting.network.classes)
    return np.take_along_axis(found, setting.classes[:, None, None], 2)[..., 0]


def put(row: Tokenised, position: int, other: Tokenised, token: int) -> Tokenised:
    """The row with one token replaced by a token of another row."""
    ids = row.ids.clone()
    ids[position] = other.ids[token]
    if row.subwords is None or other.subwords is None:
        return replace(row, ids=ids)
    pieces = collate([row, other]).subwords  # as wide as both need
    assert pieces is not None
    own = pieces[0, : len(row.ids)].clone()
    own[position] = pieces[1, token]
    return replace(row, ids=ids, subwords=own)
