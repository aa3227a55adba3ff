"""What changes when a token is taken away."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.explainers.needs import demand, no_blank
from assay.metrics.divergence import tvd
from assay.models.deletions import deletion_logits, shares_work
from assay.models.erasure import filler, version_probabilities
from assay.types import Batch, Model


@torch.no_grad()
def leave_one_out(model: Model, batch: Batch, target: Int[Tensor, " B"]) -> Float[Tensor, "B T"]:
    """The total variation distance between the answers with and without each token (Jain and Wallace, 2019)."""
    whole = model(model.embed(batch), batch).probabilities
    return tvd(removed_probabilities(model, batch), whole[:, None]).float() * batch.mask


@dataclass(frozen=True)
class Occlusion:
    """p(class | text) − p(class | text without the token), signed (Zeiler and Fergus, 2014; Li et al., 2016)."""

    removal: str = "delete"

    def unfit(self, model: Model) -> str | None:
        return None if self.removal == "delete" else no_blank(model)

    @torch.no_grad()
    def __call__(self, model: Model, batch: Batch, target: Int[Tensor, " B"]) -> Float[Tensor, "B T"]:
        demand(self.unfit(model))
        whole = model(model.embed(batch), batch).probabilities
        drops = whole[:, None] - removed_probabilities(model, batch, self.removal)
        return drops.gather(2, target[:, None, None].expand(*batch.ids.shape, 1)).squeeze(2).float() * batch.mask


@torch.no_grad()
def removed_probabilities(model: Model, batch: Batch, removal: str = "delete") -> Float[Tensor, "B T C"]:
    """The probabilities of each text without its t-th token; those on padding mean nothing."""
    if shares_work(model):
        logits = deletion_logits(model, model.embed(batch), batch, filler(model, batch, removal))
        return (logits.float() if logits.dtype.itemsize < 4 else logits).softmax(-1)
    example, removed = batch.mask.nonzero(as_tuple=True)
    kept = torch.arange(batch.ids.shape[1], device=removed.device) != removed[:, None]
    found = version_probabilities(model, batch, example, kept, removal)
    return found.new_zeros(*batch.ids.shape, found.shape[-1]).index_put((example, removed), found)
