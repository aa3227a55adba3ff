"""Spectrum kernels: bags of words, and n-grams of words or characters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float
from scipy import sparse

from assay.errors import AssayError, unknown
from assay.influence.landmarks.kernels.kernel import Gram, normalised
from assay.influence.landmarks.kernels.passages import UNITS, Passage, Unit, units

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

    def fit(self, texts: Sequence[Passage]) -> Spectrum:
        found: Counter[Stretch] = Counter(each for text in texts for each in set(self._stretches(text)))
        stretches = tuple(sorted(found, key=repr))
        among = np.array([found[each] for each in stretches], dtype=np.float64)
        rarity = 1 + np.log((1 + len(texts)) / (1 + among))
        return replace(self, stretches=stretches, weights=rarity if self.weighting == "rarity" else np.ones(len(among)))

    def __call__(self, left: Sequence[Passage], right: Sequence[Passage]) -> Gram:
        a, b = self.features(left), self.features(right)
        products = np.asarray((a @ b.T).toarray())
        return normalised(products, _squared(a), _squared(b)) if self.cosine else products

    def features(self, texts: Sequence[Passage]) -> sparse.csr_array:
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
