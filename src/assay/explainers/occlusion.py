"""Occlusion: the change of the output when a token is removed."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from assay.errors import AssayError
from assay.explainers.needs import Choosy, Removing, Scores, Target, class_free
from assay.models.deletions import deletion_logits, shares_work
from assay.models.erasure import filler, version_probabilities
from assay.types import Batch, Model, at_least_float32

Drops = Float[Tensor, "B T C"]

ROUNDINGS = 64  # of a probability, that may pile up until a model answers


@class_free
@torch.no_grad()
def leave_one_out(model: Model, batch: Batch, target: Target) -> Scores:
    """The total variation distance between the answers with and without each token (Jain and Wallace, 2019)."""
    drops, rounding = _drops(model, batch, "delete")
    return _levelled(drops.abs().sum(-1) / 2, rounding, batch)


@dataclass(frozen=True)
class Occlusion(Removing, Choosy):
    """p(class | text) − p(class | text without the token), signed (Zeiler and Fergus, 2014; Li et al., 2016)."""

    removal: str = "delete"

    @torch.no_grad()
    def explain(self, model: Model, batch: Batch, target: Target) -> Scores:
        drops, rounding = _drops(model, batch, self.removal)
        return _levelled(drops.gather(2, target[:, None, None].expand(*batch.ids.shape, 1)).squeeze(2), rounding, batch)


def _drops(model: Model, batch: Batch, removal: str) -> tuple[Drops, Float[Tensor, " B"]]:
    """The drop of each class's probability without each token, and a bound on its rounding error per text.

    The drop of the most probable class is what the others gain: near 1 a probability has few digits left to differ in.
    Drops on padding mean nothing.
    """
    whole, without = _answers(model, batch, removal)
    top = whole.argmax(-1)[:, None, None].expand(*batch.ids.shape, 1)
    others = (whole[:, None] - without).scatter(2, top, 0.0)
    rest = torch.maximum(without, whole[:, None]).scatter(2, top, 0.0).sum(-1) * batch.mask
    rounding = ROUNDINGS * torch.finfo(rest.dtype).eps * rest.amax(-1)
    return others.scatter(2, top, -others.sum(-1, keepdim=True)), rounding


def _levelled(scores: Scores, rounding: Float[Tensor, " B"], batch: Batch) -> Scores:
    """The scores, with float64 scores that differ by rounding only made equal; 0 on padding."""
    scores = scores * batch.mask
    if scores.dtype != torch.float64:  # in float32 true effects can be as small
        return scores
    ordered, order = scores.sort(dim=-1)
    begins = torch.ones_like(batch.mask)
    begins[:, 1:] = ordered[:, 1:] - ordered[:, :-1] > rounding[:, None]
    return torch.empty_like(scores).scatter(1, order, ordered.gather(1, _starts(begins))) * batch.mask


@torch.no_grad()
def removed_probabilities(model: Model, batch: Batch, removal: str = "delete") -> Drops:
    """The probabilities of each text without its t-th token; undefined on padding."""
    return _answers(model, batch, removal, whole=False)[1]


def _answers(model: Model, batch: Batch, removal: str, whole: bool = True) -> tuple[Float[Tensor, "N C"], Drops]:
    """The probabilities of each text, if wanted, and of each text without its t-th token.

    Of equal tokens side by side the first is removed for all: what is left is the same text, and has the same answer.
    """
    if shares_work(model):
        x = model.embed(batch)
        found = deletion_logits(model, x, batch, filler(model, batch, removal))
        texts, without = (at_least_float32(logits).softmax(-1) for logits in found)
    else:
        every = torch.arange(len(batch) if whole else 0, device=batch.ids.device)
        texts, without = _read(model, batch, removal, every)
        x = batch.ids[..., None] if batch.subwords is None else batch.subwords  # an embedding may know its position
    if removal != "delete":
        return texts, without
    return texts, without.gather(1, _first_of_run(x, batch)[..., None].expand_as(without))


def _first_of_run(tokens: Shaped[Tensor, "B T D"], batch: Batch) -> Int[Tensor, "B T"]:
    """The first position of the run of equal tokens that each token is in; runs end with their sentence."""
    begins = torch.ones_like(batch.mask)
    begins[:, 1:] = (tokens[:, 1:] != tokens[:, :-1]).any(-1) | ~batch.mask[:, 1:]
    if batch.sentences is not None:
        begins[:, 1:] |= batch.sentences[:, 1:] != batch.sentences[:, :-1]
    return _starts(begins)


def _starts(begins: Bool[Tensor, "B T"]) -> Int[Tensor, "B T"]:
    """The start of the run that each position is in, from the mask of starts."""
    return torch.where(begins, torch.arange(begins.shape[1], device=begins.device), 0).cummax(-1).values


def _read(model: Model, batch: Batch, removal: str, texts: Int[Tensor, " N"]) -> tuple[Float[Tensor, "N C"], Drops]:
    """The same, with the unmodified texts in the same batches, which is faster than alone."""
    example, removed = batch.mask.nonzero(as_tuple=True)
    kept = torch.arange(batch.ids.shape[1], device=removed.device) != removed[:, None]
    versions = torch.cat([batch.mask[texts], kept])
    found = version_probabilities(model, batch, torch.cat([texts, example]), versions, removal)
    whole, rest = found.tensor_split([len(texts)])
    return whole, rest.new_zeros(*batch.ids.shape, rest.shape[-1]).index_put((example, removed), rest)


# Occlusion of spans: the change of the output when several tokens are removed together.


@dataclass(frozen=True)
class SpanOcclusion(Removing, Choosy):
    """The drop in p(class) without a span, per token of it, averaged over the spans that hold the token; signed.

    These are all spans of 1 to `longest` tokens: the patches of Zeiler and Fergus (2014), in text.
    """

    longest: int = 3
    removal: str = "delete"

    def explain(self, model: Model, batch: Batch, target: Target) -> Scores:
        spans = every_span(batch, self.longest)
        example, start, stop = spans.unbind(-1)
        drops = span_drops(model, batch, target, spans, self.removal)
        table = drops.new_zeros(2, *batch.ids.shape, min(self.longest, batch.ids.shape[1]))
        table[0, example, start, stop - start - 1] = drops / (stop - start)
        table[1, example, start, stop - start - 1] = 1.0
        total, count = _holding(table)
        mean: Tensor = total / count.clamp(min=1)
        return mean


@dataclass(frozen=True)
class SentenceOcclusion(Removing, Choosy):
    """The drop in p(class) when the token's whole sentence is removed, signed, the same for all its tokens."""

    removal: str = "delete"

    def explain(self, model: Model, batch: Batch, target: Target) -> Scores:
        numbers = torch.zeros_like(batch.ids) if batch.sentences is None else batch.sentences
        tokens = torch.stack([batch.mask.nonzero()[:, 0], numbers[batch.mask]])
        (example, number), owner = torch.unique(tokens, dim=1, return_inverse=True)
        drops = _version_drops(model, batch, target, (example, numbers[example] != number[:, None]), self.removal)
        return drops.new_zeros(batch.ids.shape).masked_scatter(batch.mask, drops[owner])


def every_span(batch: Batch, longest: int) -> Int[Tensor, "N 3"]:
    """Example, start and stop (exclusive) of each span of 1 to `longest` tokens."""
    if longest < 1:
        raise AssayError(f"The longest span must be at least 1 token, got {longest}.")
    sizes = torch.arange(1, min(longest, batch.ids.shape[1]) + 1, device=batch.ids.device)
    positions = torch.arange(batch.ids.shape[1], device=batch.ids.device)
    inside = positions[:, None] + sizes <= batch.lengths[:, None, None]  # [B, T, L]
    example, start, size = inside.nonzero(as_tuple=True)
    return torch.stack([example, start, start + sizes[size]], dim=-1)


def _holding(table: Float[Tensor, "*N T L"]) -> Float[Tensor, "*N T"]:
    """For each token, the sum over the spans that contain it, from a table by start and length."""
    total = torch.zeros_like(table[..., 0])
    for size in range(1, table.shape[-1] + 1):
        total += nn.functional.pad(table[..., size - 1], (size - 1, 0)).unfold(-1, size, 1).sum(-1)
    return total


def span_drops(
    model: Model, batch: Batch, target: Target, spans: Int[Tensor, "N 3"], removal: str = "delete"
) -> Float[Tensor, " N"]:
    """p(class | text) − p(class | text without the span) for each span, given by example, start and stop."""
    example, start, stop = spans.unbind(-1)
    positions = torch.arange(batch.ids.shape[1], device=spans.device)
    outside = (positions < start[:, None]) | (positions >= stop[:, None])
    return _version_drops(model, batch, target, (example, outside), removal)


@torch.no_grad()
def _version_drops(
    model: Model,
    batch: Batch,
    target: Target,
    versions: tuple[Int[Tensor, " N"], Bool[Tensor, "N T"]],
    removal: str,
) -> Float[Tensor, " N"]:
    """The drop in p(class) for each version of a text, given by its example and kept tokens."""
    example, kept = versions
    whole = model(model.embed(batch), batch).probabilities.gather(1, target[:, None])[example]
    left = version_probabilities(model, batch, example, kept, removal).gather(1, target[example, None])
    return (whole - left).squeeze(1)
