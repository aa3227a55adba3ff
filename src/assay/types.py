"""Data types and protocols; axes are B batch, T token, D embedding, M hidden state, C class, H head, L layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

Embeddings = Float[Tensor, "B T D"]
TokenStates = Float[Tensor, "B T M"]
TokenWeights = Float[Tensor, "B T"]
Mask = Bool[Tensor, "B T"]
TokenIds = Int[Tensor, "B T"]  # or the number of each token's item
TextScores = Float[Tensor, " B"]
Logits = Float[Tensor, "B C"]
ItemStates = Float[Tensor, "B N M"]
ItemWeights = Float[Tensor, "B N"]
HeadWeights = Float[Tensor, "B H S S"]
HeadValues = Float[Tensor, "B H S K"]
PositionIds = Int[Tensor, "B S"]
Vector = Float[Tensor, " D"]


def at_least_float32(values: Tensor) -> Tensor:
    """Casts half precision to float32; float32 and float64 stay as they are."""
    return values.float() if values.dtype.itemsize < 4 else values


Edit = Callable[[Float[Tensor, "B *Q T"], Mask], Float[Tensor, "B *Q T"]]
"""Maps attention weights and the mask of real tokens to the weights to use instead."""


@runtime_checkable
class LayerwiseEdit(Protocol):
    """An attention edit that may differ from layer to layer; called directly, it edits any weights."""

    def at(self, layer: int) -> Edit | None:
        """The edit of that layer, counted from 0 at the bottom, or None to leave it unchanged."""

    def __call__(self, weights: Float[Tensor, "B *Q T"], mask: Mask) -> Float[Tensor, "B *Q T"]: ...


@dataclass(frozen=True)
class Query:
    """The second text of a pair: a hypothesis or a question."""

    ids: PositionIds
    mask: Bool[Tensor, "B S"]

    def to(self, device: torch.device | str) -> Query:
        return Query(self.ids.to(device), self.mask.to(device))

    def __getitem__(self, rows: slice | Int[Tensor, " N"]) -> Query:
        return Query(self.ids[rows], self.mask[rows])


@dataclass(frozen=True)
class Batch:
    """A batch of B examples of at most T tokens, right-padded."""

    ids: TokenIds
    mask: Mask
    labels: Int[Tensor, " B"]
    query: Query | None = None
    truth: Mask | None = None
    sentences: TokenIds | None = None  # the number of each token's sentence, from 0
    candidates: Bool[Tensor, "B C"] | None = None  # the classes that can be right, where not all can
    subwords: Int[Tensor, "B T P"] | None = None  # the subword ids of each word, padded with -1

    def __len__(self) -> int:
        return self.ids.shape[0]

    def __getitem__(self, rows: slice | Int[Tensor, " N"]) -> Batch:
        """The examples at these indices; an index may occur several times."""
        return self._changed(lambda part: part[rows])

    def narrowed(self, width: int) -> Batch:
        """The first `width` positions of each text."""
        first = slice(0, width)
        return replace(
            self,
            ids=self.ids[:, first],
            mask=self.mask[:, first],
            truth=None,
            sentences=None if self.sentences is None else self.sentences[:, first],
            subwords=None if self.subwords is None else self.subwords[:, first],
        )

    @property
    def lengths(self) -> Int[Tensor, " B"]:
        return self.mask.sum(-1)

    def to(self, device: torch.device | str) -> Batch:
        return self._changed(lambda part: part.to(device))

    def _changed(self, change: Callable[[Any], Any]) -> Batch:
        """Applies a function to every field that is not None."""
        parts: dict[str, Any] = {name: None if part is None else change(part) for name, part in vars(self).items()}
        return Batch(**parts)


@dataclass(frozen=True)
class Output:
    """A model's output: logits, and the attention weights that were used, one tensor per layer.

    The last layer pools items: [B, N]. Where these are sentences, the layer before it pools their words: [B, T].
    """

    logits: Logits
    attention: tuple[Float[Tensor, "B ..."], ...]

    @property
    def probabilities(self) -> Logits:
        return at_least_float32(self.logits).softmax(-1)


@runtime_checkable
class Model(Protocol):
    """A classifier that can be explained: it computes embeddings separately, and takes an attention edit."""

    def embed(self, batch: Batch) -> Embeddings: ...
    def __call__(self, x: Embeddings, batch: Batch, edit: Edit | None = None) -> Output: ...


@runtime_checkable
class PooledModel(Model, Protocol):
    """A model whose logits are a linear decoder of the attention-weighted mean of N hidden states."""

    def items(self, batch: Batch) -> TokenIds:
        """The index of the attended item of each token: the token itself, or its sentence; arbitrary on padding."""

    def within(self, x: Embeddings, batch: Batch) -> TokenWeights:
        """The weight of each token within its item: 1, or its attention within its sentence; 0 on padding."""

    def states(self, x: Embeddings, batch: Batch) -> ItemStates: ...
    def attend(self, states: ItemStates, batch: Batch) -> ItemWeights: ...
    def decode(self, states: ItemStates, weights: ItemWeights) -> Logits: ...


@runtime_checkable
class BlankModel(Model, Protocol):
    """A model with baseline embeddings, which stand for an absent word."""

    def blank(self, name: str) -> Vector:
        """The baseline embedding of that name, one of BLANKS; of a word in subwords, that of each subword."""


@runtime_checkable
class TokenModel(BlankModel, Protocol):
    """A model whose embeddings are rows of a table, one per word id."""

    @property
    def vectors(self) -> Float[Tensor, "V D"]: ...
    @property
    def ordinary(self) -> int:
        """The first id of an ordinary word; those before it are special tokens."""


@dataclass(frozen=True)
class Selection:
    """A rationale: the words that a model selects, and the probability of each to be selected; 0 on padding."""

    kept: Mask
    chance: TokenWeights


@runtime_checkable
class SelectingModel(Model, Protocol):
    """A model that selects a rationale to predict from, or to explain itself; `attends`: whether it has attention."""

    attends: bool

    def selection(self, x: Embeddings, batch: Batch) -> Selection: ...


BLANKS = ("zero", "pad", "mask", "mean")
"""Zeros; the padding's embedding; that of [MASK], or else of the unknown word; the mean over the vocabulary."""


@runtime_checkable
class StackedModel(Model, Protocol):
    """A model with a stack of `layers` self-attention layers, 0 where it has none."""

    @property
    def layers(self) -> int: ...
    def layered(self, x: Embeddings, batch: Batch) -> Output:
        """As the call, with the weights [B, H, S, S] of each layer over S positions, then those of the readout.

        The readout is the attention that pools, [B, T], or 1 at the position that the classifier reads, [B, S].
        """

    def token_index(self, batch: Batch) -> PositionIds:
        """The token index of each position of a layer, -1 for special tokens, the query and padding."""


Explainer = Callable[[Model, Batch, Int[Tensor, " B"]], TokenWeights]
"""Takes a model, a batch and the class to explain of each example; returns one score per token, 0 on padding."""


@dataclass(frozen=True)
class Attribution:
    """Scores with diagnostics: named numbers per example, and a standard error per token where it is known."""

    scores: TokenWeights
    numbers: Mapping[str, TextScores] = field(default_factory=dict)
    errors: TokenWeights | None = None


@runtime_checkable
class DetailedExplainer(Protocol):
    """An explainer with diagnostics; calling it returns the scores of `attribute`."""

    def attribute(self, model: Model, batch: Batch, target: Int[Tensor, " B"]) -> Attribution: ...
    def __call__(self, model: Model, batch: Batch, target: Int[Tensor, " B"]) -> TokenWeights: ...


@runtime_checkable
class ChoosyExplainer(Protocol):
    """An explainer that does not work with every model."""

    def unfit(self, model: Model) -> str | None:
        """Why the model cannot be explained by it, as the end of a sentence, or None."""


def attended(model: PooledModel, batch: Batch) -> Bool[Tensor, "B N"]:
    """The mask of real items: tokens, or sentences that have tokens."""
    numbers = model.items(batch)
    most = int(numbers.max()) + 1 if numbers.numel() else 1
    return numbers.new_zeros(len(batch), most).scatter_add(1, numbers, batch.mask.long()) > 0


def of_tokens(values: Float[Tensor, "B S"], token_index: PositionIds, tokens: int) -> TokenWeights:
    """Sums values over the positions of each token; positions without a token are left out."""
    there = token_index >= 0
    return values.new_zeros(len(values), tokens).scatter_add(1, token_index.clamp(min=0), values * there)


def over_tokens(model: PooledModel, values: ItemWeights, batch: Batch) -> TokenWeights:
    """The value of each token's item; 0 on padding."""
    return values.gather(1, model.items(batch)) * batch.mask


def token_logits(model: PooledModel, states: TokenStates) -> Float[Tensor, "B T C"]:
    """The logits of each hidden state alone; attention over the states gives their weighted mean."""
    rows, tokens, size = states.shape
    alone = states.reshape(rows * tokens, 1, size)
    return model.decode(alone, alone.new_ones(rows * tokens, 1)).reshape(rows, tokens, -1)
