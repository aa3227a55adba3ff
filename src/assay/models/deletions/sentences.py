"""Leave-one-out in a hierarchical network: recomputes the word's sentence, then the sentences of its text."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay import costs
from assay.models import budget
from assay.models.deletions.readings import Text, of_words
from assay.models.deletions.rows import rows_at_once, tokens_read, without_each
from assay.models.deletions.texts import Logits
from assay.models.encoders import reordered
from assay.models.networks import Hierarchical, Layout
from assay.types import Batch, attended


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
