"""Source–target pairs as word ids; out-of-vocabulary source words have ids of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from assay.data.text import END, SPECIAL, UNKNOWN, Tokeniser, Words

LONGEST_SOURCE, LONGEST_TARGET = 120, 48  # words; what is longer is cut
END_ID, UNKNOWN_ID = SPECIAL.index(END), SPECIAL.index(UNKNOWN)


@dataclass(frozen=True)
class Pair:
    """A source and a target text; a target that is not `whole` is a prefix."""

    source: str
    target: str
    whole: bool = True


@dataclass(frozen=True)
class Row:
    """A pair as word ids; ids beyond the vocabulary stand for `oov`, unknown words of the source."""

    source: Int[Tensor, " T"]
    target: Int[Tensor, " S"]
    oov: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sequences:
    """Rows padded to one length; `extra` ids follow those of the vocabulary."""

    source: Int[Tensor, "B T"]
    mask: Bool[Tensor, "B T"]
    target: Int[Tensor, "B S"]  # 0 after the end
    extra: int

    def to(self, device: torch.device) -> Sequences:
        """The same on another device."""
        return Sequences(self.source.to(device), self.mask.to(device), self.target.to(device), self.extra)


def encoded(pairs: Sequence[Pair], tokeniser: Tokeniser) -> list[Row]:
    """The pairs as word ids; whole targets end with the end marker."""
    size = tokeniser.inner.get_vocab_size()
    sources, targets = (tokeniser([getattr(pair, side) for pair in pairs]) for side in ("source", "target"))
    return [_row(*each, tokeniser.options.lowercase, size) for each in zip(pairs, sources, targets, strict=True)]


def _row(pair: Pair, source: Words, target: Words, lowercase: bool, size: int) -> Row:
    source_ids, target_ids = source.ids[:LONGEST_SOURCE], target.ids[:LONGEST_TARGET]
    oov: dict[str, int] = {}
    if UNKNOWN_ID in source_ids:
        for position, (start, end) in enumerate(source.spans[: len(source_ids)]):
            if source_ids[position] == UNKNOWN_ID:
                word = pair.source[start:end].lower() if lowercase else pair.source[start:end]
                source_ids[position] = oov.setdefault(word, size + len(oov))
        for position, (start, end) in enumerate(target.spans[: len(target_ids)]):
            if target_ids[position] == UNKNOWN_ID:
                word = pair.target[start:end].lower() if lowercase else pair.target[start:end]
                target_ids[position] = oov.get(word, UNKNOWN_ID)
    ending = [END_ID] if pair.whole else []
    return Row(torch.tensor(source_ids), torch.tensor(target_ids + ending), tuple(oov))


def together(rows: Sequence[Row]) -> Sequences:
    """The rows as one padded batch."""
    lengths = torch.tensor([len(row.source) for row in rows])
    source = pad_sequence([row.source for row in rows], batch_first=True)
    target = pad_sequence([row.target for row in rows], batch_first=True)
    mask = torch.arange(source.shape[1]) < lengths[:, None]
    return Sequences(source, mask, target, max(len(row.oov) for row in rows))
