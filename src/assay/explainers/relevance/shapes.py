"""Relevance propagation through networks of each shape."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.explainers.relevance.reading import Reading
from assay.models.network import Classifier, Paired
from assay.models.networks import Hierarchical, Layout
from assay.types import Batch, attended

Readable = Classifier | Hierarchical | Paired
Logits = Float[Tensor, "R C"]


def read(
    reading: Reading, model: Readable, x: Float[Tensor, "R S D"], encoded: Bool[Tensor, "R S"], batch: Batch
) -> Logits:
    """The logits of embeddings that have their markers already, where the model has any; no class is barred."""
    if isinstance(model, Hierarchical):
        return hierarchical(reading, model, x, batch)
    states = reading.encode(model.encoder, x, encoded)
    if model.architecture.markers:
        states, x = states[:, 1:-1], x[:, 1:-1]  # what stands beyond a text is not attended
    states = model.beside(states, x, batch.mask)
    if isinstance(model, Paired):
        return paired(reading, model, states, batch)
    return reading.linear(model.decoder, reading.pooled(model.alignment, states, batch.mask))


def hierarchical(reading: Reading, model: Hierarchical, x: Float[Tensor, "R T D"], batch: Batch) -> Logits:
    """Words to sentences, each a row with its text's factors, then sentences to logits."""
    layout, real = Layout.of(batch), attended(model, batch)
    words, text = layout.rows(x), real.nonzero(as_tuple=True)[0]
    means = x.new_zeros(len(words), model.width(model.word_encoder))
    for band, longest in layout.bands():  # texts and their baselines have the same lengths, so each is half of a band
        within, mask = reading.of(text[band]), layout.mask[band, :longest]
        encoded = within.encode(model.word_encoder, words[band, :longest], mask)
        states = model.beside(encoded, words[band, :longest], mask)
        means = means.index_put((band,), within.pooled(model.word_alignment, states, mask))
    sentences = means.new_zeros(*real.shape, means.shape[-1]).masked_scatter(real[..., None], means)
    states = reading.encode(model.encoder, sentences, real)
    return reading.linear(model.decoder, reading.pooled(model.alignment, states, real))


def paired(reading: Reading, model: Paired, states: Float[Tensor, "R T M"], batch: Batch) -> Logits:
    """W c + U q + V (c ⊙ q) + b as one linear map of the words: the query multiplies weights or adds a term."""
    with torch.no_grad():
        query = model.query_encoding(batch).to(states)
    term = query * reading.query[:, None]
    context = reading.pooled(model.alignment, states, batch.mask, term)
    there = batch.mask.any(-1, keepdim=True)  # of a text without words nothing is pooled, not even the query
    return reading.linear(model.decoder, torch.cat([context, term * there, context * query], dim=-1))
