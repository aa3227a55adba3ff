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
    whole, without = _answers(model, batch, "delete")
    return tvd(without, whole[:, None]).float() * batch.mask


@dataclass(frozen=True)
class Occlusion:
    """p(class | text) − p(class | text without the token), signed (Zeiler and Fergus, 2014; Li et al., 2016)."""

    removal: str = "delete"

    def unfit(self, model: Model) -> str | None:
        return None if self.removal == "delete" else no_blank(model)

    @torch.no_grad()
    def __call__(self, model: Model, batch: Batch, target: Int[Tensor, " B"]) -> Float[Tensor, "B T"]:
        demand(self.unfit(model))
        whole, without = _answers(model, batch, self.removal)
        drops = whole[:, None] - without
        return drops.gather(2, target[:, None, None].expand(*batch.ids.shape, 1)).squeeze(2).float() * batch.mask


@torch.no_grad()
def removed_probabilities(model: Model, batch: Batch, removal: str = "delete") -> Float[Tensor, "B T C"]:
    """The probabilities of each text without its t-th token; those on padding mean nothing."""
    if shares_work(model):
        logits = deletion_logits(model, model.embed(batch), batch, filler(model, batch, removal))
        return (logits.float() if logits.dtype.itemsize < 4 else logits).softmax(-1)
    return _read(model, batch, removal, batch.ids[:0, 0])[1]


def _answers(model: Model, batch: Batch, removal: str) -> tuple[Float[Tensor, "B C"], Float[Tensor, "B T C"]]:
    """The probabilities of each text, and of each without its t-th token; those on padding mean nothing."""
    if shares_work(model):
        return model(model.embed(batch), batch).probabilities, removed_probabilities(model, batch, removal)
    return _read(model, batch, removal, torch.arange(len(batch), device=batch.ids.device))


def _read(
    model: Model, batch: Batch, removal: str, texts: Int[Tensor, " N"]
) -> tuple[Float[Tensor, "N C"], Float[Tensor, "B T C"]]:
    """The same, of some texts as they are: they are read with the others, which is faster than alone."""
    example, removed = batch.mask.nonzero(as_tuple=True)
    kept = torch.arange(batch.ids.shape[1], device=removed.device) != removed[:, None]
    versions = torch.cat([batch.mask[texts], kept])
    found = version_probabilities(model, batch, torch.cat([texts, example]), versions, removal)
    whole, rest = found.tensor_split([len(texts)])
    return whole, rest.new_zeros(*batch.ids.shape, rest.shape[-1]).index_put((example, removed), rest)
