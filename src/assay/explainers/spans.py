"""Occlusion of spans: the change of the output when several tokens are removed together."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from assay.errors import AssayError
from assay.explainers.needs import demand, no_blank
from assay.models.erasure import version_probabilities
from assay.types import Batch, Model


@dataclass(frozen=True)
class SpanOcclusion:
    """The drop in p(class) without a span, per token of it, averaged over the spans that hold the token; signed.

    These are all spans of 1 to `longest` tokens: the patches of Zeiler and Fergus (2014), in text.
    """

    longest: int = 3
    removal: str = "delete"

    def unfit(self, model: Model) -> str | None:
        return _without_table(model, self.removal)

    def __call__(self, model: Model, batch: Batch, target: Int[Tensor, " B"]) -> Float[Tensor, "B T"]:
        demand(self.unfit(model))
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
class SentenceOcclusion:
    """The drop in p(class) when the token's whole sentence is removed, signed, the same for all its tokens."""

    removal: str = "delete"

    def unfit(self, model: Model) -> str | None:
        return _without_table(model, self.removal)

    def __call__(self, model: Model, batch: Batch, target: Int[Tensor, " B"]) -> Float[Tensor, "B T"]:
        demand(self.unfit(model))
        numbers = torch.zeros_like(batch.ids) if batch.sentences is None else batch.sentences
        tokens = torch.stack([batch.mask.nonzero()[:, 0], numbers[batch.mask]])
        (example, number), owner = torch.unique(tokens, dim=1, return_inverse=True)
        drops = _drops(model, batch, target, (example, numbers[example] != number[:, None]), self.removal)
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
    model: Model, batch: Batch, target: Int[Tensor, " B"], spans: Int[Tensor, "N 3"], removal: str = "delete"
) -> Float[Tensor, " N"]:
    """p(class | text) − p(class | text without the span) for each span, given by example, start and stop."""
    example, start, stop = spans.unbind(-1)
    positions = torch.arange(batch.ids.shape[1], device=spans.device)
    outside = (positions < start[:, None]) | (positions >= stop[:, None])
    return _drops(model, batch, target, (example, outside), removal)


@torch.no_grad()
def _drops(
    model: Model,
    batch: Batch,
    target: Int[Tensor, " B"],
    versions: tuple[Int[Tensor, " N"], Bool[Tensor, "N T"]],
    removal: str,
) -> Float[Tensor, " N"]:
    """The drop in p(class) for each version of a text, given by its example and kept tokens."""
    example, kept = versions
    whole = model(model.embed(batch), batch).probabilities.gather(1, target[:, None])[example]
    left = version_probabilities(model, batch, example, kept, removal).gather(1, target[example, None])
    return (whole - left).squeeze(1)


def _without_table(model: Model, removal: str) -> str | None:
    return None if removal == "delete" else no_blank(model)
