"""Builds a transformer's input sequence from subwords: special tokens around the text, padding on one side."""

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
    """The special tokens before, between and after one text or two, and the token type ids of the texts."""

    before: tuple[int, ...]
    between: tuple[int, ...]
    after: tuple[int, ...]
    types: tuple[tuple[int, ...], ...]  # of before, text, between, query, after: one number for each text and special
    empty: int = 0  # the subword that is read of an empty text where nothing stands around it

    @classmethod
    def of(cls, tokenizer: Any, pair: bool) -> Template:
        """The special tokens of the tokenizer, found by encoding "a"."""
        encoding = tokenizer("a", "a").encodings[0] if pair else tokenizer("a").encodings[0]
        texts, ids, types = encoding.sequence_ids, encoding.ids, encoding.type_ids
        first = texts.index(0)
        last = len(texts) - 1 - texts[::-1].index(1 if pair else 0)
        end = max(position for position, text in enumerate(texts) if text == 0)
        begin = texts.index(1) if pair else end + 1
        spans = ((0, first), (first, first + 1), (end + 1, begin), (begin, begin + pair), (last + 1, len(texts)))
        before, _, between, _, after = (tuple(ids[start:stop]) for start, stop in spans)
        kinds = tuple(tuple(types[start:stop]) for start, stop in spans)
        return cls(before, between, after, kinds, tokenizer.pad_token_id or 0)

    @property
    def subwords(self) -> tuple[int, ...]:
        """All special tokens, in order."""
        return (*self.before, *self.between, *self.after)

    @property
    def specials(self) -> int:
        return len(self.subwords)


@dataclass(frozen=True)
class Sequence:
    """The transformer's input, and the token index of each position, -1 where there is none."""

    embeddings: Float[Tensor, "B S D"]
    mask: Bool[Tensor, "B S"]
    types: Int[Tensor, "B S"]
    token_index: Int[Tensor, "B S"]
    full: bool = False  # known to have no padding

    def owners(self, tokens: int) -> Bool[Tensor, "B S T"]:
        """One-hot: whether a position belongs to a token."""
        return self.token_index[..., None] == torch.arange(tokens, device=self.token_index.device)

    def shares(self, tokens: int, dtype: torch.dtype = torch.float32) -> Float[Tensor, "B S T"]:
        """The share of each position in its token: equal among the subwords of a word."""
        owners = self.owners(tokens).to(dtype)
        return owners / owners.sum(1, keepdim=True).clamp(min=1)


def sequence(
    x: Float[Tensor, "B T D"], batch: Batch, template: Template, table: nn.Module, left: bool = False
) -> Sequence:
    """The embeddings of all subwords of a batch at their positions; padding on the right, or on the left."""
    rows, tokens, _ = x.shape
    subwords = batch.ids[..., None] if batch.subwords is None else batch.subwords
    parts = subwords.shape[2]
    text = ((subwords >= 0) & batch.mask[..., None]).flatten(1)
    laid = _laid(template, tokens, parts, 0 if batch.query is None else batch.query.ids.shape[1], x.device)
    before, between, after = torch.split(table(laid.specials).to(x).expand(rows, -1, -1), laid.counts, dim=1)
    embedded, read = [before, x.reshape(rows, tokens * parts, -1), between], [text]
    if batch.query is not None:
        embedded.append(table(batch.query.ids).to(x))
        read.append(batch.query.mask)
    embeddings = torch.cat([*embedded, after], dim=1)
    if template.specials and all(bool(each.all()) for each in read):
        real, types, owners = (each.expand(rows, -1) for each in (laid.real, laid.types, laid.token_index))
        return Sequence(embeddings, real, types, owners, full=True)
    first, second, last = torch.split(text.new_ones(rows, sum(laid.counts)), laid.counts, dim=1)
    if template.specials == 0:
        last = ~torch.cat(read, dim=1).any(-1, keepdim=True)
    real = torch.cat([first, text, second, *read[1:], last], dim=1)
    order = _together(real, left)
    real = real.gather(1, order)
    return Sequence(_picked(embeddings, order), real, laid.types[order], laid.token_index[order].where(real, -1))


def _together(real: Bool[Tensor, "B W"], left: bool) -> Int[Tensor, "B S"]:
    """The order that moves real positions side by side, as many as the longest row has."""
    longest = int(real.sum(-1).max())
    order = real.to(torch.uint8).argsort(dim=-1, stable=True, descending=not left)
    return order[:, order.shape[1] - longest :] if left else order[:, :longest]


def _picked(embeddings: Float[Tensor, "B W D"], order: Int[Tensor, "B S"]) -> Float[Tensor, "B S D"]:
    """The embeddings of each row in that order; whole vectors are moved, which is faster than a gather."""
    rows, width, size = embeddings.shape
    first = torch.arange(rows, device=order.device)[:, None] * width
    return embeddings.reshape(-1, size).index_select(0, (order + first).flatten()).reshape(rows, -1, size)


@dataclass(frozen=True)
class Laid:
    """The layout that all texts of one width share.

    The special tokens, how many of them stand before, between and after the texts, and of each position that nothing
    is missing, its type id, and the token that it belongs to.
    """

    specials: Int[Tensor, " N"]
    counts: list[int]
    real: Bool[Tensor, " W"]
    types: Int[Tensor, " W"]
    token_index: Int[Tensor, " W"]


@lru_cache(maxsize=256)
def _laid(template: Template, tokens: int, parts: int, asked: int, device: torch.device) -> Laid:
    """The cached layout for a number of tokens, subwords per token and query positions, on the device."""
    specials, kinds = (template.before, template.between, template.after), template.types
    if template.specials == 0:
        specials, kinds = ((), (), (template.empty,)), (*kinds[:4], (0,))
    before, between, after = counts = [len(each) for each in specials]
    widths = (before, tokens * parts, between, asked, after)
    types = [each for kind, width in zip(kinds, widths, strict=True) for each in _spread(kind, width)]
    words = [word for word in range(tokens) for _ in range(parts)]
    owners = [*[-1] * before, *words, *[-1] * (between + asked + after)]
    with torch.inference_mode(False):  # a backward pass may lead through them later
        marks, kind, owner = (
            torch.tensor(numbers, dtype=torch.long, device=device)
            for numbers in ([*specials[0], *specials[1], *specials[2]], types, owners)
        )
        return Laid(marks, counts, torch.ones_like(kind, dtype=torch.bool), kind, owner)


def _spread(kind: tuple[int, ...], width: int) -> tuple[int, ...]:
    """The token type ids of all positions, from those of special tokens and of texts."""
    return kind if len(kind) == width else kind * width
