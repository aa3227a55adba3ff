"""Leave-one-out logits of a pooled model: each token in turn deleted or replaced by a blank, with shared computation.

Where states depend on all tokens through a recurrence, most of the work is shared: one pass over the text carries, for
every token at once, the state of the text without it. Where a state depends on its neighbours at most, only those
within reach are computed again. Where sentences are read one by one, only that of the token is.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeGuard

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from assay import costs
from assay.models import budget
from assay.models.encoders import (
    Additive,
    Average,
    Convolution,
    Dot,
    Encoder,
    Nothing,
    Recurrent,
    Transformer,
    mirrored,
    reordered,
)
from assay.models.erasure import left
from assay.models.network import BARRED, Classifier, Network, Paired
from assay.models.networks import Hierarchical, Layout
from assay.models.projections import Projection, softmax
from assay.types import Batch, Model, attended

# Attention-weighted means accumulated item by item: running sums for softmax, stored scores for other projections.


class Pooled(ABC):
    """An attention-weighted mean over the items that N lanes have received so far."""

    @abstractmethod
    def add(self, score: Float[Tensor, "R n"], value: Float[Tensor, "R n P"]) -> None:
        """Adds one item to the first lanes; an item of the lowest score has no weight beside any other."""

    @abstractmethod
    def joined(self, other: Pooled) -> Pooled:
        """The mean over the items of both; both must have the same projection."""

    @abstractmethod
    def reordered(self, order: Int[Tensor, "R N"]) -> Pooled:
        """Permutes the lanes of each row."""

    @abstractmethod
    def mean(self) -> Float[Tensor, "R N P"]:
        """The mean, in float32 at least; 0 where a lane has no item."""


@dataclass
class Means(Pooled):
    """Softmax: Σ exp(s − peak) and Σ exp(s − peak) v of each lane over the scores s and values v so far."""

    peak: Float[Tensor, "R N"]
    total: Float[Tensor, "R N"]
    value: Float[Tensor, "R N P"]

    @classmethod
    def of_nothing(cls, rows: int, lanes: int, like: Float[Tensor, "R 1 P"]) -> Means:
        """Lanes without any item yet; in float32 at least."""
        zeros = like.new_zeros(rows, lanes, like.shape[-1], dtype=torch.promote_types(like.dtype, torch.float32))
        return cls(torch.full_like(zeros[..., 0], torch.finfo(like.dtype).min), torch.zeros_like(zeros[..., 0]), zeros)

    def add(self, score: Float[Tensor, "R n"], value: Float[Tensor, "R n P"]) -> None:
        lanes = slice(None, score.shape[1])
        peak, total, mean = self.peak[:, lanes], self.total[:, lanes], self.value[:, lanes]
        highest = torch.maximum(peak, score)
        shrunk, gained = (peak - highest).exp_(), (score - highest).exp_()
        total.mul_(shrunk).add_(gained)
        mean.mul_(shrunk[..., None]).addcmul_(gained[..., None], value)
        peak.copy_(highest)

    def joined(self, other: Pooled) -> Means:
        assert isinstance(other, Means)
        highest = torch.maximum(self.peak, other.peak)
        own, others = (self.peak - highest).exp(), (other.peak - highest).exp()
        value = self.value * own[..., None] + other.value * others[..., None]
        return Means(highest, self.total * own + other.total * others, value)

    def reordered(self, order: Int[Tensor, "R N"]) -> Means:
        return Means(self.peak.gather(1, order), self.total.gather(1, order), reordered(self.value, order))

    def mean(self) -> Float[Tensor, "R N P"]:
        return self.value / self.total.clamp(min=torch.finfo(self.total.dtype).tiny)[..., None]


@dataclass
class Kept(Pooled):
    """Any projection: all scores and values so far, of which the mean is computed at the end."""

    project: Projection
    lanes: int
    scores: list[Float[Tensor, "R N"]] = field(default_factory=list)
    values: list[Float[Tensor, "R N P"]] = field(default_factory=list)

    def add(self, score: Float[Tensor, "R n"], value: Float[Tensor, "R n P"]) -> None:
        more = self.lanes - score.shape[1]
        self.scores.append(F.pad(score, (0, more), value=torch.finfo(score.dtype).min))
        self.values.append(F.pad(value, (0, 0, 0, more)))

    def joined(self, other: Pooled) -> Kept:
        assert isinstance(other, Kept)
        return Kept(self.project, self.lanes, self.scores + other.scores, self.values + other.values)

    def reordered(self, order: Int[Tensor, "R N"]) -> Kept:
        scores = [score.gather(1, order) for score in self.scores]
        return Kept(self.project, self.lanes, scores, [reordered(value, order) for value in self.values])

    def mean(self) -> Float[Tensor, "R N P"]:
        scores = torch.stack(self.scores, dim=-1)
        wide = torch.promote_types(scores.dtype, torch.float32)
        weights = self.project(scores.to(wide), scores > torch.finfo(scores.dtype).min)
        total = torch.zeros_like(self.values[0], dtype=wide)
        for position, value in enumerate(self.values):
            total.addcmul_(weights[..., position, None], value)
        return total


# How attention reads a hidden state: its score, and the value of which the weighted mean is taken.


Partly = Callable[[Float[Tensor, "R N P"], Float[Tensor, "R 1 K"]], Float[Tensor, "R N K"]]
"""What is read of states of which one part varies; what is read of the rest of them comes second."""


@dataclass(frozen=True)
class Affine:
    """The affine map W h + c, shared by all rows or with weights and constants per row."""

    weight: Float[Tensor, "*W K M"]
    constant: Float[Tensor, "*C K"]

    def __call__(self, states: Float[Tensor, "R N M"]) -> Float[Tensor, "R N K"]:
        return _added(self.weight.mT, states, self.constant[..., None, :])

    def partly(self, own: slice) -> Partly:
        return partial(_added, self.weight[..., own].mT)


@dataclass(frozen=True)
class Itself:
    """The identity map."""

    def __call__(self, states: Float[Tensor, "R N M"]) -> Float[Tensor, "R N M"]:
        return states

    def partly(self, own: slice) -> Partly:
        return partial(_placed, own)


def _added(weight: Float[Tensor, "*W P K"], part: Float[Tensor, "R N P"], rest: Tensor) -> Float[Tensor, "R N K"]:
    return (part @ weight).add_(rest)


def _placed(own: slice, part: Float[Tensor, "R N P"], rest: Float[Tensor, "R 1 M"]) -> Float[Tensor, "R N M"]:
    whole = rest.repeat(1, part.shape[1], 1)
    whole[..., own] += part
    return whole


@dataclass(frozen=True)
class Reading:
    """An encoder with its attention: `aligned` projects hidden states, `finish` turns projections into scores."""

    network: Network
    encoder: Encoder
    aligned: Affine
    finish: Callable[[Tensor], Tensor]
    value: Affine | Itself

    @property
    def project(self) -> Projection:
        return self.network.project

    def states(self, x: Float[Tensor, "R S D"], mask: Bool[Tensor, "R S"]) -> Float[Tensor, "R S M"]:
        return self.network.beside(self.encoder(x, mask), x, mask)

    def score(self, states: Float[Tensor, "R N M"]) -> Float[Tensor, "R N"]:
        return self.finish(self.aligned(states))

    def mean(self, states: Float[Tensor, "R N M"], seen: Bool[Tensor, "R N"]) -> Float[Tensor, "R P"]:
        """The attention-weighted mean of the values of unmasked items."""
        return (self.project(self.score(states), seen)[:, None] @ self.value(states)).squeeze(1)

    def nothing_yet(self, lanes: int, like: Float[Tensor, "R 1 P"]) -> Pooled:
        """An empty accumulator for so many lanes per row."""
        if self.project is softmax:
            return Means.of_nothing(len(like), lanes, like)
        return Kept(self.project, lanes)


@dataclass(frozen=True)
class Text:
    """Rows of tokens: those in the mask are encoded, those in `seen` are attended to."""

    x: Float[Tensor, "R S D"]
    mask: Bool[Tensor, "R S"]
    seen: Bool[Tensor, "R S"]
    states: Float[Tensor, "R S M"]


def of_words(model: Hierarchical) -> Reading:
    """The reading of words within sentences: the value is the hidden state itself."""
    alignment = model.word_alignment
    return Reading(model, model.word_encoder, _aligned(alignment), alignment.finish, Itself())


def of_text(model: Classifier | Paired, batch: Batch) -> Reading:
    """The reading of the words of a text: the values are logits."""
    if isinstance(model, Paired):
        return _of_pair(model, batch)
    value = Affine(model.decoder.weight, model.decoder.bias)
    return Reading(model, model.encoder, _aligned(model.alignment), model.alignment.finish, value)


def _aligned(alignment: Additive | Dot) -> Affine:
    weight, bias = alignment.project.weight, alignment.project.bias
    return Affine(weight, weight.new_zeros(len(weight)) if bias is None else bias)


def _of_pair(model: Paired, batch: Batch) -> Reading:
    """The reading of a pair: the query and its product with the state become weights and constants per row."""
    query = model.query_encoding(batch)
    alone, beside, times = model.decoder.weight.chunk(3, dim=1)
    constant = query @ beside.T + model.decoder.bias
    if batch.candidates is not None:
        constant = constant + (~batch.candidates).to(constant.dtype) * BARRED
    value = Affine(alone + times * query[:, None], constant)
    if isinstance(model.alignment, Additive):
        own, other = model.alignment.project.weight.chunk(2, dim=1)
        aligned = Affine(own, query @ other.T + model.alignment.project.bias)
        return Reading(model, model.encoder, aligned, model.alignment.finish, value)
    aligned = Affine(query[:, None] / math.sqrt(query.shape[1]), torch.zeros_like(query[:, :1]))
    return Reading(model, model.encoder, aligned, _alone, value)


def _alone(scores: Float[Tensor, "R N 1"]) -> Float[Tensor, "R N"]:
    return scores.squeeze(-1)


# Leave-one-out under an LSTM or GRU: one pass carries, for every token, the hidden state of the text without it.


def recurrent(reading: Reading, text: Text, blank: Float[Tensor, " D"] | None) -> Float[Tensor, "R S P"]:
    """The attention-weighted mean without each token, or with a blank in its position."""
    assert isinstance(reading.encoder, Recurrent)
    order, half = mirrored(text.mask), reading.encoder.size // 2
    forth = Way(reading.encoder.ahead, slice(None, half), text.x, text.states, text.seen)
    back = Way(reading.encoder.behind, slice(half, 2 * half), *forth.turned(order))
    ahead, filled_ahead = _one_way(reading, forth, blank)
    behind, filled_behind = _one_way(reading, back, blank)
    means = ahead.joined(behind.reordered(order))
    if blank is not None:
        filled = torch.cat([filled_ahead, reordered(filled_behind, order)], dim=-1)
        filled = reading.network.beside(filled, blank.expand_as(text.x), torch.ones_like(text.mask))
        means.add(reading.score(filled), reading.value(filled))
    return means.mean().to(text.x.dtype)


@dataclass(frozen=True)
class Way:
    """One direction of a bidirectional network; its own half of the hidden states."""

    network: nn.LSTM | nn.GRU
    own: slice
    x: Float[Tensor, "R S D"]
    states: Float[Tensor, "R S M"]
    seen: Bool[Tensor, "R S"]

    def turned(self, order: Int[Tensor, "R S"]) -> tuple[Tensor, Tensor, Tensor]:
        """The same direction with its rows in another order."""
        return reordered(self.x, order), reordered(self.states, order), self.seen.gather(1, order)

    def weights(self, part: str) -> tuple[Tensor, Tensor]:
        """The weight matrix of the input ("ih") or of the recurrence ("hh")."""
        return getattr(self.network, f"weight_{part}_l0"), getattr(self.network, f"bias_{part}_l0")

    def others(self) -> Float[Tensor, "R S M"]:
        """The half of the hidden states that the other direction computes."""
        emptied = self.states.clone()
        emptied[..., self.own] = 0
        return emptied


def _one_way(reading: Reading, way: Way, blank: Float[Tensor, " D"] | None) -> tuple[Pooled, Float[Tensor, "R S H"]]:
    """The means over the tokens after each token in this direction, read without that token.

    Beside it, the state at each token in the text that has a blank there, if there is one.
    """
    lstm, recur = isinstance(way.network, nn.LSTM), way.weights("hh")
    step = _lstm_step if lstm else _gru_step
    rows, tokens, half = len(way.x), way.x.shape[1], way.network.hidden_size
    inputs = nn.functional.linear(way.x, *way.weights("ih"))
    instead = None if blank is None else nn.functional.linear(blank, *way.weights("ih"))
    carried = way.x.new_zeros(rows, tokens + 1, half * (2 if lstm else 1))
    filled = way.x.new_zeros(rows, tokens, half)
    others, hidden = way.others(), ~way.seen
    aligned, valued = reading.aligned(others), reading.value(others)  # the same throughout
    align, evaluate = reading.aligned.partly(way.own), reading.value.partly(way.own)
    means, lowest = reading.nothing_yet(tokens, valued[:, :1]), torch.finfo(valued.dtype).min
    for position in range(tokens):
        # carried[:, j] is the text so far without token j; carried[:, position] is the whole text so far.
        updated = step(inputs[:, position, None], carried[:, : position + 1], *recur)
        carried[:, position + 1] = updated[:, position]
        carried[:, :position] = updated[:, :position]
        if instead is not None:
            carried[:, position] = step(instead, carried[:, position], *recur)
            filled[:, position] = carried[:, position, :half]
        new = updated[:, :position, :half]
        score = reading.finish(align(new, aligned[:, position, None]))
        means.add(score.masked_fill_(hidden[:, position, None], lowest), evaluate(new, valued[:, position, None]))
    return means, filled


def _lstm_step(inputs: Tensor, carried: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    hidden, cell = carried.chunk(2, dim=-1)
    gates = nn.functional.linear(hidden, weight, bias).add_(inputs)
    keep, forget, new, out = gates.chunk(4, dim=-1)
    cell = (forget.sigmoid_() * cell).addcmul_(keep.sigmoid_(), new.tanh_())
    return torch.cat([out.sigmoid_() * cell.tanh(), cell], dim=-1)


def _gru_step(inputs: Tensor, carried: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    reset, update, new = inputs.chunk(3, dim=-1)
    from_reset, from_update, from_new = nn.functional.linear(carried, weight, bias).chunk(3, dim=-1)
    new = (new + (reset + from_reset).sigmoid() * from_new).tanh()
    return new + (update + from_update).sigmoid() * (carried - new)


# Leave-one-out under a convolution: only hidden states within the receptive field are computed again.


def windowed(reading: Reading, text: Text, blank: Float[Tensor, " D"] | None) -> Float[Tensor, "R S P"]:
    """The attention-weighted mean without each token, or with a blank in its position."""
    rows, tokens = text.mask.shape
    positions, reach = torch.arange(tokens, device=text.x.device), _reach(reading.encoder)
    states, offsets = _near(reading, text, blank)
    score, value = reading.score(states).reshape(rows, tokens, len(offsets)), reading.value(states)
    beside = positions[:, None] + offsets
    near = text.seen[:, beside.clamp(0, tokens - 1)] & (beside >= 0) & (beside < tokens)
    far = text.seen[:, None] & ((positions - positions[:, None]).abs() > reach)
    scores = torch.cat([reading.score(text.states)[:, None].expand(far.shape), score], dim=-1)
    weights = reading.project(scores, torch.cat([far, near], dim=-1))
    again = weights[:, :, None, tokens:] @ value.reshape(*score.shape, value.shape[-1])
    return torch.baddbmm(again.squeeze(2), weights[..., :tokens], reading.value(text.states))


def neighbours(encoder: Encoder, blank: Tensor | None, device: torch.device | None = None) -> Int[Tensor, " W"]:
    """The offsets from a removed token within which hidden states change."""
    reach = _reach(encoder)
    offsets = torch.arange(-2 * reach, 2 * reach + 1, device=device)
    return offsets if blank is not None else offsets[offsets != 0]


def _reach(encoder: Encoder) -> int:
    return max(encoder.widths) // 2 if isinstance(encoder, Convolution) else 0


def _near(reading: Reading, text: Text, blank: Tensor | None) -> tuple[Float[Tensor, "R N M"], Int[Tensor, " W"]]:
    """The hidden states of the W tokens around each removed or blanked one, and their offsets."""
    reach, offsets = _reach(reading.encoder), neighbours(reading.encoder, blank, text.x.device)
    positions = torch.arange(text.x.shape[1], device=text.x.device)
    padded = nn.functional.pad(text.x * text.mask[..., None], (0, 0, 2 * reach, 2 * reach))
    around = padded[:, positions[:, None] + offsets + 2 * reach]  # [R, S, W, D]
    if blank is not None:
        around[:, :, 2 * reach] = blank
    windows = around.flatten(0, 1)
    states = reading.states(windows, windows.new_ones(windows.shape[:2], dtype=torch.bool))
    central = slice(reach, len(offsets) - reach)  # the outer ones stand for what these see
    near = offsets[central]
    return states[:, central].reshape(len(padded), len(positions) * len(near), states.shape[-1]), near


# Leave-one-out by recomputation, for encoders in which every hidden state depends on all tokens.


def reread(reading: Reading, text: Text, blank: Float[Tensor, " D"] | None) -> Float[Tensor, "R S P"]:
    """The attention-weighted mean without each token, or with a blank in its position; all rows have one length."""
    row, removed = text.mask.nonzero(as_tuple=True)
    at_once = budget.room(text.x.device, "versions", text.x.shape[1])
    parts = [
        _without(reading, text, blank, (row[start : start + at_once], removed[start : start + at_once]))
        for start in range(0, len(row), at_once)
    ]
    values = torch.cat(parts)
    return values.new_zeros(*text.mask.shape, values.shape[-1]).index_put((row, removed), values)


def _without(
    reading: Reading, text: Text, blank: Tensor | None, versions: tuple[Tensor, Tensor]
) -> Float[Tensor, "N P"]:
    row, removed = versions
    x, seen = text.x[row], text.seen[row]
    gone = torch.arange(x.shape[1], device=x.device) == removed[:, None]
    if blank is None:
        order = left(seen & ~gone)
        x, seen = x.gather(1, order[..., None].expand_as(x)), (seen & ~gone).gather(1, order)
    else:
        x = torch.where(gone[..., None], blank, x)
    return reading.mean(reading.states(x, seen), seen)


# Chooses the leave-one-out algorithm by encoder, and counts what it costs.


FEW = 16  # numbers of a pair, which cost no more than the rest of it
KEPT = 1 << 26  # numbers of one row, beyond which a sentence is read again rather than kept


def rows_at_once(width: int, device: torch.device, project: Projection, size: int) -> int:
    """The number of rows of a width whose pairwise values fit into memory at once."""
    numbers = 1 if project is softmax else max(1, size // FEW)
    return budget.room(device, "deleted pairs", numbers * width**2)


def without_each(reading: Reading, text: Text, blank: Float[Tensor, " D"] | None) -> Float[Tensor, "R S P"]:
    """The attention-weighted mean without each token, or with a blank there; arbitrary where there is no token."""
    if isinstance(reading.encoder, Recurrent) and not _too_long(reading, text):
        return recurrent(reading, text, blank)
    if isinstance(reading.encoder, Convolution | Average | Nothing):
        return windowed(reading, text, blank)
    return reread(reading, text, blank)


def _too_long(reading: Reading, text: Text) -> bool:
    """Whether the leave-one-out states of a sentence are too many to keep for a projection other than softmax."""
    kept = text.mask.shape[1] * text.states.shape[1] * text.states.shape[2]
    return reading.project is not softmax and isinstance(reading.value, Itself) and kept > KEPT


def tokens_read(encoder: Encoder, lengths: Int[Tensor, " R"], blank: Tensor | None) -> Float[Tensor, " R"]:
    """The number of tokens encoded for all deletions in rows of these lengths, the whole row included once."""
    count = lengths.double()
    if isinstance(encoder, Recurrent):  # for each token what stands on one side of it: half the row
        return count + count * count / 2
    if isinstance(encoder, Convolution | Average | Nothing):
        return count * (1 + len(neighbours(encoder, blank)))
    return count * (count if blank is None else count + 1)


# Leave-one-out for attention over the words of a text, with or without a query.


Logits = tuple[Float[Tensor, "B C"], Float[Tensor, "B T C"]]
"""Of each text as it is, and of each without its t-th token."""


def word_deletions(
    model: Classifier | Paired, x: Float[Tensor, "B T D"], batch: Batch, blank: Float[Tensor, " D"] | None
) -> Logits:
    """The logits of each text, and without its t-th token, or with a blank there."""
    rows = rows_at_once(batch.ids.shape[1], x.device, model.project, model.decoder.out_features)
    parts = [slice(start, start + rows) for start in range(0, len(batch), rows)]
    found = [_some(model, x[part], batch[part], blank) for part in parts]
    whole, logits = (torch.cat(each) for each in zip(*found, strict=True))
    alone = (batch.lengths < 2) & (blank is None)
    if alone.any():
        logits[alone] = _nothing_left(model, x[alone], batch[alone.nonzero()[:, 0]])[:, None]
    return whole, logits


def _some(model: Classifier | Paired, x: Tensor, batch: Batch, blank: Tensor | None) -> Logits:
    """The same for a few texts, of two words at least where one is deleted."""
    markers = int(model.architecture.markers)
    around, mask = model.surrounded(x, batch.mask) if markers else (x, batch.mask)
    seen = nn.functional.pad(batch.mask, (markers, markers))
    if costs.current() is not None:
        lengths = mask.sum(-1)
        costs.add(forward=float((tokens_read(model.encoder, lengths, blank) / lengths.clamp(min=1)).sum()))
    reading = of_text(model, batch)
    text = Text(around, mask, seen, reading.states(around, mask))
    without = without_each(reading, text, blank)[:, markers : markers + x.shape[1]]
    return reading.mean(text.states, seen), without


def _nothing_left(model: Classifier | Paired, x: Tensor, batch: Batch) -> Float[Tensor, "B C"]:
    """The logits of a text without any word: those of the zero context vector."""
    empty = replace(batch, mask=torch.zeros_like(batch.mask))
    states = model.states(x, empty)
    return model.decode(states, torch.zeros_like(states[..., 0]))


# Leave-one-out in a hierarchical network: recomputes the word's sentence, then the sentences of its text.


def sentence_deletions(
    model: Hierarchical, x: Float[Tensor, "B T D"], batch: Batch, blank: Float[Tensor, " D"] | None
) -> Logits:
    """The logits of each text, and without its t-th word, or with a blank there; 0 where there is no word."""
    layout, real = Layout.of(batch), attended(model, batch)
    gone = (layout.mask.sum(-1) == 1)[layout.row] & (blank is None)  # the sentence has lost its only word
    if costs.current() is not None:
        costs.add(forward=_texts_read(model, layout, real, gone, blank))
    whole, changed = _means(model, layout.rows(x), layout.mask, blank)
    sentences = whole.new_zeros(*real.shape, whole.shape[-1]).masked_scatter(real[..., None], whole)
    number = model.items(batch)[layout.example, layout.token]
    logits = x.new_zeros(*batch.ids.shape, model.decoder.out_features)
    at_once = budget.room(x.device, "versions", real.shape[1])
    for start in range(0, len(gone), at_once):
        part = slice(start, start + at_once)
        example, token, position = layout.example[part], layout.token[part], number[part]
        rows = sentences[example]
        rows[torch.arange(len(rows), device=x.device), position] = changed[part]
        logits[example, token] = _read(model, *_closed(rows, real[example], position, gone[part]))
    return _read(model, sentences, real), logits


def _means(
    model: Hierarchical, rows: Float[Tensor, "R W D"], mask: Bool[Tensor, "R W"], blank: Tensor | None
) -> tuple[Float[Tensor, "R M"], Float[Tensor, "K M"]]:
    """The vector of each sentence, and of its sentence without each word; sentences of like length are one batch."""
    reading, size, count = of_words(model), model.width(model.word_encoder), mask.sum(-1)
    first = count.cumsum(0) - count
    order = count.argsort(stable=True, descending=True)
    sizes = count[order].tolist()
    whole, changed = rows.new_zeros(len(rows), size), rows.new_zeros(sum(sizes), size)
    start = 0
    while start < len(order):
        width = sizes[start]
        chosen = order[start : start + rows_at_once(width, rows.device, model.project, size)]
        x, seen = rows[chosen, :width], mask[chosen, :width]
        text = Text(x, seen, seen, reading.states(x, seen))
        whole[chosen] = reading.mean(text.states, seen)
        words = (first[chosen, None] + torch.arange(width, device=rows.device))[seen]
        changed[words] = without_each(reading, text, blank)[seen]
        start += len(chosen)
    return whole, changed


def _closed(
    rows: Float[Tensor, "N S M"], real: Bool[Tensor, "N S"], position: Int[Tensor, " N"], gone: Bool[Tensor, " N"]
) -> tuple[Float[Tensor, "N s M"], Bool[Tensor, "N s"]]:
    """The sentences of some texts and their mask, with those behind a removed one moved up."""
    count = real.sum(-1)
    positions = torch.arange(int(count.max()), device=rows.device)
    order = (positions + (gone[:, None] & (positions >= position[:, None])).long()).clamp(max=len(positions) - 1)
    return reordered(rows[:, : len(positions)], order), positions < (count - gone.long())[:, None]


def _read(model: Hierarchical, rows: Float[Tensor, "N S M"], mask: Bool[Tensor, "N S"]) -> Float[Tensor, "N C"]:
    states = model.encoder(rows, mask)
    return model.decode(states, model.project(model.alignment(states), mask))


def _texts_read(
    model: Hierarchical, layout: Layout, real: Bool[Tensor, "B S"], gone: Bool[Tensor, " K"], blank: Tensor | None
) -> float:
    """The cost in texts: fractions of words and sentences that are computed again."""
    words, sentences = layout.mask.sum(-1), real.sum(-1)
    owner = real.nonzero()[:, 0]  # the text of each sentence
    spent = sentences.double().index_add(0, owner, tokens_read(model.word_encoder, words, blank))
    spent = spent.index_add(0, layout.example, (sentences[layout.example] - gone.long()).double())
    whole = sentences.index_add(0, owner, words)
    return float((spent / whole.clamp(min=1)).sum())


Sharing = Classifier | Hierarchical | Paired


def shares_work(model: Model) -> TypeGuard[Sharing]:
    """Whether `deletion_logits` supports this model."""
    one_by_one = isinstance(model, Classifier | Paired) and not isinstance(model.encoder, Transformer)
    return one_by_one or isinstance(model, Hierarchical)


@torch.no_grad()
def deletion_logits(
    model: Sharing, x: Float[Tensor, "B T D"], batch: Batch, blank: Float[Tensor, " D"] | None = None
) -> Logits:
    """The logits of each text, and of each text with its t-th token deleted or blanked.

    Without any token they are those of the zero context; those on padding mean nothing.
    """
    if isinstance(model, Hierarchical):
        return sentence_deletions(model, x, batch, blank)
    return word_deletions(model, x, batch, blank)
