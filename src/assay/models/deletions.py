"""Leave-one-out logits of a pooled model: each token in turn deleted or replaced by a blank, with shared computation.

Where states depend on all tokens through a recurrence, most of the work is shared: one pass over the text carries, for
every token at once, the state of the text without it. Where a state depends on its neighbours at most, only those
within reach are computed again. Where sentences are read one by one, only that of the token is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
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
from assay.models.walk import Layer
from assay.types import Batch, Model, attended

Embeddings = Float[Tensor, "R S D"]
States = Float[Tensor, "R S M"]
Mask = Bool[Tensor, "R S"]
Lanes = Float[Tensor, "R N P"]
Scores = Float[Tensor, "R N"]
Blank = Float[Tensor, " D"] | None
SentenceMask = Bool[Tensor, "N S"]
Sentences = Float[Tensor, "N S M"]
NewValues = Float[Tensor, "R n P"]
NewScores = Float[Tensor, "R n"]
Index = Int[Tensor, " N"]
WithoutEach = Float[Tensor, "R S P"]
Logits = tuple[Float[Tensor, "B C"], Float[Tensor, "B T C"]]
"""Of each text as it is, and of each without its t-th token."""

FEW = 16  # numbers of a pair, which cost no more than the rest of it
STORED = 1 << 26  # numbers of one row, beyond which a sentence is read again rather than stored

Sharing = Classifier | Hierarchical | Paired


def shares_work(model: Model) -> TypeGuard[Sharing]:
    """Whether `deletion_logits` supports this model."""
    one_by_one = isinstance(model, Classifier | Paired) and not isinstance(model.encoder, Transformer)
    return one_by_one or isinstance(model, Hierarchical)


@torch.no_grad()
def deletion_logits(model: Sharing, x: Float[Tensor, "B T D"], batch: Batch, blank: Blank = None) -> Logits:
    """The logits of each text, and of each text with its t-th token deleted or blanked.

    Without any token they are those of the zero context; those on padding mean nothing.
    """
    if isinstance(model, Hierarchical):
        return sentence_deletions(model, x, batch, blank)
    return word_deletions(model, x, batch, blank)


# Attention-weighted means over the items that N lanes have received so far


@dataclass
class RunningMeans:
    """Softmax: Σ exp(s − peak) and Σ exp(s − peak) v of each lane over the scores s and values v so far."""

    peak: Scores
    total: Scores
    value: Lanes

    @classmethod
    def of_nothing(cls, rows: int, lanes: int, like: Float[Tensor, "R 1 P"]) -> RunningMeans:
        """Lanes without any item yet; in float32 at least."""
        zeros = like.new_zeros(rows, lanes, like.shape[-1], dtype=torch.promote_types(like.dtype, torch.float32))
        return cls(torch.full_like(zeros[..., 0], torch.finfo(like.dtype).min), torch.zeros_like(zeros[..., 0]), zeros)

    def add(self, score: NewScores, value: NewValues) -> None:
        """Adds one item to the first lanes; an item of the lowest score has no weight beside any other."""
        lanes = slice(None, score.shape[1])
        peak, total, mean = self.peak[:, lanes], self.total[:, lanes], self.value[:, lanes]
        highest = torch.maximum(peak, score)
        shrunk, gained = (peak - highest).exp_(), (score - highest).exp_()
        total.mul_(shrunk).add_(gained)
        mean.mul_(shrunk[..., None]).addcmul_(gained[..., None], value)
        peak.copy_(highest)

    def joined(self, other: RunningMeans, order: Int[Tensor, "R N"]) -> RunningMeans:
        """The mean over the items of both, the lanes of the other in this order."""
        peak, total, value = other.peak.gather(1, order), other.total.gather(1, order), reordered(other.value, order)
        highest = torch.maximum(self.peak, peak)
        own, others = (self.peak - highest).exp(), (peak - highest).exp()
        both = self.value * own[..., None] + value * others[..., None]
        return RunningMeans(highest, self.total * own + total * others, both)

    def mean(self) -> Lanes:
        """The mean, in float32 at least; 0 where a lane has no item."""
        return self.value / self.total.clamp(min=torch.finfo(self.total.dtype).tiny)[..., None]


@dataclass
class StoredMeans:
    """Any projection: all scores and values so far, of which the mean is computed at the end."""

    project: Projection
    lanes: int
    scores: list[Scores] = field(default_factory=list)
    values: list[Lanes] = field(default_factory=list)

    def add(self, score: NewScores, value: NewValues) -> None:
        more = self.lanes - score.shape[1]
        self.scores.append(F.pad(score, (0, more), value=torch.finfo(score.dtype).min))
        self.values.append(F.pad(value, (0, 0, 0, more)))

    def joined(self, other: StoredMeans, order: Int[Tensor, "R N"]) -> StoredMeans:
        scores = self.scores + [score.gather(1, order) for score in other.scores]
        values = self.values + [reordered(value, order) for value in other.values]
        return StoredMeans(self.project, self.lanes, scores, values)

    def mean(self) -> Lanes:
        scores = torch.stack(self.scores, dim=-1)
        wide = torch.promote_types(scores.dtype, torch.float32)
        weights = self.project(scores.to(wide), scores > torch.finfo(scores.dtype).min)
        total = torch.zeros_like(self.values[0], dtype=wide)
        for position, value in enumerate(self.values):
            total.addcmul_(weights[..., position, None], value)
        return total


# How attention reads a hidden state: its score, and the value of which the weighted mean is taken


@dataclass(frozen=True)
class Affine:
    """The map W h + c, with weights and constants for all rows or for each; without them, h itself."""

    weight: Float[Tensor, "*W K M"] | None = None
    constant: Float[Tensor, "*C K"] | None = None

    def __call__(self, states: States) -> Float[Tensor, "R S K"]:
        if self.weight is None or self.constant is None:
            return states
        return (states @ self.weight.mT).add_(self.constant[..., None, :])

    def partly(self, own: slice, part: Lanes, rest: Float[Tensor, "R 1 K"]) -> Float[Tensor, "R N K"]:
        """The map of states of which one part varies, given the map of the others."""
        if self.weight is not None:
            return (part @ self.weight[..., own].mT).add_(rest)
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
    value: Affine

    @property
    def project(self) -> Projection:
        return self.network.project

    def states(self, x: Embeddings, mask: Mask) -> States:
        return self.network.beside(self.encoder(x, mask), x, mask)

    def score(self, states: States) -> Float[Tensor, "R S"]:
        return self.finish(self.aligned(states))

    def mean(self, states: States, seen: Mask) -> Float[Tensor, "R P"]:
        """The attention-weighted mean of the values of unmasked items."""
        return (self.project(self.score(states), seen)[:, None] @ self.value(states)).squeeze(1)


@dataclass(frozen=True)
class Text:
    """Rows of tokens: those in the mask are encoded, those in `seen` are attended to."""

    x: Embeddings
    mask: Mask
    seen: Mask
    states: States


def of_words(model: Hierarchical) -> Reading:
    """The reading of words within sentences: the value is the hidden state itself."""
    alignment = model.word_alignment
    return Reading(model, model.word_encoder, _aligned(alignment), alignment.finish, Affine())


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
    return Reading(model, model.encoder, aligned, lambda scores: scores.squeeze(-1), value)


# One algorithm for each kind of encoder: the attention-weighted mean without each token, or with a blank there


def without_each(reading: Reading, text: Text, blank: Blank) -> WithoutEach:
    """The attention-weighted mean without each token, or with a blank there; arbitrary where there is no token."""
    numbers = text.mask.shape[1] * text.states.shape[1] * text.states.shape[2]
    too_long = reading.project is not softmax and reading.value.weight is None and numbers > STORED
    if isinstance(reading.encoder, Recurrent) and not too_long:
        return recurrent(reading, text, blank)
    if isinstance(reading.encoder, Convolution | Average | Nothing):
        return windowed(reading, text, blank)
    return reread(reading, text, blank)


def rows_at_once(width: int, device: torch.device, project: Projection, size: int) -> int:
    """The number of rows of a width whose pairwise values fit into memory at once."""
    numbers = 1 if project is softmax else max(1, size // FEW)
    return budget.room(device, "deleted pairs", numbers * width**2)


def tokens_read(encoder: Encoder, lengths: Int[Tensor, " R"], blank: Blank) -> Float[Tensor, " R"]:
    """The number of tokens encoded for all deletions in rows of these lengths, the whole row included once."""
    count = lengths.double()
    if isinstance(encoder, Recurrent):  # for each token what stands on one side of it: half the row
        return count + count * count / 2
    if isinstance(encoder, Convolution | Average | Nothing):
        return count * (1 + len(neighbours(encoder, blank)))
    return count * (count if blank is None else count + 1)


def recurrent(reading: Reading, text: Text, blank: Blank) -> WithoutEach:
    """Under an LSTM or GRU: one pass carries, for every token, the hidden state of the text without it."""
    encoder, order = reading.encoder, mirrored(text.mask)
    assert isinstance(encoder, Recurrent)
    turned = replace(
        text, x=reordered(text.x, order), states=reordered(text.states, order), seen=text.seen.gather(1, order)
    )
    half = encoder.size // 2
    ahead, filled_ahead = _one_way(reading, encoder.ahead, slice(None, half), text, blank)
    behind, filled_behind = _one_way(reading, encoder.behind, slice(half, 2 * half), turned, blank)
    means = ahead.joined(behind, order)  # type: ignore[arg-type]  # both are of one kind
    if blank is not None:
        filled = torch.cat([filled_ahead, reordered(filled_behind, order)], dim=-1)
        filled = reading.network.beside(filled, blank.expand_as(text.x), torch.ones_like(text.mask))
        means.add(reading.score(filled), reading.value(filled))
    return means.mean().to(text.x.dtype)


def _one_way(
    reading: Reading, network: nn.LSTM | nn.GRU, own: slice, text: Text, blank: Blank
) -> tuple[RunningMeans | StoredMeans, Float[Tensor, "R S H"]]:
    """The means over the tokens after each token in this direction, read without that token.

    Beside it, the state at each token in the text that has a blank there, if there is one.
    """
    layer = Layer.among(network, text.x)
    cell, (inputs, weight, bias, other) = layer.cell, layer.weights
    rows, tokens, half = *text.x.shape[:2], network.hidden_size
    count = 2 if isinstance(network, nn.LSTM) else 1  # state and cell state, or the state alone
    carried = [text.x.new_zeros(rows, tokens + 1, half) for _ in range(count)]
    given = F.linear(text.x, inputs, bias)[:, :, None]
    instead = None if blank is None else F.linear(blank, inputs, bias)
    filled, others = text.x.new_zeros(rows, tokens, half), text.states.clone()
    others[..., own] = 0  # what the other direction computes is the same throughout
    aligned, valued = reading.aligned(others)[:, :, None], reading.value(others)[:, :, None]
    lowest, hidden = torch.finfo(valued.dtype).min, ~text.seen
    means: RunningMeans | StoredMeans = StoredMeans(reading.project, tokens)
    if reading.project is softmax:
        means = RunningMeans.of_nothing(rows, tokens, valued[:, 0])

    def advanced(word: Tensor, lanes: slice | int) -> list[Tensor]:
        slots = cell.slots(word, F.linear(carried[0][:, lanes].contiguous(), weight, other))  # one wide product
        step = cell.step(slots, carried[-1][:, lanes])
        return [step.state, step.memory][:count]

    for position in range(tokens):
        # carried[:, j] is the text so far without token j; carried[:, position] is the whole text so far.
        updated = advanced(given[:, position], slice(position + 1))
        for each, new in zip(carried, updated, strict=True):
            each[:, position + 1] = new[:, position]
            each[:, :position] = new[:, :position]
        if instead is not None:
            for each, new in zip(carried, advanced(instead, position), strict=True):
                each[:, position] = new
            filled[:, position] = carried[0][:, position]
        lanes = updated[0][:, :position]
        score = reading.finish(reading.aligned.partly(own, lanes, aligned[:, position]))
        value = reading.value.partly(own, lanes, valued[:, position])
        means.add(score.masked_fill_(hidden[:, position, None], lowest), value)
    return means, filled


def windowed(reading: Reading, text: Text, blank: Blank) -> WithoutEach:
    """Under a convolution: only hidden states within the receptive field are computed again."""
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


def neighbours(encoder: Encoder, blank: Blank, device: torch.device | None = None) -> Int[Tensor, " W"]:
    """The offsets from a removed token within which hidden states change."""
    reach = _reach(encoder)
    offsets = torch.arange(-2 * reach, 2 * reach + 1, device=device)
    return offsets if blank is not None else offsets[offsets != 0]


def _reach(encoder: Encoder) -> int:
    return max(encoder.widths) // 2 if isinstance(encoder, Convolution) else 0


def _near(reading: Reading, text: Text, blank: Blank) -> tuple[Float[Tensor, "R N M"], Int[Tensor, " W"]]:
    """The hidden states of the W tokens around each removed or blanked one, and their offsets."""
    reach, offsets = _reach(reading.encoder), neighbours(reading.encoder, blank, text.x.device)
    positions = torch.arange(text.x.shape[1], device=text.x.device)
    padded = F.pad(text.x * text.mask[..., None], (0, 0, 2 * reach, 2 * reach))
    around = padded[:, positions[:, None] + offsets + 2 * reach]  # [R, S, W, D]
    if blank is not None:
        around[:, :, 2 * reach] = blank
    windows = around.flatten(0, 1)
    states = reading.states(windows, windows.new_ones(windows.shape[:2], dtype=torch.bool))
    central = slice(reach, len(offsets) - reach)  # the outer ones stand for what these see
    near = offsets[central]
    return states[:, central].reshape(len(padded), len(positions) * len(near), states.shape[-1]), near


def reread(reading: Reading, text: Text, blank: Blank) -> WithoutEach:
    """By recomputation, where every hidden state depends on all tokens; all rows have one length."""
    row, removed = text.mask.nonzero(as_tuple=True)
    at_once = budget.room(text.x.device, "versions", text.x.shape[1])
    parts = zip(torch.split(row, at_once), torch.split(removed, at_once), strict=True)
    values = torch.cat([_without(reading, text, blank, some, gone) for some, gone in parts])
    return values.new_zeros(*text.mask.shape, values.shape[-1]).index_put((row, removed), values)


def _without(reading: Reading, text: Text, blank: Blank, row: Index, removed: Index) -> Float[Tensor, "N P"]:
    x, seen = text.x[row], text.seen[row]
    gone = torch.arange(x.shape[1], device=x.device) == removed[:, None]
    if blank is None:
        order = left(seen & ~gone)
        x, seen = reordered(x, order), (seen & ~gone).gather(1, order)
    else:
        x = torch.where(gone[..., None], blank, x)
    return reading.mean(reading.states(x, seen), seen)


# Attention over the words of a text, with or without a query


def word_deletions(model: Classifier | Paired, x: Embeddings, batch: Batch, blank: Blank) -> Logits:
    """The logits of each text, and without its t-th token, or with a blank there."""
    rows = rows_at_once(batch.ids.shape[1], x.device, model.project, model.decoder.out_features)
    parts = [slice(start, start + rows) for start in range(0, len(batch), rows)]
    found = [_some(model, x[part], batch[part], blank) for part in parts]
    whole, logits = (torch.cat(each) for each in zip(*found, strict=True))
    alone = (batch.lengths < 2) & (blank is None)
    if alone.any():  # without any word, the logits of the zero context
        single = batch[alone.nonzero()[:, 0]]
        states = model.states(x[alone], replace(single, mask=torch.zeros_like(single.mask)))
        nothing = model.decode(states, torch.zeros_like(states[..., 0]))
        logits[alone] = nothing[:, None]
    return whole, logits


def _some(model: Classifier | Paired, x: Embeddings, batch: Batch, blank: Blank) -> Logits:
    """The same for a few texts, of two words at least where one is deleted."""
    markers = int(model.architecture.markers)
    around, mask = model.surrounded(x, batch.mask) if markers else (x, batch.mask)
    seen = F.pad(batch.mask, (markers, markers))
    if costs.current() is not None:
        lengths = mask.sum(-1)
        costs.add(forward=float((tokens_read(model.encoder, lengths, blank) / lengths.clamp(min=1)).sum()))
    reading = of_text(model, batch)
    text = Text(around, mask, seen, reading.states(around, mask))
    without = without_each(reading, text, blank)[:, markers : markers + x.shape[1]]
    return reading.mean(text.states, seen), without


# A hierarchical network: recomputes the word's sentence, then the sentences of its text


def sentence_deletions(model: Hierarchical, x: Float[Tensor, "B T D"], batch: Batch, blank: Blank) -> Logits:
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
    model: Hierarchical, rows: Float[Tensor, "R W D"], mask: Bool[Tensor, "R W"], blank: Blank
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
    rows: Sentences, real: SentenceMask, position: Index, gone: Bool[Tensor, " N"]
) -> tuple[Float[Tensor, "N s M"], Bool[Tensor, "N s"]]:
    """The sentences of some texts and their mask, with those behind a removed one moved up."""
    count = real.sum(-1)
    positions = torch.arange(int(count.max()), device=rows.device)
    order = (positions + (gone[:, None] & (positions >= position[:, None])).long()).clamp(max=len(positions) - 1)
    return reordered(rows[:, : len(positions)], order), positions < (count - gone.long())[:, None]


def _read(model: Hierarchical, rows: Sentences, mask: SentenceMask) -> Float[Tensor, "N C"]:
    states = model.encoder(rows, mask)
    return model.decode(states, model.project(model.alignment(states), mask))


def _texts_read(
    model: Hierarchical, layout: Layout, real: Bool[Tensor, "B S"], gone: Bool[Tensor, " K"], blank: Blank
) -> float:
    """The cost in texts: fractions of words and sentences that are computed again."""
    words, sentences = layout.mask.sum(-1), real.sum(-1)
    owner = real.nonzero()[:, 0]  # the text of each sentence
    spent = sentences.double().index_add(0, owner, tokens_read(model.word_encoder, words, blank))
    spent = spent.index_add(0, layout.example, (sentences[layout.example] - gone.long()).double())
    whole = sentences.index_add(0, owner, words)
    return float((spent / whole.clamp(min=1)).sum())
