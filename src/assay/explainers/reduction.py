"""Input reduction: how few tokens suffice for the decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from assay.errors import AssayError
from assay.explainers.occlusion import removed_probabilities
from assay.models.erasure import gathered, kept_probabilities, left
from assay.stories import Measure, Story
from assay.types import Attribution, Batch, Model

Sets = Bool[Tensor, "B K T"]


@dataclass(frozen=True)
class Reduced:
    """The shortest token sets found for each text; of the K rows the first `count` are filled."""

    kept: Sets
    count: Int[Tensor, " B"]

    @property
    def size(self) -> Int[Tensor, " B"]:
        """The number of tokens of a text's sets."""
        return self.kept[:, 0].sum(-1)


@dataclass(frozen=True)
class InputReduction:
    """The share of the shortest texts with the same decision that contain the token (Feng et al., 2018).

    Tokens are deleted one at a time while the class that the model finds most probable for the whole text stays the
    most probable, down to one token; that class is kept whatever the class to be explained. Of the texts of one length
    the `beam` that make the class most probable are cut further. A text of more than `long` tokens first loses many at
    once. It is a search: the length that it finds is an upper bound on the shortest.
    """

    sparse: ClassVar[bool] = True
    story: ClassVar[Story] = Story(
        measures=(
            Measure("remaining", "share of words that is left"),
            Measure("results", "shortest results"),
        )
    )

    # differs from Feng et al. (2018): the effect of each deletion is computed, not estimated from the gradient; without
    # larger cuts of long texts that would take time with the cube of their length.
    beam: int = 5
    long: int = 30

    def __call__(self, model: Model, batch: Batch, target: Int[Tensor, " B"]) -> Float[Tensor, "B T"]:
        return self.attribute(model, batch, target).scores

    def attribute(self, model: Model, batch: Batch, target: Int[Tensor, " B"]) -> Attribution:
        """The scores, with the share of tokens that remains and the number of shortest texts."""
        found = self.reduce(model, batch)
        scores = found.kept.sum(1) / found.count[:, None]
        return Attribution(scores, {"remaining": found.size / batch.lengths, "results": found.count.float()})

    @torch.no_grad()
    def reduce(self, model: Model, batch: Batch) -> Reduced:
        """All shortest texts with the original decision that the beam search finds."""
        if min(self.beam, self.long) < 1:
            raise AssayError("beam and long of input reduction must be at least 1.")
        decision = model(model.embed(batch), batch).probabilities.argmax(-1)
        kept = torch.zeros(len(batch), self.beam, batch.ids.shape[1], dtype=torch.bool, device=batch.ids.device)
        kept[:, 0] = _halved(model, batch, decision, self.long)
        before, cuts = kept.clone(), torch.zeros_like(kept)  # what was last cut into, and where it could be cut
        going = (kept[:, 0].sum(-1) > 1).nonzero()[:, 0]
        while len(going):
            values = _cut_values(model, batch[going], kept[going], decision[going])
            possible = (values >= 0).any(-1).any(-1)
            going, values = going[possible], values[possible]
            before[going], cuts[going] = kept[going], values >= 0
            kept[going] = _best(kept[going], values)
            going = going[kept[going, 0].sum(-1) > 1]
        return _reduced(before, cuts)


def _halved(model: Model, batch: Batch, decision: Int[Tensor, " B"], long: int) -> Bool[Tensor, "B T"]:
    """A prefilter for long texts: at least `long` tokens with the same decision, or all.

    In turn, half of the tokens are cut, those whose single deletions leave the class most probable; or a quarter where
    that changes the decision, and so on.
    """
    kept = batch.mask.clone()
    going = (batch.lengths > long).nonzero()[:, 0]
    while len(going):
        text, values = kept[going], _cut_values(model, batch[going], kept[going, None], decision[going])[:, 0]
        size = text.sum(-1, keepdim=True)
        halvings = torch.arange(1, int(size.max()).bit_length(), device=size.device)
        least = (size - (size >> halvings).clamp(min=1)).clamp(min=long)[..., None]  # [R, H, 1]
        rank = values.where(text, 2.0).argsort(dim=-1, stable=True).argsort(dim=-1)
        sets = rank[:, None] < least
        same = kept_probabilities(model, batch[going], sets).argmax(-1) == decision[going, None]
        possible, first = same.max(-1)
        going, first = going[possible], first[possible]
        kept[going] = sets[possible, first]
        going = going[kept[going].sum(-1) > long]
    return kept


def _cut_values(model: Model, batch: Batch, kept: Sets, decision: Int[Tensor, " B"]) -> Float[Tensor, "B K T"]:
    """The decision's probability when one more token is removed; -1 if impossible, flipped or a duplicate."""
    example, number = kept.any(-1).nonzero(as_tuple=True)
    sets = kept[example, number]
    positions = left(sets)[:, : int(sets.sum(-1).max())]
    answers = removed_probabilities(model, gathered(batch, example, positions, sets))
    chosen = decision[example, None, None].expand(*positions.shape, 1)
    same = answers.argmax(-1, keepdim=True) == chosen
    values = answers.new_full(kept.shape, -1.0)
    values[example[:, None], number[:, None], positions] = answers.gather(2, chosen).where(same, -1.0).squeeze(2)
    return values.where(kept & ~_repeated(kept), -1.0)


def _best(kept: Sets, values: Float[Tensor, "B K T"]) -> Sets:
    """The beam after the removals of highest value; empty sets where there are fewer."""
    _, beam, tokens = kept.shape
    best, order = (part[:, :beam, None] for part in values.flatten(1).sort(dim=-1, descending=True, stable=True))
    shorter = kept.gather(1, (order // tokens).expand(-1, -1, tokens)).scatter(2, order % tokens, False)
    return shorter & (best >= 0)


def _reduced(before: Sets, cuts: Sets) -> Reduced:
    """The sets after each possible removal."""
    example, number, position = cuts.nonzero(as_tuple=True)
    sets = before[example, number].scatter(1, position[:, None], False)
    whole = (~cuts.any(-1).any(-1)).nonzero()[:, 0]
    example, sets = torch.cat([example, whole]), torch.cat([sets, before[whole, 0]])
    count = example.bincount(minlength=len(cuts))
    each = torch.split(sets[example.argsort(stable=True)], count.tolist())
    return Reduced(pad_sequence(list(each), batch_first=True), count)


def _repeated(kept: Sets) -> Sets:
    """Whether a removal gives the same set as that from an earlier set."""
    beam = kept.shape[1]
    more = kept[:, :, None] & ~kept[:, None]  # in the set (axis 1) and not in the other (axis 2)
    earlier = torch.ones(beam, beam, dtype=torch.bool, device=kept.device).tril(-1)
    alike = (more.sum(-1) == 1) & earlier  # empty sets come last
    return (more & alike[..., None]).any(2)
