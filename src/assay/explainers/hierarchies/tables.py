"""A cache of phrase scores while a tree grows, and the finished trees."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay import progress
from assay.errors import AssayError
from assay.explainers.hierarchies.scorers import Read
from assay.trees import Phrase, Tree
from assay.types import Batch

QUIET = 24  # levels; more of them can take long enough to be watched


class PhraseTable:
    """Scores of phrases by start and stop; each is computed once."""

    def __init__(self, read: Read, batch: Batch) -> None:
        if not bool((batch.lengths > 0).all()):
            raise AssayError("A text without words has no hierarchy; leave it out.")
        rows, words = batch.ids.shape
        self._read, self._words = read, words
        self.scores: Float[Tensor, "B F L"] = torch.zeros(
            rows, words + 1, words + 1, dtype=torch.float64, device=batch.ids.device
        )
        self._known = torch.zeros_like(self.scores, dtype=torch.bool)

    def ask(self, example: Int[Tensor, " N"], start: Int[Tensor, " N"], stop: Int[Tensor, " N"]) -> None:
        """Computes the scores of these phrases, in one batch."""
        wanted = torch.zeros_like(self._known)
        wanted[example, start, stop] = True
        texts, starts, stops = (wanted & ~self._known).nonzero(as_tuple=True)  # those of a text one after the other
        if not len(texts):
            return
        counts = texts.bincount(minlength=len(wanted))
        slot = torch.arange(len(texts), device=texts.device) - (counts.cumsum(0) - counts)[texts]
        positions = torch.arange(self._words, device=texts.device)
        chosen = torch.zeros(len(wanted), int(counts.max()), self._words, dtype=torch.bool, device=texts.device)
        chosen[texts, slot] = (positions >= starts[:, None]) & (positions < stops[:, None])
        self.scores[texts, starts, stops] = self._read(chosen)[texts, slot].to(self.scores)
        self._known |= wanted


def edges(cuts: Bool[Tensor, "B E"], lengths: Int[Tensor, " B"], window: int) -> Int[Tensor, "B E K"]:
    """For each boundary, the cuts before it, itself, and the cuts after it, `window` of each.

    Where a text begins or ends, its first or last cut is repeated.
    """
    positions = torch.arange(cuts.shape[1], device=cuts.device)
    last = torch.where(cuts, positions, 0).cummax(-1).values
    before = torch.nn.functional.pad(last, (1, 0))[:, :-1]
    following = torch.where(cuts, positions, cuts.shape[1]).flip(-1).cummin(-1).values.flip(-1)
    after = torch.nn.functional.pad(following, (0, 1), value=cuts.shape[1])[:, 1:].minimum(lengths[:, None])
    found = [positions.expand_as(before)]
    for _ in range(window):
        found = [before.gather(1, found[0]), *found, after.gather(1, found[-1])]
    return torch.stack(found, dim=-1)


def trees(method: str, ranks: Int[Tensor, "B E"], table: PhraseTable, lengths: Int[Tensor, " B"]) -> list[Tree]:
    """A tree per text, from the level at which each boundary is cut and the scores of phrases."""
    return [
        _tree(method, rank[1:length], score[: length + 1, : length + 1])
        for rank, score, length in zip(ranks.tolist(), table.scores.cpu().numpy(), lengths.tolist(), strict=True)
    ]


def _tree(method: str, ranks: list[int], scores: Float[np.ndarray, "F L"]) -> Tree:
    bounds = [0, len(ranks) + 1]
    order = sorted(range(len(ranks)), key=ranks.__getitem__)
    levels = []
    for cut in [None, *order]:
        if cut is not None:
            insort(bounds, cut + 1)
        levels.append(tuple(Phrase(a, b, float(scores[a, b])) for a, b in pairwise(bounds)))
    return Tree(method, tuple(levels))


def steps(count: int, title: str) -> Iterator[int]:
    """Step numbers, with a progress bar if they are many."""
    if count <= QUIET:
        yield from range(count)
        return
    with progress.bar() as shown:
        task = shown.add_task(title, total=count)
        for step in range(count):
            yield step
            shown.advance(task)
