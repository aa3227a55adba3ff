"""Hugging Face transformers without their heads: from the embeddings of words to hidden states.

A text is read in subwords. What is explained are the words: the embedding of a word is that of all its subwords
side by side, so a gradient of a word is that of its subwords, a deleted word is gone with all of them, and nothing is
ever tokenised twice.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from assay.errors import AssayError, unknown
from assay.models.hf_attention import (
    Watch,
    briefly,
    implemented,
    is_compiled,
    joint,
    of_any_shape,
    turn,
    unseen,
    watched,
)
from assay.models.textmodel import TextModel
from assay.types import BLANKS, Batch, Edit, Embeddings, Mask, PositionIds, Vector

# Layout: special tokens around the text, padding on one side.


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
    types: PositionIds
    token_index: PositionIds
    full: bool = False  # known to have no padding

    def owners(self, tokens: int) -> Bool[Tensor, "B S T"]:
        """One-hot: whether a position belongs to a token."""
        return self.token_index[..., None] == torch.arange(tokens, device=self.token_index.device)

    def shares(self, tokens: int, dtype: torch.dtype = torch.float32) -> Float[Tensor, "B S T"]:
        """The share of each position in its token: equal among the subwords of a word."""
        owners = self.owners(tokens).to(dtype)
        return owners / owners.sum(1, keepdim=True).clamp(min=1)


def sequence(x: Embeddings, batch: Batch, template: Template, table: nn.Module, left: bool = False) -> Sequence:
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


def _together(real: Bool[Tensor, "B W"], left: bool) -> PositionIds:
    """The order that moves real positions side by side, as many as the longest row has."""
    longest = int(real.sum(-1).max())
    order = real.to(torch.uint8).argsort(dim=-1, stable=True, descending=not left)
    return order[:, order.shape[1] - longest :] if left else order[:, :longest]


def _picked(embeddings: Float[Tensor, "B W D"], order: PositionIds) -> Float[Tensor, "B S D"]:
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


STATES = 16  # numbers, in parts of the hidden size, that a layer keeps of each position for the backward pass
COPIES = 4  # of these and of the attention: those that are there at a time, and room for all else
BUSY = 4096  # positions from which on a GPU has work to do


@dataclass(frozen=True)
class Traits:
    """Properties of a transformer, measured when it was loaded."""

    single: Template
    pair: Template | None
    left: bool  # padding stands on the left: the classifier reads the last position
    typed: bool  # positions have types
    reads: str  # what the classifier reads: the "first" position, the "last", or the "mean"
    unedited: str | None  # why attention cannot be edited, or None
    layers: int
    pad: int
    mask: int  # the subword that stands for a masked one
    special: int  # the first id after the special ones
    brief: bool = False  # the answer is the same where the uppermost layer is worked out at one position alone


class Body(TextModel):
    """The base class of models around a transformer that reads words as groups of subwords."""

    pretrained: ClassVar[bool] = True

    def __init__(self, inner: Any, traits: Traits) -> None:
        super().__init__()
        self.inner = inner
        self.traits = traits
        self.training = inner.training

    @property
    def embedding(self) -> nn.Module:  # type: ignore[override]
        table: nn.Module = self.inner.get_input_embeddings()
        return table

    @property
    def paired(self) -> bool:
        return self.traits.pair is not None

    @property
    def ordinary(self) -> int:
        return self.traits.special

    @property
    def layers(self) -> int:
        return self.traits.layers

    def room(self, longest: int = 0) -> int:
        """How many positions fit into the GPU memory for a backward pass through all layers.

        Where texts have up to `longest` positions, with the attention of every head as well. It goes by all memory that
        the device has, not by what is free, which is another number each time.
        """
        if self.device.type != "cuda":
            return sys.maxsize
        heads, size = int(self.inner.config.num_attention_heads), int(self.inner.config.hidden_size)
        numbers = COPIES * self.layers * (heads * longest + STATES * size)
        memory = torch.cuda.get_device_properties(self.device).total_memory
        return max(1, int(memory) // (numbers * torch.float32.itemsize))

    def embed(self, batch: Batch) -> Embeddings:
        subwords = batch.ids[..., None] if batch.subwords is None else batch.subwords
        x = self.embedding(subwords.clamp(min=0)) * ((subwords >= 0) & batch.mask[..., None])[..., None]
        flat: Tensor = x.flatten(2)
        return flat

    def blank(self, name: str) -> Vector:
        """The baseline embedding of a subword."""
        if name not in BLANKS:
            raise unknown("blank", name, BLANKS)
        table: Tensor = self.embedding.weight.detach()  # type: ignore[operator]
        if name == "mean":
            return table[self.ordinary : self.inner.config.vocab_size].mean(0)  # below may be moved ones
        return (
            torch.zeros_like(table[0])
            if name == "zero"
            else table[{"pad": self.traits.pad}.get(name, self.traits.mask)]
        )

    def sequence(self, x: Embeddings, batch: Batch) -> Sequence:
        """The subwords at the positions where the transformer reads them."""
        template = self.traits.single if batch.query is None else self.traits.pair
        if template is None:
            raise AssayError("This model reads one text; leave the question out.")
        return sequence(x, batch, template, self.embedding, self.traits.left)

    def token_index(self, batch: Batch) -> PositionIds:
        return self.sequence(self.embed(batch), batch).token_index

    def read(
        self, given: Sequence, edit: Edit | None = None, keep: bool = False, brief: bool = False, **asked: Any
    ) -> tuple[Any, list[Tensor]]:
        """Runs the library's model on a sequence; returns its output, and all attention weights with `keep`.

        Where a `brief` answer is enough, no more of the uppermost layer is worked out than the classifier reads; those
        who hook themselves in are shown all of it.
        """
        arguments: dict[str, Any] = {"inputs_embeds": given.embeddings, **asked}
        if not given.full or is_compiled(self.inner):  # what is compiled would be so once more without it
            arguments["attention_mask"] = given.mask.long()
        if self.traits.typed:
            arguments["token_type_ids"] = given.types
        if self.traits.left:
            arguments["position_ids"] = (given.mask.cumsum(-1) - 1).clamp(min=0)
        if edit is None and not keep:
            with turn(self.inner), of_any_shape(), self._narrowed(given) if brief else nullcontext():
                return self.inner(**arguments), []
        if self.traits.unedited is not None:
            if edit is not None:
                raise AssayError(self.traits.unedited)
            with implemented(self.inner, "eager"):
                answer = self.inner(**arguments, output_attentions=True)
            return answer, list(answer.attentions)
        if getattr(edit, "depth", 0) > self.layers:
            raise AssayError(f"The edit names a layer that is not there; the model has layers 0 to {self.layers - 1}.")
        watch = Watch(edit, keep)
        with watched(self.inner, watch):
            answer = self.inner(**arguments)
        if watch.calls != self.layers:
            raise AssayError(f"The model attended {watch.calls} times instead of {self.layers}; it cannot be edited.")
        return answer, watch.weights

    def reading(self, given: Sequence) -> Float[Tensor, "B S"]:
        """The positions that the classifier reads: 1 at one position, or equal weights on all."""
        mask = given.mask.to(given.embeddings)
        if self.traits.reads == "mean":
            return mask / mask.sum(-1, keepdim=True)
        real = given.mask.long()  # whole numbers: in half precision positions beyond 256 would be rounded
        there = torch.arange(mask.shape[1], device=mask.device) * real
        position = real.argmax(-1) if self.traits.reads == "first" else there.argmax(-1)
        return nn.functional.one_hot(position, mask.shape[1]).to(mask)

    def erased(self, tokens: Mask, batch: Batch) -> Bool[Tensor, "B S"]:
        """The mask of positions that belong to some tokens, for edits that erase them."""
        owners = self.token_index(batch)
        return tokens.gather(1, owners.clamp(min=0)) & (owners >= 0)

    @torch.no_grad()
    def maps(self, batch: Batch) -> Float[Tensor, "B L H T T"]:
        """The attention between words: summed over the subwords attended to, averaged over those that attend.

        Clark et al. (2019), section 4.1. What goes to special positions is left out, so rows sum to at most 1.
        """
        given = self.sequence(self.embed(batch), batch)
        _, weights = self.read(given, keep=True)
        tokens = batch.ids.shape[1]
        to, of = given.owners(tokens)[:, None].float(), given.shares(tokens).mT[:, None]
        return torch.stack([of @ layer.float() @ to for layer in weights], dim=1)

    @property
    def blocks(self) -> nn.ModuleList:
        """The layers, lowest first; some architectures use one several times."""
        lists = [part for part in self.inner.modules() if isinstance(part, nn.ModuleList)]
        return max(lists, key=len)

    @cached_property
    def joint(self) -> nn.Module | None:
        """The submodule after the last layer's attention, if it has a known name."""
        return joint(self.blocks[-1])

    @cached_property
    def top(self) -> tuple[nn.Module, ...]:
        """All modules after the last layer's attention."""
        below = {part for block in self.blocks[:-1] for part in block.modules()}
        return tuple(part for part in self.inner.modules() if part not in below)

    def _narrowed(self, given: Sequence) -> AbstractContextManager[None]:
        """Context manager: computes the last layer at one position only, unless it has hooks or cannot be.

        What a GPU does with few positions takes no time, but telling it to do less does.
        """
        idle = given.mask.device.type == "cuda" and given.mask.numel() < BUSY
        if idle or self.joint is None or is_compiled(self.inner) or not unseen(self.top):
            return nullcontext()
        return briefly(self.joint, self.traits.left)

    @property
    def stack(self) -> tuple[str, ...]:
        """The names of the layers, counted from 0, last first, and of the embeddings."""
        return (*(f"layer {number}" for number in reversed(range(len(self.blocks)))), "embedding")

    def below(self, name: str) -> nn.Module:
        """The module of the stack with this name."""
        return self.embedding if name == "embedding" else self.blocks[int(name.removeprefix("layer "))]

    @abstractmethod
    def around(self, inner: Any) -> Body:
        """A model of the same kind around another transformer; its head is new."""

    def redrawn(self, seed: int) -> Body:
        """A model of the same kind with all weights random."""
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            fresh = self.around(type(self.inner)(deepcopy(self.inner.config)))  # how it attends stands there
        return fresh.to(self.inner.dtype).to(self.device).eval()
