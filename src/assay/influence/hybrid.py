"""Hybrid influence: which training examples, and which of their tokens, made the model attend to a token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay import progress
from assay.data.batches import Tokenised, collate
from assay.errors import AssayError, unknown
from assay.explainers.gradients import input_x_gradient
from assay.influence import targets
from assay.influence.dual import DualGaussNewton
from assay.influence.functions import Inverse
from assay.influence.kronecker import Kronecker
from assay.influence.setting import Indices, Influence, Scores, Setting, Unconditional
from assay.influence.similarity import Vectors, query_gradients, train_products
from assay.models.textmodel import TextModel, predict
from assay.models.walk import UnfusedOps
from assay.types import Batch

AFFORDABLE = {"cpu": 2e12, "cuda": 2e14}  # multiplications of training examples with each other
NODES = 15  # on the path of an integrated gradient

Pair = tuple[int, int]
"""A query, and the index of one of its tokens."""


@dataclass(frozen=True)
class ClassScore:
    """The score S of one class for each text, as a function of the embeddings."""

    network: TextModel
    batch: Batch
    classes: Int[Tensor, " B"]
    target: str

    def embedded(self) -> Float[Tensor, "B T D"]:
        """The embeddings, part of the graph of the embedding table."""
        x = self.network.embed(self.batch)
        return x if x.requires_grad else x.requires_grad_()

    def gradient(self, x: Float[Tensor, "R T D"]) -> Float[Tensor, "R T D"]:
        """∂S/∂x, itself differentiable; each text may be repeated several times in succession."""
        rows = torch.arange(len(self.batch), device=x.device).repeat_interleave(len(x) // len(self.batch))
        with UnfusedOps():
            logits = self.network(x, self.batch[rows]).logits
        asked = targets.target(self.target)(logits, self.classes[rows]).sum()
        return torch.autograd.grad(asked, x, create_graph=True)[0] * self.batch.mask[rows][..., None]


def norm(class_score: ClassScore) -> Float[Tensor, "B T"]:
    """The gradient norm ‖∂S/∂x_t‖ (Meng et al., 2020; eq. 28 of the survey)."""
    gradient = class_score.gradient(class_score.embedded())
    held = gradient.detach()
    sizes: Tensor = torch.linalg.vector_norm(held, dim=-1, keepdim=True)
    # the direction is held: this is the gradient of a norm, and 0 where a norm has none
    return (gradient * (held / sizes.where(sizes > 0, 1))).sum(-1)


def times_gradient(class_score: ClassScore) -> Float[Tensor, "B T"]:
    """Input × gradient: x_t · ∂S/∂x_t, which has a sign."""
    x = class_score.embedded()
    return (x * class_score.gradient(x)).sum(-1)


def integrated_gradient(class_score: ClassScore) -> Float[Tensor, "B T"]:
    """Integrated gradients: x_t · ∫ ∂S/∂x_t along the line from 0 (Sundararajan et al., 2017), with a sign."""
    x = class_score.embedded()
    shares, weights = (torch.as_tensor(part).to(x) / 2 for part in np.polynomial.legendre.leggauss(NODES))
    points = torch.einsum("n,btd->bntd", shares + 0.5, x).flatten(0, 1)
    gradients = class_score.gradient(points).reshape(len(x), NODES, *x.shape[1:])
    return torch.einsum("btd,bntd,n->bt", x, gradients, weights)


SALIENCES: dict[str, Callable[[ClassScore], Float[Tensor, "B T"]]] = {
    "norm": norm,
    "input_x_gradient": times_gradient,
    "integrated_gradient": integrated_gradient,
}
"""One number for each token, a function of the parameters that can be differentiated."""


def saliences(setting: Setting, kind: str = "norm") -> list[Float[np.ndarray, " T"]]:
    """The salience of each token of each query."""
    found: list[Float[np.ndarray, " T"]] = [np.zeros(0)] * len(setting.queries)
    for indices, batch in setting.batches(setting.queries):
        for index, row, length in zip(indices, _measured(setting, indices, batch, kind), batch.lengths, strict=True):
            found[index] = row[: int(length)].detach().double().cpu().numpy()
    return found


def salience_gradients(setting: Setting, pairs: Sequence[Pair], kind: str = "norm") -> dict[str, Tensor]:
    """The gradients of the salience of some tokens by all parameters, with one forward pass a query.

    The text stays and its embeddings move: a table counts both as what is read and as what the gradient is taken at.
    """
    parameters = setting.parameters
    found = {name: each.new_zeros(len(pairs), *each.shape) for name, each in parameters.items()}
    order = sorted(range(len(pairs)), key=lambda number: pairs[number])
    with progress.bar() as shown:
        task = shown.add_task("salient tokens", total=len(pairs))
        for query, group in groupby(order, key=lambda number: pairs[number][0]):
            numbers = list(group)
            ((_, batch),) = setting.batches([setting.queries[query]])
            measured = _measured(setting, np.array([query]), batch, kind)[0]
            chosen = measured[[pairs[number][1] for number in numbers]]
            each = torch.eye(len(numbers)).to(chosen)
            gradients = torch.autograd.grad(
                chosen, list(parameters.values()), each, is_grads_batched=True, allow_unused=True
            )
            for name, gradient in zip(parameters, gradients, strict=True):
                if gradient is not None:
                    found[name][numbers] = gradient
            shown.advance(task, len(numbers))
    return found


def _measured(setting: Setting, indices: Indices, batch: Batch, kind: str) -> Float[Tensor, "n T"]:
    if kind not in SALIENCES:
        raise unknown("salience", kind, SALIENCES)
    classes = torch.from_numpy(setting.classes[indices]).to(batch.ids.device)
    with torch.enable_grad():
        return SALIENCES[kind](ClassScore(setting.network, batch, classes, setting.target))


OfTokens = Callable[[Setting, Vectors, Sequence[int]], list[Float[np.ndarray, "Q T"]]]
"""Takes vectors and indices of training examples; returns a number for each vector and token of each of these."""


def deletion(setting: Setting, vectors: Vectors, indices: Sequence[int]) -> list[Float[np.ndarray, "Q T"]]:
    """By deletion: v · (g(z) − g(z without t)) w_z/N, the example with one token removed.

    The only token of an example is the example. The numbers of an example need not add up to that of the whole.
    """
    # differs from the survey, eq. 31: as printed it is 0; meant is I(z) − I(z without t), the opposite of eq. 30
    rows = [setting.train[index] for index in indices]
    whole = train_products(setting, vectors, rows)
    shorter = [without(row, token) for row in rows for token in range(len(row.ids)) if len(row.ids) > 1]
    rest = train_products(setting, vectors, shorter, "training tokens") if shorter else np.zeros((len(whole), 0))
    found, start = [], 0
    for number, (index, row) in enumerate(zip(indices, rows, strict=True)):
        stop = start + (len(row.ids) if len(row.ids) > 1 else 0)
        left = rest[:, start:stop] if stop > start else 0.0
        found.append((whole[:, number, None] - left) * setting.shares[index])
        start = stop
    return found


def gradient(setting: Setting, vectors: Vectors, indices: Sequence[int]) -> list[Float[np.ndarray, "Q T"]]:
    """By gradient: x_t · ∂(v · g(z))/∂x_t w_z/N, a first-order approximation of the embedding set to 0."""
    rows = [setting.train[index] for index in indices]
    found: list[Float[np.ndarray, "Q T"]] = [np.zeros((0, 0))] * len(rows)
    with progress.bar() as shown:
        task = shown.add_task("training tokens", total=len(rows))
        for numbers, batch in setting.batches(rows):
            products = _input_x_gradient(setting, vectors, batch).double().cpu().numpy()
            for row, number in enumerate(numbers):
                own = products[:, row, : len(rows[number].ids)]
                found[number] = own * setting.shares[indices[number]]
            shown.advance(task, len(numbers))
    return found


OF_TOKENS: dict[str, OfTokens] = {"deletion": deletion, "gradient": gradient}


def without(row: Tokenised, token: int) -> Tokenised:
    """The example without one token."""
    kept = torch.arange(len(row.ids)) != token
    return replace(
        row,
        ids=row.ids[kept],
        spans=row.spans[kept],
        sentences=row.sentences[kept],
        truth=None if row.truth is None else row.truth[kept],
        subwords=None if row.subwords is None else row.subwords[kept],
    )


def _input_x_gradient(setting: Setting, vectors: Vectors, batch: Batch) -> Float[Tensor, "Q B T"]:
    parameters = {name: each for name, each in setting.parameters.items() if name in vectors}
    with torch.enable_grad():
        x = setting.network.embed(batch)
        nudge = torch.zeros_like(x, requires_grad=True)
        with UnfusedOps():
            logits = setting.network(x + nudge, batch).logits
        loss = targets.loss(logits, batch.labels).sum()
        gradients = torch.autograd.grad(loss, list(parameters.values()), create_graph=True, allow_unused=True)
        used = [
            (gradient, vectors[name])
            for name, gradient in zip(parameters, gradients, strict=True)
            if gradient is not None
        ]
        outputs, directions = [gradient for gradient, _ in used], [vector.to(gradient) for gradient, vector in used]
        (found,) = torch.autograd.grad(outputs, nudge, directions, is_grads_batched=True)
    products: Tensor = (found * x.detach()).sum(-1) * batch.mask
    return products


@dataclass(frozen=True)
class TrainingEvidence:
    """A training example: the change of the salience without it, and without each of its tokens.

    The scores of its tokens need not add up to its own.
    """

    row: int  # its index among the training rows
    example: Tokenised
    score: float
    tokens: Float[np.ndarray, " T"]


@dataclass(frozen=True)
class SalientToken:
    """A salient token with its training evidence, strongest first."""

    position: int
    salience: float
    evidence: tuple[TrainingEvidence, ...]


@dataclass(frozen=True)
class HybridResult:
    """The salience of every token of a text, and the training evidence of some of them."""

    query: Tokenised
    asked: int  # the class
    target: str
    salience: str
    trained: int  # training examples in all
    saliences: Float[np.ndarray, " T"]  # of all tokens of the text
    tokens: tuple[SalientToken, ...]

    def json(self, trained: Callable[[int], str], text: str, classes: Sequence[str]) -> dict[str, Any]:
        """As JSON values; `trained` gives the text of a training row, `text` is that of the query."""
        return {
            "asked": str(classes[self.asked]),
            "target": self.target,
            "salience": self.salience,
            "trained": self.trained,
            **_written(self.query, text, self.saliences),
            "tokens": [
                {
                    "place": token.position,
                    "salience": token.salience,
                    "behind": [_evidence(each, trained(each.row), classes) for each in token.evidence],
                }
                for token in self.tokens
            ],
        }


def _evidence(each: TrainingEvidence, text: str, classes: Sequence[str]) -> dict[str, Any]:
    about = {"row": each.example.index, "label": str(classes[each.example.label]), "score": each.score}
    return about | _written(each.example, text, each.tokens)


def _written(row: Tokenised, text: str, scores: Float[np.ndarray, " T"]) -> dict[str, Any]:
    """A text, the character offsets of its tokens, and a number for each."""
    starts, ends = (part.tolist() for part in row.spans.unbind(-1))
    return {"text": text, "starts": starts, "ends": ends, "scores": scores.tolist()}


def affordable(setting: Setting, vectors: Vectors) -> Vectors:
    """The exact inverse where it takes seconds to minutes, else EK-FAC."""
    work = (len(setting.train) * (setting.network.classes - 1)) ** 2 * setting.size
    most = AFFORDABLE.get(setting.network.device.type, AFFORDABLE["cpu"])
    dual = DualGaussNewton()
    method = dual if work <= most and dual.unfit(setting) is None else Kronecker()
    return method.inverse(setting, vectors)


@dataclass(frozen=True)
class Hybrid(Unconditional):
    """∇_θ s · H⁻¹ ∇_θ loss(z), s the salience of a token (Meng et al., 2020, "Pair the dots"; survey eqs. 28 to 31).

    Salience is `norm`, `input_x_gradient` or `integrated_gradient`. A token of z is taken away (`deletion`), or its
    embedding is followed towards 0 (`gradient`).
    """

    # differs from Meng et al. (2020), eq. 29: the influence on the vector ∂S/∂x_t depends on how the space of
    # embeddings is turned, which the loss leaves open; that on its norm does not, and takes one solution a token.
    inverse: Inverse = affordable
    salience: str = "norm"
    perturbation: str = "deletion"

    def __post_init__(self) -> None:
        if self.salience not in SALIENCES:
            raise unknown("salience", self.salience, SALIENCES)
        if self.perturbation not in OF_TOKENS:
            raise unknown("perturbation", self.perturbation, OF_TOKENS)

    def __call__(self, setting: Setting) -> Influence:
        """The change of the salience of each query's most salient token by the removal of each training example."""
        positions = [int(np.abs(each).argmax()) for each in saliences(setting, self.salience)]
        solved = self.solved(setting, list(enumerate(positions)))
        return Influence(self.scores(setting, solved), notes={"tokens": positions})

    def solved(self, setting: Setting, pairs: Sequence[Pair]) -> Vectors:
        """H⁻¹ ∇_θ s for the salience s of each of these tokens."""
        return self.inverse(setting, salience_gradients(setting, pairs, self.salience))

    def scores(self, setting: Setting, solved: Vectors) -> Scores:
        """The change of each of these saliences by the removal of each training example."""
        return np.asarray(train_products(setting, solved) * setting.shares)

    def explain(
        self, setting: Setting, query: int = 0, tokens: Sequence[int] | None = None, top: int = 5, most: int = 1
    ) -> HybridResult:
        """The `top` training examples behind each of these tokens of a query, or behind its `most` salient ones."""
        one = replace(setting, queries=[setting.queries[query]], classes=setting.classes[[query]])
        (found,) = saliences(one, self.salience)
        chosen = np.argsort(-np.abs(found), kind="stable")[:most].tolist() if tokens is None else list(tokens)
        if not chosen or not all(0 <= position < len(found) for position in chosen):
            raise AssayError(f"Token positions must be from 0 to {len(found) - 1}, got {chosen}.")
        with progress.bar() as shown:
            task = shown.add_task("why the model looks there", total=3)
            solved = self.solved(one, [(0, position) for position in chosen])
            shown.advance(task)
            scores = self.scores(one, solved)
            shown.advance(task)
            # without what made the model look, it looks less; where salience has a sign, that is nearer to 0
            lost = -scores * np.where(found[chosen] < 0, -1, 1)[:, None]
            best = [[int(row) for row in np.argsort(-each, kind="stable")[:top] if each[row] > 0] for each in lost]
            rows = sorted({row for each in best for row in each})
            parts = dict(zip(rows, OF_TOKENS[self.perturbation](one, solved, rows) if rows else [], strict=True))
            shown.advance(task)
        looked = tuple(
            SalientToken(
                position,
                float(found[position]),
                tuple(
                    TrainingEvidence(row, setting.train[row], float(scores[number, row]), parts[row][number])
                    for row in best[number]
                ),
            )
            for number, position in enumerate(chosen)
        )
        asked = int(setting.classes[query])
        return HybridResult(
            setting.queries[query], asked, setting.target, self.salience, len(setting.train), found, looked
        )


@dataclass(frozen=True)
class Swap:
    """One token replaced by a token of a training example, and the probability of the class before and after."""

    row: Tokenised
    position: int  # of the token in the text
    example: int  # the training example that the new one is taken from
    token: int  # its position there
    before: float  # the probability of the class that was decided
    after: float
    predicted: int  # the class with the new token
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

    inverse: Inverse = affordable
    tries: int = 1

    def __call__(self, setting: Setting) -> list[Swap]:
        vectors = self.inverse(setting, query_gradients(setting))
        scores = train_products(setting, vectors) * setting.shares
        opposed = np.where(setting.labels[None] != setting.classes[:, None], scores, -np.inf)
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
            int(decided[number, one]),
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
