"""Store of training phrases with their encodings."""

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
"""The ids of the words of a phrase, or the subwords of each."""


class Store(nn.Module):
    """N phrases as texts, ids (or subword ids) and vectors; vectors are 0 until encoded."""

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
        """Some phrases, as a batch of texts."""
        ids = self.ids[start:stop]
        pieces = None if self.pieces is None else self.pieces[start:stop]
        return Batch(ids.clamp(min=0), ids >= 0, torch.zeros_like(ids[:, 0]), subwords=pieces)

    @torch.no_grad()
    def refresh(self, reader: Reader) -> None:
        """Encodes all phrases with the present weights of the reader."""
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
        """Indices of the phrases with the largest inner products, largest first, and these products."""
        found = (vectors.to(self.vectors) @ self.vectors.T).topk(min(count, len(self)), dim=-1)
        return found.values, found.indices


def pooled(reader: Reader, batch: Batch) -> Float[Tensor, "B M"]:
    """The attention-weighted mean hidden state of each text."""
    states = reader.states(reader.embed(batch), batch)
    return (reader.attend(states, batch)[:, None] @ states).squeeze(1)


def gathered(rows: Sequence[Tokenised], texts: Sequence[str], cut: Phrases, size: int, limit: int = 2000) -> Store:
    """The most frequent phrases of the training rows, without punctuation; `texts` are those of the rows."""
    counted: Counter[Key] = Counter()
    written: dict[Key, str] = {}
    for row in rows:
        batch = collate([row])
        owner = cut(batch).owner[0].masked_fill(cut.stopped(batch)[0], -1)
        for number in range(int(owner.max()) + 1):
            positions = (owner == number).nonzero()[:, 0]
            if len(positions):
                key = _key(row, positions)
                counted[key] += 1
                begin, end = int(row.spans[positions[0], 0]), int(row.spans[positions[-1], 1])
                written.setdefault(key, texts[row.index][begin:end])
    if not counted:
        raise AssayError("The training texts have no phrase with a word in it, so there is nothing to store.")
    kept = [key for key, _ in counted.most_common(limit)]
    width = max(len(key) for key in kept)
    parts = max(len(word) for key in kept for word in key)
    pieces = torch.full((len(kept), width, parts), -1)
    for index, key in enumerate(kept):
        for word, each in enumerate(key):
            pieces[index, word, : len(each)] = torch.tensor(each)
    whole = rows[0].subwords is None
    return Store([written[key] for key in kept], pieces[..., 0], None if whole else pieces, size)


def _key(row: Tokenised, positions: Int[Tensor, " n"]) -> Key:
    if row.subwords is None:
        return tuple((number,) for number in row.ids[positions].tolist())
    return tuple(tuple(piece for piece in word if piece >= 0) for word in row.subwords[positions].tolist())
