"""The probabilities of a model when some words of a text are replaced by random words of other texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from assay.data.batches import Tokenised, tokenise
from assay.data.examples import Example
from assay.data.text import SPECIAL
from assay.models.erasure import capacity, extents, query_lengths, read_alike
from assay.models.store import Opened
from assay.types import Batch, Model

WORDS = 4096
"""Of so many words of a vocabulary, or fewer, all are taken."""


@dataclass(frozen=True)
class Pool:
    """The words of many texts, with multiplicity: their ids, and their subwords where a model reads those."""

    ids: Int[Tensor, " M"]
    subwords: Int[Tensor, "M P"] | None = None

    @classmethod
    def of(cls, rows: Sequence[Tokenised]) -> Pool:
        """All words of these texts."""
        parts = [word[word >= 0] for row in rows if row.subwords is not None for word in row.subwords]
        subwords = pad_sequence(parts, batch_first=True, padding_value=-1) if parts else None
        return cls(torch.cat([torch.zeros(0, dtype=torch.long), *(row.ids for row in rows)]), subwords)

    @classmethod
    def of_vocabulary(cls, model: Opened) -> Pool:
        """Words of the model's vocabulary, evenly spread, `WORDS` to 2 × `WORDS`: for when there are no texts."""
        words = [word for word in model.tokeniser.vocabulary if word not in SPECIAL]
        step = max(1, len(words) // WORDS)
        rows, _ = tokenise([Example(word, 0) for word in words[::step]], model.tokeniser, 100)
        return cls.of(rows)

    def __len__(self) -> int:
        return len(self.ids)

    def to(self, device: torch.device) -> Pool:
        return Pool(self.ids.to(device), None if self.subwords is None else self.subwords.to(device))

    def put(self, batch: Batch, kept: Bool[Tensor, "B T"], drawn: Int[Tensor, "B T"]) -> Batch:
        """The batch with the drawn words in place of those that are not kept."""
        ids = torch.where(kept, batch.ids, self.ids[drawn])
        if batch.subwords is None or self.subwords is None:
            return replace(batch, ids=ids * batch.mask, truth=None)
        width = max(batch.subwords.shape[2], self.subwords.shape[1])
        own, other = (_widened(each, width) for each in (batch.subwords, self.subwords))
        subwords = torch.where(kept[..., None], own, other[drawn]).masked_fill(~batch.mask[..., None], -1)
        used = int((subwords >= 0).sum(-1).max()) if subwords.numel() else 1
        return replace(batch, ids=ids * batch.mask, subwords=subwords[..., : max(1, used)], truth=None)


def _widened(subwords: Int[Tensor, "*N P"], width: int) -> Int[Tensor, "*N W"]:
    return torch.nn.functional.pad(subwords, (0, width - subwords.shape[-1]), value=-1)


@torch.no_grad()
def redrawn_probabilities(
    model: Model,
    batch: Batch,
    pool: Pool,
    example: Int[Tensor, " N"],
    kept: Bool[Tensor, "N T"],
    drawn: Int[Tensor, "N T"],
) -> Float[Tensor, "N C"]:
    """The probabilities of N versions of texts, each of one `example`, with words not `kept` drawn at random.

    `drawn` are indices into the pool. Versions of like length are read together, as many at once as `capacity` allows.
    """

    def read(chosen: Int[Tensor, " n"], width: int) -> Float[Tensor, "n C"]:
        version = pool.put(batch[example[chosen]].narrowed(width), kept[chosen, :width], drawn[chosen, :width])
        return model(model.embed(version), version).probabilities

    lengths = (extents(batch).sum(-1) + query_lengths(batch))[example]
    return read_alike(lengths, batch.lengths[example], capacity(model, kept.device), read)
