"""Explanations by search: input reduction and counterfactual word swaps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from assay.errors import AssayError
from assay.explainers.needs import Detailed, Target, demand, no_table
from assay.explainers.occlusion import removed_probabilities
from assay.models import budget
from assay.models.erasure import gathered, kept_probabilities, left
from assay.stories import Measure, Story
from assay.types import Attribution, Batch, Model, TokenModel, at_least_float32

Examples = Int[Tensor, " N"]
Texts = Int[Tensor, "N T"]

# Input reduction: how few tokens suffice for the decision.


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
class InputReduction(Detailed):
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

    def explain(self, model: Model, batch: Batch, target: Target) -> Attribution:
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


# Counterfactual explanations: the smallest word swaps that change the decision.


GAINS = 1 << 24  # of a word at a position, held at once


@dataclass(frozen=True)
class Flips:
    """The nearest texts found with another decision; of the K rows per example the first `count` are filled.

    `swapped` marks the positions with another word, `probability` is that of the original class. Those that
    leave this class furthest behind come first.
    """

    ids: Int[Tensor, "B K T"]
    swapped: Bool[Tensor, "B K T"]
    probability: Float[Tensor, "B K"]
    count: Int[Tensor, " B"]

    @property
    def swaps(self) -> Float[Tensor, " B"]:
        """The number of swapped words, or nan where no text was found."""
        return self.swapped[:, 0].sum(-1).float().where(self.count > 0, torch.nan)


@dataclass(frozen=True)
class Counterfactual(Detailed):
    """The share of the smallest word swaps that flip the decision and change the token (Ebrahimi et al., 2018).

    HotFlip: the gradient of the class's margin over the next one estimates the effect of each word at each position.
    For each of `beam` texts the `candidates` most promising swaps are read, and the best one at each of as many
    positions; the texts with the smallest margin stay in the beam, up to `swaps`. Every flip is one that the model
    really makes, but it is a search: the number of swaps is an upper bound on the smallest. Nothing need be swapped
    where the decision is another from the start.
    """

    sparse: ClassVar[bool] = True
    story: ClassVar[Story] = Story(
        measures=(
            Measure("swaps", "words swapped until the decision changes, in texts where it does"),
            Measure("flipped", "texts whose decision changes (share)"),
        )
    )

    swaps: int = 3
    beam: int = 5
    candidates: int = 20

    def unfit(self, model: Model) -> str | None:
        return no_table(model)

    def explain(self, model: Model, batch: Batch, target: Target) -> Attribution:
        """The scores, with whether the decision was flipped, and the number of swaps."""
        found = self.find(model, batch, target)
        scores = found.swapped.sum(1) / found.count.clamp(min=1)[:, None]
        return Attribution(scores, {"swaps": found.swaps, "flipped": (found.count > 0).float()})

    def find(self, model: Model, batch: Batch, target: Target) -> Flips:
        """The smallest flips found by beam search."""
        demand(self.unfit(model))
        if min(self.swaps, self.beam, self.candidates) < 1:
            raise AssayError("swaps, beam and candidates of counterfactuals must be at least 1.")
        example, texts = torch.arange(len(batch), device=batch.ids.device), batch.ids
        logits = _read(model, batch)
        turned = _lead(logits, target) < 0
        flips = [(example[turned], texts[turned], logits[turned])]
        for _ in range(self.swaps):
            going = ~turned[example]
            example, texts = self._neighbours(cast(TokenModel, model), batch, target, example[going], texts[going])
            if not len(example):
                break
            logits = _read(model, _with(batch, example, texts))
            lead = _lead(logits, target[example])
            flips.append((example[lead < 0], texts[lead < 0], logits[lead < 0]))
            turned = turned.index_fill(0, example[lead < 0], True)
            order, rank = _ranked(example, lead)
            followed = order[rank < self.beam]
            example, texts = example[followed], texts[followed]
        return _together(batch, target, *(torch.cat(part) for part in zip(*flips, strict=True)))

    def _neighbours(
        self, model: TokenModel, batch: Batch, target: Target, example: Examples, texts: Texts
    ) -> tuple[Int[Tensor, " M"], Int[Tensor, "M T"]]:
        """The most promising texts with one more swap, without duplicates."""
        table = at_least_float32(model.vectors.detach())
        at_once = max(1, min(_rows(texts), GAINS // (texts.shape[1] * len(table))))
        found = [torch.cat([example[:0, None], texts[:0]], dim=1)]
        for start in range(0, len(example), at_once):
            rows, old = example[start : start + at_once], texts[start : start + at_once]
            x, gradient = _lead_gradient(model, _with(batch, rows, old), target[rows])
            gains = (gradient * x).sum(-1, keepdim=True) - gradient @ table.T  # [n, T, V]
            gains[..., : model.ordinary] = -torch.inf
            gains.scatter_(2, old[..., None], -torch.inf)
            gains.masked_fill_(~(batch.mask[rows] & (old == batch.ids[rows]))[..., None], -torch.inf)  # once a position
            best, position, word = _promising(gains, self.candidates)
            new = old[:, None].repeat(1, best.shape[1], 1).scatter(2, position[..., None], word[..., None])
            real = best > -torch.inf
            found.append(torch.cat([rows[:, None].expand_as(real)[real][:, None], new[real]], dim=1))
        each: Tensor = torch.unique(torch.cat(found), dim=0)
        return each[:, 0], each[:, 1:]


def _promising(
    gains: Float[Tensor, "N T V"], candidates: int
) -> tuple[Float[Tensor, "N S"], Int[Tensor, "N S"], Int[Tensor, "N S"]]:
    """The highest estimated gains, with position and word: the best overall, and the best word per position."""
    # differs from Ebrahimi et al. (2018): the highest gains alone are often those of many words at one position.
    overall, order = gains.flatten(1).topk(min(candidates, gains[0].numel()))
    each, word = gains.max(-1)
    highest, position = each.topk(min(candidates, each.shape[1]))
    words = gains.shape[2]
    return (
        torch.cat([overall, highest], dim=1),
        torch.cat([order // words, position], dim=1),
        torch.cat([order % words, word.gather(1, position)], dim=1),
    )


def _lead_gradient(model: Model, batch: Batch, target: Target) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B T D"]]:
    """The embeddings, and the gradient of the class's margin with respect to them."""
    # cuDNN's recurrent kernels refuse a backward pass outside training mode.
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        x = model.embed(batch).detach().requires_grad_()
        (gradient,) = torch.autograd.grad(_lead(model(x, batch).logits, target).sum(), x)
    return at_least_float32(x.detach()), at_least_float32(gradient)


def _lead(logits: Float[Tensor, "N C"], target: Examples) -> Float[Tensor, " N"]:
    """The margin: the class's logit minus the highest other one."""
    chosen = target[:, None]
    return logits.gather(1, chosen).squeeze(1) - logits.scatter(1, chosen, -torch.inf).amax(-1)


@torch.no_grad()
def _read(model: Model, batch: Batch) -> Float[Tensor, "B C"]:
    """The logits, in batches that fit into memory."""
    chunks = [batch[start : start + _rows(batch.ids)] for start in range(0, len(batch), _rows(batch.ids))]
    return torch.cat([at_least_float32(model(model.embed(chunk), chunk).logits) for chunk in chunks])


def _rows(texts: Texts) -> int:
    return budget.room(texts.device, "activations", texts.shape[1])


def _with(batch: Batch, example: Examples, texts: Texts) -> Batch:
    """The examples with other words."""
    return replace(batch[example], ids=texts, truth=None)


def _ranked(example: Examples, values: Float[Tensor, " N"]) -> tuple[Examples, Examples]:
    """The order by example and value, and the rank of each among those of its example."""
    order = values.argsort(stable=True)
    order = order[example[order].argsort(stable=True)]
    counts = example.bincount()
    positions = torch.arange(len(example), device=example.device)
    return order, positions - (counts.cumsum(0) - counts)[example[order]]


def _together(batch: Batch, target: Target, example: Examples, texts: Texts, logits: Float[Tensor, "N C"]) -> Flips:
    """The flips of each example as rows, the smallest margin first."""
    count = example.bincount(minlength=len(batch))
    most = max(1, int(count.max()))
    order, rank = _ranked(example, _lead(logits, target[example]))
    row = example[order]
    ids = batch.ids[:, None].repeat(1, most, 1).index_put((row, rank), texts[order])
    left = logits.softmax(-1)[order].gather(1, target[row, None]).squeeze(1)
    probability = logits.new_full((len(batch), most), torch.nan).index_put((row, rank), left)
    return Flips(ids, ids != batch.ids[:, None], probability, count)
