"""Kernels of landmark classifiers: positive semidefinite similarities of texts, or of rows of word ids."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy import sparse
from torch import Tensor, nn

from assay import progress
from assay.data.batches import Tokenised, by_tokens
from assay.data.published import glove
from assay.data.text import WORD
from assay.errors import AssayError, unknown
from assay.influence.representations import DECODER, read
from assay.models import budget
from assay.models.textmodel import TextModel, groups

Passage = str | Tokenised
"""A text as written, or one in the word ids of a network."""

Passages = Sequence[Passage]

Unit = str | int
UNITS = ("word", "character")
BETWEEN = -1  # stands between a text and its question
WORDS = re.compile(WORD)


def units(passage: Passage, unit: str = "word") -> list[Unit]:
    """The words of a text without regard to case, its characters, or the ids of a row with those of its question."""
    if unit not in UNITS:
        raise unknown("unit", unit, UNITS)
    if isinstance(passage, str):
        text = passage.lower()
        return [*(WORDS.findall(text) if unit == "word" else " ".join(text.split()))]
    if unit == "character":
        raise AssayError("Rows of word ids have no characters; give the texts themselves, or a kernel over words.")
    asked = [] if passage.query is None else [BETWEEN, *passage.query.tolist()]
    return [*passage.ids.tolist(), *asked]


def numbered(passages: Passages, unit: str, known: dict[Unit, int], longest: int) -> list[Int[np.ndarray, " _"]]:
    """The units of each passage as ids, at most `longest` of them; new units are added to `known`."""
    return [
        np.array([known.setdefault(each, len(known)) for each in units(passage, unit)[:longest]], dtype=np.int64)
        for passage in passages
    ]


def padded(rows: Sequence[Int[np.ndarray, " _"]]) -> Int[np.ndarray, "N T"]:
    """The rows as one matrix, padded with -1."""
    found = np.full((len(rows), max([1, *map(len, rows)])), -1, dtype=np.int64)
    for index, row in enumerate(rows):
        found[index, : len(row)] = row
    return found


def looked_up(words: Iterable[Unit]) -> tuple[tuple[str, ...], Float[np.ndarray, "V D"]]:
    """The words that GloVe has, and their vectors."""
    found = sorted(words, key=repr)
    written = [each for each in found if isinstance(each, str)]
    if len(written) < len(found):
        raise AssayError("Rows of word ids have no words to look up; give the texts themselves, or another kernel.")
    vectors, there = glove(written)
    return tuple(word for word, known in zip(written, there, strict=True) if known), vectors[there].astype(np.float64)


Gram = Float[np.ndarray, "N M"]


@runtime_checkable
class Kernel(Protocol):
    """A positive semidefinite similarity of two texts, 1 for a text and itself unless it is empty."""

    def fit(self, texts: Passages) -> Kernel:
        """The kernel with statistics of the training texts, such as document frequencies."""

    def __call__(self, left: Passages, right: Passages) -> Gram: ...


def normalised(
    products: Gram, left: Float[np.ndarray, " N"], right: Float[np.ndarray, " M"]
) -> Float[np.ndarray, "N M"]:
    """Cosines from inner products and the squared norms of both sides; 0 where a norm is 0."""
    norms = np.sqrt(np.outer(left, right))
    found = np.zeros_like(products)
    np.divide(products, norms, out=found, where=norms > 0)
    return found


WEIGHTINGS = ("rarity", "counts", "presence")
Stretch = tuple[Unit, ...]


@dataclass(frozen=True)
class Spectrum:
    """The n-grams of words or characters that two texts share (Leslie et al., 2002), as a cosine.

    With stretches of one word it is a bag of words. By "rarity" a count is weighted by 1 + ln((1 + N) / (1 + n)) for n
    of N texts that have the stretch (tf-idf). Only stretches of the texts that were learnt from count.
    """

    unit: str = "word"
    shortest: int = 1
    longest: int = 1
    weighting: str = "rarity"
    cosine: bool = True  # otherwise the plain inner product of the weighted counts
    stretches: tuple[Stretch, ...] | None = field(default=None, repr=False)  # known since it was fitted
    weights: Float[np.ndarray, " V"] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise unknown("unit", self.unit, UNITS)
        if self.weighting not in WEIGHTINGS:
            raise unknown("weighting", self.weighting, WEIGHTINGS)
        if not 1 <= self.shortest <= self.longest:
            raise AssayError("Stretches have at least one unit, and the shortest are not longer than the longest.")

    def fit(self, texts: Passages) -> Spectrum:
        found: Counter[Stretch] = Counter(each for text in texts for each in set(self._stretches(text)))
        stretches = tuple(sorted(found, key=repr))
        among = np.array([found[each] for each in stretches], dtype=np.float64)
        rarity = 1 + np.log((1 + len(texts)) / (1 + among))
        return replace(self, stretches=stretches, weights=rarity if self.weighting == "rarity" else np.ones(len(among)))

    def __call__(self, left: Passages, right: Passages) -> Gram:
        a, b = self.features(left), self.features(right)
        products = np.asarray((a @ b.T).toarray())
        return normalised(products, _squared(a), _squared(b)) if self.cosine else products

    def features(self, texts: Passages) -> sparse.csr_array:
        """The weighted counts, a row a text and a column an n-gram."""
        if self.weights is None:
            raise AssayError("A kernel that counts must know which stretches there are; call its fit(texts) first.")
        columns: list[int] = []
        values: list[float] = []
        ends = [0]
        for text in texts:
            counts = Counter(index for each in self._stretches(text) if (index := self._indices.get(each)) is not None)
            columns.extend(counts)
            values.extend([1.0] * len(counts) if self.weighting == "presence" else counts.values())
            ends.append(len(columns))
        weighted = np.array(values, dtype=np.float64) * self.weights[np.array(columns, dtype=np.int64)]
        return sparse.csr_array((weighted, columns, ends), shape=(len(texts), len(self.weights)))

    @cached_property
    def _indices(self) -> dict[Stretch, int]:
        return {each: index for index, each in enumerate(self.stretches or ())}

    def _stretches(self, text: Passage) -> Iterator[Stretch]:
        row = units(text, self.unit)
        for size in range(self.shortest, self.longest + 1):
            for start in range(len(row) - size + 1):
                yield tuple(row[start : start + size])


def _squared(features: sparse.csr_array) -> Float[np.ndarray, " N"]:
    return np.asarray(features.multiply(features).sum(axis=1), dtype=np.float64).reshape(-1)


def gap_weighted(matches: Float[Tensor, "T S *P"], length: int, decay: float) -> Float[Tensor, "*P"]:
    """The sum over all pairs of subsequences of 1 to `length` positions, by dynamic programming (Lodhi et al., 2002).

    A pair counts as much as the product of what its positions have in common, `matches`, times decay **
    (positions skipped).
    """
    # differs from Lodhi et al. (2002): all lengths are summed and only gaps are paid for, not the positions themselves;
    # else single words would drown what is longer.
    ending = matches  # sums over pairs of subsequences that end at these two positions
    total = ending.sum((0, 1))
    for _ in range(1, length):
        ending = matches * _earlier(_earlier(ending, decay).transpose(0, 1), decay).transpose(0, 1)
        total += ending.sum((0, 1))
    return total


def _earlier(ending: Float[Tensor, "T S *P"], decay: float) -> Float[Tensor, "T S *P"]:
    """The sums over what ends before each position, each times decay ** (positions between)."""
    found = torch.zeros_like(ending)
    for position in range(1, len(ending)):
        torch.add(ending[position - 1], found[position - 1], alpha=decay, out=found[position])
    return found


@dataclass(frozen=True)
class Subsequences:
    """The words or characters that two texts share in the same order, gaps allowed (Lodhi et al., 2002), as a cosine.

    With `smooth`, words need not be the same: two of them match by exp(sharpness (cos − 1)) of their GloVe vectors, as
    the smoothed partial tree kernel of Croce et al. (2011) has it, here over the chain of words instead of a parse.
    """

    unit: str = "word"
    length: int = 3
    decay: float = 0.5
    smooth: bool = False
    sharpness: float = 8.0
    longest: int = 100  # what is behind is not read
    device: str = "cpu"
    words: tuple[str, ...] | None = field(default=None, repr=False)  # known since it was fitted
    vectors: Float[np.ndarray, "V D"] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise unknown("unit", self.unit, UNITS)
        if self.length < 1 or not 0 < self.decay <= 1 or self.sharpness <= 0 or self.longest < 1:
            raise AssayError("Subsequences need a length from 1, a decay above 0 and up to 1, and a sharpness above 0.")
        if self.smooth and self.unit != "word":
            raise AssayError("Only words have vectors; leave smooth out for characters.")

    def fit(self, texts: Passages) -> Subsequences:
        """With `smooth` and no vectors given, those of GloVe for all words of these texts."""
        if not self.smooth or self.vectors is not None:
            return self
        words, vectors = looked_up({each for text in texts for each in units(text)})
        return replace(self, words=words, vectors=vectors)

    def __call__(self, left: Passages, right: Passages) -> Gram:
        known: dict[Unit, int] = {}
        sides = [padded(numbered(texts, self.unit, known, self.longest)) for texts in (left, right)]
        a, b = (torch.from_numpy(rows).to(self.device) for rows in sides)
        vectors = self._vectors(known)
        products = np.zeros((len(a), len(b)))
        with progress.bar() as shown:
            task = shown.add_task("kernel", total=len(a))
            for positions in self._groups(sides[0], b.numel()):
                part = a[positions, : int((sides[0][positions] >= 0).sum(1).max(initial=1))]
                matches = self._matches(
                    part.T.contiguous()[:, None, :, None], b.T.contiguous()[None, :, None, :], vectors
                )
                products[positions] = gap_weighted(matches, self.length, self.decay).cpu().numpy()
                shown.advance(task, len(part))
        return normalised(products, self._own(a, vectors), self._own(b, vectors))

    def _groups(self, rows: Int[np.ndarray, "N T"], other: int) -> list[Int[np.ndarray, " n"]]:
        """Places of left texts of like length, as many as are compared with all right ones at once."""
        return by_tokens((rows >= 0).sum(1), budget.room(self.device, "subsequence pairs", other))

    def _own(self, rows: Int[Tensor, "N T"], vectors: Float[Tensor, "V D"] | None) -> Float[np.ndarray, " N"]:
        """The kernel of each text with itself, before it is normalised."""
        parts = [
            gap_weighted(
                self._matches(part.T.contiguous()[:, None], part.T.contiguous()[None], vectors), self.length, self.decay
            )
            for part in torch.tensor_split(rows, len(rows) // 256 + 1)
        ]
        return torch.cat(parts).cpu().numpy()

    def _matches(
        self, left: Int[Tensor, "T 1 *P"], right: Int[Tensor, "1 S *Q"], vectors: Float[Tensor, "V D"] | None
    ) -> Float[Tensor, "T S *R"]:
        """How well the units at each two positions match; padding matches nothing."""
        if vectors is None:
            return ((left == right) & (left >= 0)).double()
        (a, first), (b, second) = (torch.unique(part, return_inverse=True) for part in (left, right))
        same, real = a[:, None] == b, (a[:, None] >= 0) & (b >= 0)
        near = torch.exp(self.sharpness * (vectors[a] @ vectors[b].T - 1))
        table: Tensor = torch.where(same, 1.0, near) * real
        return table[first, second]

    def _vectors(self, known: Mapping[Unit, int]) -> Float[Tensor, "V D"] | None:
        """The direction of each unit, 0 where it is like no other."""
        if not self.smooth:
            return None
        if self.vectors is None or self.words is None:
            raise AssayError("A kernel over like words must know their vectors; call its fit(texts) first.")
        found = np.zeros((len(known) + 1, self.vectors.shape[1]))  # the last is the padding's
        for word, position in known.items():
            if (row := self._indices.get(word)) is not None:
                found[position] = self.vectors[row] / max(float(np.linalg.norm(self.vectors[row])), 1e-12)
        return torch.from_numpy(found).to(self.device)

    @cached_property
    def _indices(self) -> dict[Unit, int]:
        return {word: position for position, word in enumerate(self.words or ())}


SHAPES = ("cosine", "rbf")
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
    """Similarity of mean word vectors: GloVe's, or a table over `words`."""

    shape: str = "cosine"
    width: float = 1.0
    words: tuple[Unit, ...] | None = field(default=None, repr=False)
    table: Float[np.ndarray, "V D"] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.shape not in SHAPES:
            raise unknown("shape", self.shape, SHAPES)
        if self.width <= 0:
            raise AssayError("The width of a kernel is a number above 0.")

    def fit(self, texts: Passages) -> WordVectors:
        """Loads a vector for every word of these texts that has one, where there is no table."""
        if self.table is not None:
            return self
        written, vectors = looked_up({each for text in texts for each in units(text)})
        return replace(self, words=written, table=vectors)

    def __call__(self, left: Passages, right: Passages) -> Gram:
        a, b = (self.means(texts) for texts in (left, right))
        return likeness(a, b, self.shape, self.width).numpy()

    def means(self, texts: Passages) -> Float[Tensor, "N D"]:
        """The mean vector of each text, 0 where none of its words has one."""
        found = np.zeros((len(texts), self.vectors.shape[1]))
        for mean, text in zip(found, texts, strict=True):
            rows = [index for each in units(text) if (index := self._indices.get(each)) is not None]
            if rows:
                mean[:] = self.vectors[rows].mean(0)
        return torch.from_numpy(found)

    @property
    def vectors(self) -> Float[np.ndarray, "V D"]:
        """The table; raises where there is none."""
        if self.table is None or self.words is None:
            raise AssayError("A kernel over word vectors must know them; call its fit(texts) first.")
        return self.table

    @cached_property
    def _indices(self) -> dict[Unit, int]:
        return {word: index for index, word in enumerate(self.words or ())}


@dataclass(frozen=True)
class Represented:
    """Similarity of two rows of word ids in a network: of the inputs of its last linear layer."""

    network: TextModel | None = field(default=None, repr=False, compare=False)
    shape: str = "cosine"
    width: float = 1.0

    def fit(self, texts: Passages) -> Represented:
        return self

    def __call__(self, left: Passages, right: Passages) -> Gram:
        if self.network is None:
            raise AssayError("Which network's representations are to be compared? Name it: Represented(network).")
        a, b = (represented(self.network, rows) for rows in (left, right))
        return likeness(a, b, self.shape, self.width).numpy()


@torch.no_grad()
def represented(network: TextModel, rows: Passages) -> Float[Tensor, "N D"]:
    """The inputs of the last linear layer for each row."""
    known = [row for row in rows if isinstance(row, Tokenised)]
    if len(known) < len(rows):
        raise AssayError("A network reads rows of word ids; tokenise the texts for it first.")
    found: list[Tensor] = [torch.zeros(0)] * len(known)
    for indices, batch in groups(network, known):
        for index, vector in zip(indices, read(network, batch)[DECODER].double().cpu(), strict=True):
            found[index] = vector
    return torch.stack(found) if found else torch.zeros(0, 1).double()


KERNELS: dict[str, Kernel] = {
    "words": Spectrum(),
    "phrases": Spectrum(longest=3),
    "characters": Spectrum(unit="character", shortest=3, longest=5),
    "vectors": WordVectors(),
    "subsequences": Subsequences(),
    "character_subsequences": Subsequences(unit="character", length=4),
    "like_words": Subsequences(smooth=True),
    "representations": Represented(),
}
"""All kernels, by name."""
