"""Kernels over vectors: a text's mean word vector, or its representation in a network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from assay.data.batches import Tokenised
from assay.errors import AssayError, unknown
from assay.influence.landmarks.kernels.kernel import Gram
from assay.influence.landmarks.kernels.passages import Passage, Unit, looked_up, units
from assay.models.textmodel import TextModel, groups

SHAPES = ("cosine", "rbf")
SOURCES = ("glove", "random")
LEAST = 1e-12  # a shorter vector has no direction


def likeness(
    left: Float[Tensor, "N D"], right: Float[Tensor, "M D"], shape: str = "cosine", width: float = 1.0
) -> Float[Tensor, "N M"]:
    """Cosine or RBF similarity of vectors, exp(−‖a − b‖² / (2 width²)) of their directions; differentiable."""
    if shape not in SHAPES:
        raise unknown("shape", shape, SHAPES)
    a, b = (nn.functional.normalize(each, dim=-1, eps=LEAST) for each in (left, right))
    cosines = a @ b.T
    if shape == "cosine":
        return cosines
    squared = (a * a).sum(-1)[:, None] + (b * b).sum(-1) - 2 * cosines
    return torch.exp(-squared.clamp(min=0) / (2 * width**2))


@dataclass(frozen=True)
class WordVectors:
    """Similarity of mean word vectors: GloVe's, random ones to be trained, or a table over `words`."""

    shape: str = "cosine"
    width: float = 1.0
    source: str = "glove"
    size: int = 50  # of random vectors
    seed: int = 0
    words: tuple[Unit, ...] | None = field(default=None, repr=False)
    table: Float[np.ndarray, "V D"] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.shape not in SHAPES:
            raise unknown("shape", self.shape, SHAPES)
        if self.source not in SOURCES:
            raise unknown("source of word vectors", self.source, SOURCES)
        if self.width <= 0 or self.size < 1:
            raise AssayError("The width of a kernel is a number above 0, and vectors have a size from 1.")

    def fit(self, texts: Sequence[Passage]) -> WordVectors:
        """Loads a vector for every word of these texts that has one, where there is no table."""
        if self.table is not None:
            return self
        words = sorted({each for text in texts for each in units(text)}, key=repr)
        if self.source == "random":
            drawn = np.random.default_rng(self.seed).normal(size=(len(words), self.size))
            return replace(self, words=tuple(words), table=drawn)
        written, vectors = looked_up(words)
        return replace(self, words=written, table=vectors)

    def __call__(self, left: Sequence[Passage], right: Sequence[Passage]) -> Gram:
        a, b = (self.means(texts) for texts in (left, right))
        return likeness(a, b, self.shape, self.width).numpy()

    def means(self, texts: Sequence[Passage]) -> Float[Tensor, "N D"]:
        """The mean vector of each text, 0 where none of its words has one."""
        return mean_vectors(torch.from_numpy(self.vectors).double(), *self.read(texts))

    @property
    def vectors(self) -> Float[np.ndarray, "V D"]:
        """The table; raises where there is none."""
        if self.table is None or self.words is None:
            raise AssayError("A kernel over word vectors must know them; call its fit(texts) first.")
        return self.table

    def read(self, texts: Sequence[Passage]) -> tuple[Int[Tensor, "N T"], Bool[Tensor, "N T"]]:
        """Table rows of each text, padded, and the mask of real positions."""
        rows = [[index for each in units(text) if (index := self._indices.get(each)) is not None] for text in texts]
        ids = torch.zeros(len(rows), max([1, *map(len, rows)]), dtype=torch.long)
        for index, row in enumerate(rows):
            ids[index, : len(row)] = torch.tensor(row, dtype=torch.long)
        lengths = torch.tensor([len(row) for row in rows], dtype=torch.long)
        return ids, torch.arange(ids.shape[1]) < lengths[:, None]

    @cached_property
    def _indices(self) -> dict[Unit, int]:
        return {word: index for index, word in enumerate(self.words or ())}


def mean_vectors(
    table: Float[Tensor, "V D"], ids: Int[Tensor, "N T"], mask: Bool[Tensor, "N T"]
) -> Float[Tensor, "N D"]:
    """The mean of the rows that each text reads; it can be differentiated by the table."""
    weights = mask.to(table) / mask.sum(-1, keepdim=True).clamp(min=1)
    return nn.functional.embedding_bag(ids, table, per_sample_weights=weights, mode="sum")


@dataclass(frozen=True)
class Represented:
    """Similarity of two rows of word ids in a network: of the inputs of its last linear layer."""

    network: TextModel | None = field(default=None, repr=False, compare=False)
    shape: str = "cosine"
    width: float = 1.0

    def fit(self, texts: Sequence[Passage]) -> Represented:
        return self

    def __call__(self, left: Sequence[Passage], right: Sequence[Passage]) -> Gram:
        if self.network is None:
            raise AssayError("Which network's representations are to be compared? Name it: Represented(network).")
        a, b = (represented(self.network, rows) for rows in (left, right))
        return likeness(a, b, self.shape, self.width).numpy()


@torch.no_grad()
def represented(network: TextModel, rows: Sequence[Passage]) -> Float[Tensor, "N D"]:
    """The inputs of the last linear layer for each row."""
    read = [row for row in rows if isinstance(row, Tokenised)]
    if len(read) < len(rows):
        raise AssayError("A network reads rows of word ids; tokenise the texts for it first.")
    seen: list[Tensor] = []
    linear = [module for module in network.modules() if isinstance(module, nn.Linear)]
    hooks = [module.register_forward_pre_hook(lambda _, given: seen.append(given[0])) for module in linear]
    found: dict[int, Tensor] = {}
    try:
        for indices, batch in groups(network, read):
            seen.clear()
            network(network.embed(batch), batch)
            if not seen or seen[-1].dim() != 2:
                raise AssayError(
                    "This network does not end in a linear layer over one vector, so it has none to compare."
                )
            found |= dict(zip(indices.tolist(), seen[-1].double().cpu(), strict=True))
    finally:
        for hook in hooks:
            hook.remove()
    return torch.stack([found[index] for index in range(len(read))]) if read else torch.zeros(0, 1).double()
