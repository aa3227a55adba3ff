"""How a text in pieces becomes the sequence that a transformer reads: special pieces around it, padding on one side."""

from __future__ import annotations

from dataclasses import dataclass
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
        return cls(before, between, after, tuple(tuple(types[start:stop]) for start, stop in spans))

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

    def shares(self, tokens: int) -> Float[Tensor, "B S T"]:
        """The share of each place in its token: all pieces of a word have the same."""
        owners = self.owners(tokens).float()
        return owners / owners.sum(1, keepdim=True).clamp(min=1)


def sequence(
    x: Float[Tensor, "B T D"], batch: Batch, template: Template, table: nn.Module, left: bool = False
) -> Sequence:
    """The embeddings of all pieces of a batch in their places; padding stands on the right, or on the left."""
    rows, tokens, _ = x.shape
    pieces = batch.ids[..., None] if batch.pieces is None else batch.pieces
    parts = pieces.shape[2]
    text = (pieces >= 0) & batch.mask[..., None]
    query = x.new_zeros(rows, 0, x.shape[-1] // parts)
    asked = batch.mask.new_zeros(rows, 0)
    if batch.query is not None:
        query, asked = table(batch.query.ids).to(x), batch.query.mask
    shown = (text.flatten(1), asked)
    specials = [
        torch.tensor(each, device=x.device).long() for each in (template.before, template.between, template.after)
    ]
    before, between, after = (table(each).to(x).expand(rows, -1, -1) for each in specials)
    embeddings = torch.cat([before, x.reshape(rows, tokens * parts, -1), between, query, after], dim=1)
    always = [batch.mask.new_ones(rows, len(each)) for each in specials]
    real = torch.cat([always[0], shown[0], always[1], shown[1], always[2]], dim=1)
    widths = (len(specials[0]), tokens * parts, len(specials[1]), asked.shape[1], len(specials[2]))
    types = torch.cat([_types(each, width) for each, width in zip(template.types, widths, strict=True)]).to(x.device)
    words = torch.arange(tokens, device=x.device).repeat_interleave(parts)
    places = torch.cat([words.new_full((widths[0],), -1), words, words.new_full((sum(widths[2:]),), -1)])
    longest = int(real.sum(-1).max())
    order = real.to(torch.uint8).argsort(dim=-1, stable=True, descending=not left)
    order = order[:, -longest:] if left else order[:, :longest]
    real = real.gather(1, order)
    return Sequence(
        embeddings.gather(1, order[..., None].expand(-1, -1, embeddings.shape[-1])),
        real,
        types[order],
        places[order].where(real, -1),
    )


def _types(given: tuple[int, ...], width: int) -> Int[Tensor, " W"]:
    """The types of so many places: one for each, or the same for all."""
    return torch.tensor(given if len(given) == width else given[:1] * width, dtype=torch.long)
