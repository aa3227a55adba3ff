"""Subsequence kernels over words or characters in order, with gaps: nearest to tree kernels without a parser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay import progress
from assay.data.batches import by_tokens
from assay.errors import AssayError, unknown
from assay.influence.landmarks.kernels.kernel import Gram, normalised
from assay.influence.landmarks.kernels.passages import UNITS, Passage, Unit, looked_up, numbered, padded, units
from assay.models import budget


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

    def fit(self, texts: Sequence[Passage]) -> Subsequences:
        """With `smooth` and no vectors given, those of GloVe for all words of these texts."""
        if not self.smooth or self.vectors is not None:
            return self
        words, vectors = looked_up({each for text in texts for each in units(text)})
        return replace(self, words=words, vectors=vectors)

    def __call__(self, left: Sequence[Passage], right: Sequence[Passage]) -> Gram:
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
