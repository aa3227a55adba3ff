"""How a text in pieces becomes the sequence that a transformer reads: special pieces around it, padding on one side."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from assay.types import Batch


@dataclass(frozen=True)
class Template:
    """The special pieces before, between and after one text or two, and the type of the place of each."""

    before: tuple[int, ...]
    between: tuple[int, ...]
    after: tuple[int, ...]
    types: tuple[tuple[int, ...], ...]  # of before, text, between, query, after: one number for each text and special
    empty: int = 0  # the piece that is read of an empty text where nothing stands around it

    @classmethod
    def of(cls, tokenizer: Any, pair: bool) -> Template:
        """What the tokenizer puts around texts, found out from how it reads "a"."""
        encoding = tokenizer("a", "a").encodings[0] if pair else tokenizer("a").encodings[0]
        texts, ids, types = encoding.sequence_ids, encoding.ids, encoding.type_ids
        first = texts.index(0)
        last = len(texts) - 1 - texts[::-1].index(1 if pair else 0)
        end = max(place for place, text in enumerate(texts) if text == 0)
        begin = texts.index(1) if pair else end + 1
        spans = ((0, first), (first, first + 1), (end + 1, begin), (begin, begin + pair), (last + 1, len(texts)))
        before, _, between, _, after = (tuple(ids[start:stop]) for start, stop in spans)
        kinds = tuple(tuple(types[start:stop]) for start, stop in spans)
        return cls(before, between, after, kinds, tokenizer.pad_token_id or 0)

    @property
    def specials(self) -> int:
        return len(self.before) + len(self.between) + len(self.after)


@dataclass(frozen=True)
class Sequence:
    """What the transformer is given, and the token that each place belongs to, -1 where it is none."""

    embeddings: Float[Tensor, "B S D"]
    mask: Bool[Tensor, "B S"]
    types: Int[Tensor, "B S"]
    places: Int[Tensor, "B S"]

    def owners(self, tokens: int) -> Bool[Tensor, "B S T"]:
        """Which of so many tokens each place belongs to."""
        return self.places[..., None] == torch.arange(tokens, device=self.places.device)

    def shares(self, tokens: int, dtype: torch.dtype = torch.float32) -> Float[Tensor, "B S T"]:
        """The share of each place in its token: all pieces of a word have the same."""
        owners = self.owners(tokens).to(dtype)
        return owners / owners.sum(1, keepdim=True).clamp(min=1)


def sequence(
    x: Float[Tensor, "B T D"], batch: Batch, template: Template, table: nn.Module, left: bool = False
) -> Sequence:
    """The embeddings of all pieces of a batch in their places; padding stands on the right, or on the left."""
    rows, tokens, _ = x.shape
    pieces = batch.ids[..., None] if batch.pieces is None else batch.pieces
    parts = pieces.shape[2]
    text = ((pieces >= 0) & batch.mask[..., None]).flatten(1)
    query, asked = x.new_zeros(rows, 0, x.shape[-1] // parts), batch.mask.new_zeros(rows, 0)
    if batch.query is not None:
        query, asked = table(batch.query.ids).to(x), batch.query.mask
    specials, kinds = _constants(template, x.device)
    before, between, after = (table(each).to(x).expand(rows, -1, -1) for each in specials)
    embeddings = torch.cat([before, x.reshape(rows, tokens * parts, -1), between, query, after], dim=1)
    always = [batch.mask.new_ones(rows, len(each)) for each in specials]
    if template.specials == 0:
        always[2] = ~torch.cat([text, asked], dim=1).any(-1, keepdim=True)
    real = torch.cat([always[0], text, always[1], asked, always[2]], dim=1)
    widths = (len(specials[0]), tokens * parts, len(specials[1]), asked.shape[1], len(specials[2]))
    types = torch.cat([kind.expand(width) for kind, width in zip(kinds, widths, strict=True)])
    words = torch.arange(tokens, device=x.device).repeat_interleave(parts)
    places = torch.cat([words.new_full((widths[0],), -1), words, words.new_full((sum(widths[2:]),), -1)])
    order = _together(real, left)
    real = real.gather(1, order)
    return Sequence(_picked(embeddings, order), real, types[order], places[order].where(real, -1))


def _together(real: Bool[Tensor, "B W"], left: bool) -> Int[Tensor, "B S"]:
    """The places in the order in which they are read: the real ones side by side, as many as the longest row has."""
    longest = int(real.sum(-1).max())
    order = real.to(torch.uint8).argsort(dim=-1, stable=True, descending=not left)
    return order[:, order.shape[1] - longest :] if left else order[:, :longest]


def _picked(embeddings: Float[Tensor, "B W D"], order: Int[Tensor, "B S"]) -> Float[Tensor, "B S D"]:
    """The embeddings of each row in that order; whole vectors are moved, which is faster than a gather."""
    rows, width, size = embeddings.shape
    first = torch.arange(rows, device=order.device)[:, None] * width
    return embeddings.reshape(-1, size).index_select(0, (order + first).flatten()).reshape(rows, -1, size)


@lru_cache(maxsize=64)
def _constants(template: Template, device: torch.device) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """The special pieces, and the types of all that is read, on the device: nothing is sent there at every pass."""
    with torch.inference_mode(False):  # a way back may lead through them later
        specials, kinds = (template.before, template.between, template.after), template.types
        if template.specials == 0:
            specials, kinds = ((), (), (template.empty,)), (*kinds[:4], (0,))
        return (
            tuple(torch.tensor(each, dtype=torch.long, device=device) for each in specials),
            tuple(torch.tensor(each, dtype=torch.long, device=device) for each in kinds),
        )
