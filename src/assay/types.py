"""The shapes that everything else agrees on: B examples, T tokens, D embedding, M state, C classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


def at_least_float32(values: Tensor) -> Tensor:
    """The same numbers in single precision where they are in half precision, else as they are."""
    return values.float() if values.dtype.itemsize < 4 else values


Edit = Callable[[Float[Tensor, "B *Q T"], Bool[Tensor, "B T"]], Float[Tensor, "B *Q T"]]
"""Takes attention weights and the mask of real tokens; returns the weights to use instead."""


@runtime_checkable
class PlacedEdit(Protocol):
    """An edit of a stack of self-attention that is not the same in each layer; called, it edits any weights."""

    def at(self, layer: int) -> Edit | None:
        """The edit of that layer, counted from 0 at the bottom, or None where it stays as it is."""

    def __call__(self, weights: Float[Tensor, "B *Q T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B *Q T"]: ...


@dataclass(frozen=True)
class Query:
    """The second text of a pair: a hypothesis or a question."""

    ids: Int[Tensor, "B S"]
    mask: Bool[Tensor, "B S"]

    def to(self, device: torch.device | str) -> Query:
        return Query(self.ids.to(device), self.mask.to(device))

    def __getitem__(self, rows: slice | Int[Tensor, " N"]) -> Query:
        return Query(self.ids[rows], self.mask[rows])


@dataclass(frozen=True)
class Batch:
    """B padded examples of at most T tokens; padding stands at the end of a row."""

    ids: Int[Tensor, "B T"]
    mask: Bool[Tensor, "B T"]
    labels: Int[Tensor, " B"]
    query: Query | None = None
    truth: Bool[Tensor, "B T"] | None = None
    sentences: Int[Tensor, "B T"] | None = None  # the number of each token's sentence, from 0
    candidates: Bool[Tensor, "B C"] | None = None  # the classes that can be right, where not all can
    subwords: Int[Tensor, "B T P"] | None = None  # the parts of each word that a model reads, -1 for none

    def __len__(self) -> int:
        return self.ids.shape[0]

    def __getitem__(self, rows: slice | Int[Tensor, " N"]) -> Batch:
        """Some of the examples, or some of them several times."""
        return self._changed(lambda part: part[rows])

    def narrowed(self, width: int) -> Batch:
        """The first places of each text."""
        places = slice(0, width)
        return replace(
            self,
            ids=self.ids[:, places],
            mask=self.mask[:, places],
            truth=None,
            sentences=None if self.sentences is None else self.sentences[:, places],
            subwords=None if self.subwords is None else self.subwords[:, places],
        )

    @property
    def lengths(self) -> Int[Tensor, " B"]:
        return self.mask.sum(-1)

    def to(self, device: torch.device | str) -> Batch:
        return self._changed(lambda part: part.to(device))

    def _changed(self, change: Callable[[Any], Any]) -> Batch:
        """The batch with a change to every part that is there."""
        parts: dict[str, Any] = {name: None if part is None else change(part) for name, part in vars(self).items()}
        return Batch(**parts)


@dataclass(frozen=True)
class Output:
    """A model's answer: logits, and the attention weights that were used, one tensor a layer.

    The last layer pools items: [B, N]. Where these are sentences, the layer before it pools their words: [B, T].
    """

    logits: Float[Tensor, "B C"]
    attention: tuple[Float[Tensor, "B ..."], ...]

    @property
    def probabilities(self) -> Float[Tensor, "B C"]:
        return at_least_float32(self.logits).softmax(-1)


@runtime_checkable
class Model(Protocol):
    """Anything that can be explained: embeddings apart, and an edit of attention as an argument."""

    def embed(self, batch: Batch) -> Float[Tensor, "B T D"]: ...
    def __call__(self, x: Float[Tensor, "B T D"], batch: Batch, edit: Edit | None = None) -> Output: ...


@runtime_checkable
class PooledModel(Model, Protocol):
    """A model that ends in a linear decoder over the attention-weighted mean of the states of N items."""

    def items(self, batch: Batch) -> Int[Tensor, "B T"]:
        """The number of the attended item that each token belongs to: itself, or its sentence; any on padding."""

    def within(self, x: Float[Tensor, "B T D"], batch: Batch) -> Float[Tensor, "B T"]:
        """The share of each token in its item: 1, or its weight in its sentence; 0 on padding."""

    def states(self, x: Float[Tensor, "B T D"], batch: Batch) -> Float[Tensor, "B N M"]: ...
    def attend(self, states: Float[Tensor, "B N M"], batch: Batch) -> Float[Tensor, "B N"]: ...
    def decode(self, states: Float[Tensor, "B N M"], weights: Float[Tensor, "B N"]) -> Float[Tensor, "B C"]: ...


@runtime_checkable
class BlankModel(Model, Protocol):
    """A model that has embeddings for nothing."""

    def blank(self, name: str) -> Float[Tensor, " D"]:
        """An embedding that stands for "nothing here": one of BLANKS; of a word in subwords, that of each subword."""


@runtime_checkable
class TokenModel(BlankModel, Protocol):
    """A model whose embeddings come from a table with a row for each id."""

    @property
    def vectors(self) -> Float[Tensor, "V D"]: ...
    @property
    def ordinary(self) -> int:
        """The first id that stands for a word; those before it are special."""


@dataclass(frozen=True)
class Selection:
    """The words that a model lets itself read, and the chance of each to be selected; nothing on padding."""

    kept: Bool[Tensor, "B T"]
    chance: Float[Tensor, "B T"]


@runtime_checkable
class SelectingModel(Model, Protocol):
    """A model that selects words to decide by, or to explain itself; whether it `attends` to all is another matter."""

    attends: bool

    def selection(self, x: Float[Tensor, "B T D"], batch: Batch) -> Selection: ...


BLANKS = ("zero", "pad", "mask", "mean")
"""The origin; the padding's embedding; that of the mask, or else of an unknown word; the mean over all words."""


@runtime_checkable
class StackedModel(Model, Protocol):
    """A model that can show every layer of self-attention; `layers` is their number, 0 where it has none."""

    @property
    def layers(self) -> int: ...
    def layered(self, x: Float[Tensor, "B T D"], batch: Batch) -> Output:
        """As the call, with the weights [B, H, S, S] of each layer over S places, before what is read above.

        That is the attention that pools, [B, T], or 1 at the place that the classifier reads, [B, S].
        """

    def places(self, batch: Batch) -> Int[Tensor, "B S"]:
        """The token that each place of a layer belongs to, -1 where it is none: a marker, a question or padding."""


Explainer = Callable[[Model, Batch, Int[Tensor, " B"]], Float[Tensor, "B T"]]
"""Takes a model, a batch and the class to explain of each example; returns one score a token, 0 on padding."""


@dataclass(frozen=True)
class Attribution:
    """Scores with what is known of their quality: numbers for each example, a standard error for each token."""

    scores: Float[Tensor, "B T"]
    numbers: Mapping[str, Float[Tensor, " B"]] = field(default_factory=dict)
    errors: Float[Tensor, "B T"] | None = None


@runtime_checkable
class DetailedExplainer(Protocol):
    """An explainer that knows more than its scores; a call gives the scores of `attribute`."""

    def attribute(self, model: Model, batch: Batch, target: Int[Tensor, " B"]) -> Attribution: ...
    def __call__(self, model: Model, batch: Batch, target: Int[Tensor, " B"]) -> Float[Tensor, "B T"]: ...


@runtime_checkable
class ChoosyExplainer(Protocol):
    """An explainer that not every model can serve."""

    def unfit(self, model: Model) -> str | None:
        """What the model lacks, as the end of a sentence, or None."""


def attended(model: PooledModel, batch: Batch) -> Bool[Tensor, "B N"]:
    """Which of the attended items are real: the tokens, or the sentences that have any; the others are padding."""
    numbers = model.items(batch)
    most = int(numbers.max()) + 1 if numbers.numel() else 1
    return numbers.new_zeros(len(batch), most).scatter_add(1, numbers, batch.mask.long()) > 0


def of_tokens(values: Float[Tensor, "B S"], places: Int[Tensor, "B S"], tokens: int) -> Float[Tensor, "B T"]:
    """The sums over the places of each token; what stands on other places is left out."""
    there = places >= 0
    return values.new_zeros(len(values), tokens).scatter_add(1, places.clamp(min=0), values * there)


def over_tokens(model: PooledModel, values: Float[Tensor, "B N"], batch: Batch) -> Float[Tensor, "B T"]:
    """The number of each token's item; 0 on padding."""
    return values.gather(1, model.items(batch)) * batch.mask


def token_logits(model: PooledModel, states: Float[Tensor, "B T M"]) -> Float[Tensor, "B T C"]:
    """The logits of each state alone; any attention over the states gives their weighted mean."""
    rows, tokens, size = states.shape
    alone = states.reshape(rows * tokens, 1, size)
    return model.decode(alone, alone.new_ones(rows * tokens, 1)).reshape(rows, tokens, -1)
