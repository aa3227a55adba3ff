"""Sampling and occlusion: the effect of removing a phrase, averaged over sampled contexts (Jin et al., 2020)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.errors import unknown
from assay.explainers.decomposition import Decomposition, decomposed, margins, undivided
from assay.explainers.hierarchies.sampling import Sampler
from assay.explainers.hierarchies.tables import steps
from assay.explainers.needs import demand, no_blank
from assay.models.erasure import REMOVALS, capacity, filler, gathered, left
from assay.types import Batch, Model, at_least_float32


@dataclass(frozen=True)
class Estimate:
    """Scores and their standard errors from sampling."""

    scores: Float[Tensor, "B S"]
    errors: Float[Tensor, "B S"]


@dataclass(frozen=True)
class SamplingOcclusion(Sampler):
    """φ(p) = the mean of s(x̂) − s(x̂ without p) over texts x̂ with other words around p (Jin et al., 2020).

    s is the class's logit minus the mean of the others. A phrase gives way to padding, or is removed in another way.
    Without a window, φ is what the text itself loses.
    """

    removal: str = "pad"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.removal not in REMOVALS:
            raise unknown("removal", self.removal, REMOVALS)

    def unfit(self, model: Model) -> str | None:
        return super().unfit(model) or (None if self.removal == "delete" else no_blank(model))

    def estimated(
        self, model: Model, batch: Batch, target: Int[Tensor, " B"], chosen: Bool[Tensor, "B S T"]
    ) -> Estimate:
        """Scores with standard errors, which are 0 where nothing is sampled."""
        demand(self.unfit(model))
        chosen = chosen & batch.mask[:, None]
        example, number = chosen.any(-1).nonzero(as_tuple=True)
        texts, phrases = batch[example], chosen[example, number]
        versions = self.versions(texts, phrases[:, None])[:, 0]
        count, samples, tokens = versions.shape
        each = torch.arange(count, device=chosen.device).repeat_interleave(samples)
        read = replace(texts[each], ids=versions.reshape(-1, tokens))
        drops = _lost(model, read, target[example][each], ~phrases[each], self.removal).reshape(count, samples)
        spread = drops.std(-1) / math.sqrt(samples) if samples > 1 else torch.zeros_like(drops[:, 0])
        scores = drops.new_zeros(2, *chosen.shape[:2])
        scores[:, example, number] = torch.stack([drops.mean(-1), spread])
        return Estimate(scores[0], scores[1])

    def __call__(
        self, model: Model, batch: Batch, target: Int[Tensor, " B"], chosen: Bool[Tensor, "B S T"]
    ) -> Float[Tensor, "B S"]:
        return self.estimated(model, batch, target, chosen).scores


@dataclass(frozen=True)
class SampledDecomposition(Sampler):
    """Contextual decomposition whose activations are divided over sampled contexts (SCD; Jin et al., 2020, section 3).

    What a part adds to an activation is the mean of f(h) − f(h − β) over the values h that it has in texts with other
    words around the phrase. All else is as in `ContextualDecomposition`, and so is the text that γ is taken from.
    """

    # differs from Jin et al. (2020): ReLU too is divided over contexts, and attention weights are the text's own

    def unfit(self, model: Model) -> str | None:
        return super().unfit(model) or undivided(model)

    def divided(self, model: Model, batch: Batch, chosen: Bool[Tensor, "B S T"]) -> Decomposition:
        """β and γ of all logits."""
        demand(self.unfit(model))
        chosen = chosen & batch.mask[:, None]
        return decomposed(model, batch, chosen, self.versions(batch, chosen))

    def __call__(
        self, model: Model, batch: Batch, target: Int[Tensor, " B"], chosen: Bool[Tensor, "B S T"]
    ) -> Float[Tensor, "B S"]:
        return margins(self.divided(model, batch, chosen).relevant, model, batch, target)


@torch.no_grad()
def _lost(
    model: Model, texts: Batch, target: Int[Tensor, " N"], kept: Bool[Tensor, "N T"], removal: str
) -> Float[Tensor, " N"]:
    """The drop of the class's margin when only the kept words are left, for each text."""
    step = max(1, capacity(model, texts.ids.device) // max(1, texts.ids.shape[1]))
    found: list[Tensor] = []
    for number in steps(-(-len(texts) // step), "phrases"):
        part = slice(number * step, (number + 1) * step)
        batch, wanted = texts[part], target[part]
        x = model.embed(batch)
        whole = model(x, batch).logits
        blank = filler(model, batch, removal)
        if blank is not None:
            rest = model(torch.where(kept[part, :, None], x, blank), batch).logits
        else:
            here = kept[part] & batch.mask
            rows, positions = torch.arange(len(batch), device=here.device), left(here)
            rest = model(x[rows[:, None], positions], gathered(batch, rows, positions, here)).logits
        found.append(margins((whole - rest)[:, None], model, batch, wanted)[:, 0])
    margin = torch.cat(found) if found else torch.zeros(0, device=kept.device)
    return at_least_float32(margin)
