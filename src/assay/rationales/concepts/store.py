"""Phrases of training texts with what a network makes of them now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from assay import progress
from assay.data.batches import Tokenised, collate
from assay.errors import AssayError
from assay.rationales.concepts.phrases import Phrases
from assay.rationales.players import Reader
from assay.types import Batch

AT_ONCE = 512  # phrases encoded together

Key = tuple[tuple[int, ...], ...]
"""The ids of the words of a phrase, or the pieces of each."""


class Store(nn.Module):
    """N phrases: as they are written, in ids, and as vectors, which are 0 until they are encoded."""

    ids: Tensor
    pieces: Tensor | None
    vectors: Tensor

    def __init__(self, texts: Sequence[str], ids: Int[Tensor, "N W"], pieces: Int[Tensor, "N W P"] | None, size: int):
        super().__init__()
        self.texts = tuple(texts)
        self.register_buffer("ids", ids)  # -1 on padding
        self.register_buffer("pieces", pieces)
        self.register_buffer("vectors", torch.zeros(len(ids), size))

    def __len__(self) -> int:
        return len(self.texts)

    def batch(self, start: int, stop: int) -> Batch:
        """Some of the phrases, as texts of their own."""
        ids = self.ids[start:stop]
        pieces = None if self.pieces is None else self.pieces[start:stop]
        return Batch(ids.clamp(min=0), ids >= 0, torch.zeros_like(ids[:, 0]), subwords=pieces)

    @torch.no_grad()
    def refresh(self, reader: Reader) -> None:
        """Encodes all phrases anew with the weights that the reader has now."""
        was_training = reader.training
        reader.eval()
        with progress.bar() as shown:
            task = shown.add_task("phrases", total=len(self))
            for start in range(0, len(self), AT_ONCE):
                part = pooled(reader, self.batch(start, start + AT_ONCE))
                self.vectors[start : start + AT_ONCE] = part.to(self.vectors)
                shown.advance(task, len(part))
        reader.train(was_training)

    def nearest(self, vectors: Float[Tensor, "B M"], count: int) -> tuple[Float[Tensor, "B K"], Int[Tensor, "B K"]]:
        """The phrases with the largest inner products, largest first, and these."""
        found = (vectors.to(self.vectors) @ self.vectors.T).topk(min(count, len(self)), dim=-1)
        return found.values, found.indices


def pooled(reader: Reader, batch: Batch) -> Float[Tensor, "B M"]:
    """What the reader makes of whole texts: its states, weighed by its attention."""
    states = reader.states(reader.embed(batch), batch)
    return (reader.attend(states, batch)[:, None] @ states).squeeze(1)


def gathered(rows: Sequence[Tokenised], texts: Sequence[str], cut: Phrases, size: int, limit: int = 2000) -> Store:
    """The phrases that training rows have most often, without their marks; `texts` are those the rows came from."""
    counted: Counter[Key] = Counter()
    written: dict[Key, str] = {}
    for row in rows:
        batch = collate([row])
        owner = cut(batch).owner[0].masked_fill(cut.stopped(batch)[0], -1)
        for number in range(int(owner.max()) + 1):
            places = (owner == number).nonzero()[:, 0]
            if len(places):
                key = _key(row, places)
                counted[key] += 1
                begin, end = int(row.spans[places[0], 0]), int(row.spans[places[-1], 1])
                written.setdefault(key, texts[row.index][begin:end])
    if not counted:
        raise AssayError("The training texts have no phrase with a word in it, so there is nothing to store.")
    kept = [key for key, _ in counted.most_common(limit)]
    width = max(len(key) for key in kept)
    parts = max(len(word) for key in kept for word in key)
    pieces = torch.full((len(kept), width, parts), -1)
    for place, key in enumerate(kept):
        for word, each in enumerate(key):
            pieces[place, word, : len(each)] = torch.tensor(each)
    whole = rows[0].subwords is None
    return Store([written[key] for key in kept], pieces[..., 0], None if whole else pieces, size)


def _key(row: Tokenised, places: Int[Tensor, " n"]) -> Key:
    if row.subwords is None:
        return tuple((number,) for number in row.ids[places].tolist())
    return tuple(tuple(piece for piece in word if piece >= 0) for word in row.subwords[places].tolist())
