"""Sequence-to-sequence network (pointer–generator): source–target pairs, encoder–decoder, and beam search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from assay.data.text import END, PAD, SPECIAL, START, UNKNOWN, Tokeniser, Words
from assay.errors import AssayError
from assay.models.encoders import Block, Recurrent
from assay.models.projections import softmax
from assay.types import at_least_float32

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
    lowercase = tokeniser.options.lowercase
    rows = []
    for pair, source, target in zip(pairs, sources, targets, strict=True):
        oov: dict[str, int] = {}
        read, written = source.ids[:LONGEST_SOURCE], target.ids[:LONGEST_TARGET]
        for position, word in _unknown(read, source, pair.source, lowercase):
            read[position] = oov.setdefault(word, size + len(oov))
        for position, word in _unknown(written, target, pair.target, lowercase):
            written[position] = oov.get(word, UNKNOWN_ID)
        ending = [END_ID] if pair.whole else []
        rows.append(Row(torch.tensor(read), torch.tensor(written + ending), tuple(oov)))
    return rows


def _unknown(ids: Sequence[int], words: Words, text: str, lowercase: bool) -> Iterator[tuple[int, str]]:
    """The positions of unknown words, and what is written there."""
    for position, (start, end) in enumerate(words.spans[: len(ids)]):
        if ids[position] == UNKNOWN_ID:
            yield position, text[start:end].lower() if lowercase else text[start:end]


def together(rows: Sequence[Row]) -> Sequences:
    """The rows as one padded batch."""
    lengths = torch.tensor([len(row.source) for row in rows])
    source = pad_sequence([row.source for row in rows], batch_first=True)
    target = pad_sequence([row.target for row in rows], batch_first=True)
    mask = torch.arange(source.shape[1]) < lengths[:, None]
    return Sequences(source, mask, target, max(len(row.oov) for row in rows))


Hidden = Float[Tensor, "1 B M"]

TINY = 1e-9  # of a probability in a logarithm
FIRST = SPECIAL.index(START)


@dataclass(frozen=True)
class Sizes:
    """Sizes of the network; hidden states are twice `hidden` wide."""

    embedding: int = 192
    hidden: int = 96
    layers: int = 0  # of self-attention above the recurrence; they learn slowly from few pairs
    dropout: float = 0.2

    def __post_init__(self) -> None:
        if min(self.embedding, self.hidden) < 1 or self.hidden % 2 or self.layers < 0 or not 0 <= self.dropout < 1:
            raise AssayError(
                "Sizes are whole numbers from 1, an even one for hidden, and a dropout is from 0 to below 1."
            )


@dataclass(frozen=True)
class Memory:
    """Encoder output, and the decoder's initial hidden state."""

    states: Float[Tensor, "B T M"]
    mask: Bool[Tensor, "B T"]
    source: Int[Tensor, "B T"]
    extra: int
    begin: Hidden

    def chosen(self, rows: Int[Tensor, " N"]) -> Memory:
        """The memory of some rows, in that order."""
        parts = {name: getattr(self, name)[rows] for name in ("states", "mask", "source")}
        return replace(self, **parts, begin=self.begin[:, rows])


class EncoderDecoder(nn.Module):
    """A pointer–generator (See et al., 2017): p(w) = g·p_vocabulary(w) + (1 − g)·Σ_{i: x_i = w} a_i.

    Attention a is that of Luong et al. (2015) over the states of the source; the decoder's GRU does not read it, so
    that all positions of a given target are decoded at once.
    """

    # differs from See et al. (2017): no coverage, no attention fed back, and words are embedded as they are written out

    def __init__(self, sizes: Sizes, words: int) -> None:
        super().__init__()
        width, self.sizes, self.words = 2 * sizes.hidden, sizes, words
        self.embedding = nn.Embedding(words, sizes.embedding, padding_idx=0)
        nn.init.normal_(self.embedding.weight, std=sizes.embedding**-0.5)
        self.encoder = Recurrent(nn.GRU, sizes.embedding, sizes.hidden)
        self.blocks = nn.ModuleList(Block(width, 4, softmax) for _ in range(sizes.layers))
        self.norm = nn.LayerNorm(width)
        self.begin = nn.Linear(2 * width, width)
        self.decoder = nn.GRU(sizes.embedding, width, batch_first=True)
        self.query = nn.Linear(width, width)
        self.merge = nn.Linear(2 * width, sizes.embedding)
        self.bias = nn.Parameter(torch.zeros(words))
        self.gate = nn.Linear(2 * width, 1)

    @property
    def device(self) -> torch.device:
        return self.embedding.weight.device

    def embedded(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        """Word embeddings; out-of-vocabulary words share that of the unknown word."""
        return F.dropout(self.embedding(ids.where(ids < self.words, UNKNOWN_ID)), self.sizes.dropout, self.training)

    def encode(self, batch: Sequences) -> Memory:
        """The hidden states of all source words."""
        states = self.encoder(self.embedded(batch.source), batch.mask)
        for block in self.blocks:
            states = block(states, batch.mask[:, None, None])
        states = self.norm(states) * batch.mask[..., None]
        mean = states.sum(1) / batch.mask.sum(1, keepdim=True)
        largest = states.masked_fill(~batch.mask[..., None], torch.finfo(states.dtype).min).amax(1)
        begin = torch.tanh(self.begin(torch.cat([mean, largest], dim=-1)))[None]
        return Memory(states, batch.mask, batch.source, batch.extra, begin)

    def decode(
        self, memory: Memory, written: Int[Tensor, "B S"], hidden: Hidden
    ) -> tuple[Float[Tensor, "B S D"], Float[Tensor, "B S T"], Float[Tensor, "B S"], Hidden]:
        """For each word: decoder output, attention, log-odds of generating; and the last hidden state."""
        states, hidden = self.decoder(self.embedded(written), hidden.contiguous())
        scores = self.query(states) @ memory.states.transpose(1, 2) * memory.states.shape[-1] ** -0.5
        scores = at_least_float32(scores)
        attention = softmax(scores, memory.mask[:, None].expand_as(scores))
        both = torch.cat([states, attention.to(memory.states) @ memory.states], dim=-1)
        both = F.dropout(both, self.sizes.dropout, self.training)
        return torch.tanh(self.merge(both)), attention, self.gate(both).squeeze(-1).to(attention), hidden

    def generated(self, merged: Float[Tensor, "N D"]) -> Float[Tensor, "N V"]:
        """Log-probabilities over the vocabulary."""
        logits = F.linear(merged, self.embedding.weight, self.bias)
        return at_least_float32(logits).log_softmax(-1)

    def likelihood(self, batch: Sequences) -> Float[Tensor, "B S"]:
        """The log-probability of each target word given those before; 0 after the end."""
        memory, real = self.encode(batch), batch.target != 0
        before = F.pad(batch.target[:, :-1], (1, 0), value=FIRST)
        merged, attention, odds, _ = self.decode(memory, before, memory.begin)
        target = batch.target[real]  # nothing is generated after the end
        own = self.generated(merged[real]).gather(-1, target.where(target < self.words, 0)[:, None]).squeeze(-1)
        own = own.masked_fill(target >= self.words, torch.finfo(own.dtype).min)
        copied = (attention * (batch.target[..., None] == batch.source[:, None])).sum(-1)
        return torch.zeros_like(odds).masked_scatter(real, mixed(odds[real], own, copied[real]))

    def following(self, memory: Memory, last: Int[Tensor, " B"], hidden: Hidden) -> tuple[Float[Tensor, "B W"], Hidden]:
        """Log-probabilities of the next word, out-of-vocabulary words last."""
        merged, attention, odds, hidden = self.decode(memory, last[:, None], hidden)
        own, attention = self.generated(merged[:, 0]), attention[:, 0]
        copied = attention.new_zeros(len(last), self.words + memory.extra).scatter_add(1, memory.source, attention)
        generated = F.pad(own, (0, memory.extra), value=torch.finfo(own.dtype).min)
        return mixed(odds, generated, copied), hidden


def mixed(odds: Tensor, generated: Tensor, copied: Tensor) -> Tensor:
    """log(g·p + (1 − g)·a) of the log-odds of g, the logarithm of p, and a."""
    return torch.logaddexp(F.logsigmoid(odds) + generated, F.logsigmoid(-odds) + copied.clamp(min=TINY).log())


NEVER = [SPECIAL.index(name) for name in (PAD, UNKNOWN, START)]


@torch.no_grad()
def search(
    network: EncoderDecoder, batch: Sequences, beams: int = 1, longest: int = LONGEST_TARGET
) -> tuple[Int[Tensor, "B S"], Float[Tensor, " B"]]:
    """The best sentence of a beam search, with its log-probability; a beam of 1 is greedy.

    The end marker closes a sentence and 0 follows it; one that has not ended after `longest` words is cut. What is
    unknown is never written.
    """
    memory, rows = network.encode(batch), len(batch.source)
    device, words = network.device, network.words + batch.extra
    home = torch.arange(rows, device=device).repeat_interleave(beams)
    memory = memory.chosen(home)
    hidden = memory.begin
    last = torch.full_like(home, FIRST)
    written = torch.zeros(rows * beams, longest, dtype=torch.long, device=device)
    total = torch.full((rows, beams), -torch.inf, device=device, dtype=torch.promote_types(hidden.dtype, torch.float32))
    total[:, 0] = 0.0  # at first all beams are alike, so one goes on
    ended = torch.zeros(rows * beams, dtype=torch.bool, device=device)
    for position in range(longest):
        following, hidden = network.following(memory, last, hidden)
        following[:, NEVER] = -torch.inf
        following.masked_fill_(ended[:, None], -torch.inf)
        following[:, 0].masked_fill_(ended, 0.0)  # an ended sentence goes on with nothing, for free
        scores = (total.reshape(-1, 1) + following).reshape(rows, beams * words)
        total, best = scores.topk(beams, dim=-1)
        origin = (best // words + torch.arange(rows, device=device)[:, None] * beams).reshape(-1)
        last = (best % words).reshape(-1)
        hidden, written, ended = hidden[:, origin], written[origin], ended[origin]
        written[:, position] = last
        ended = ended | (last == END_ID)
        if bool(ended.all()):
            break
    top = torch.arange(rows, device=device) * beams + total.argmax(-1)
    return written[top], total.amax(-1)
