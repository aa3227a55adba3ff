"""The probabilities of a model when only some tokens of a text are left: how all explainers and audits remove words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.errors import AssayError, unknown
from assay.types import BLANKS, Batch, BlankModel, Model, StackedModel

REMOVALS = ("delete", *BLANKS)
"""A removed token is deleted and the rest moves together, or its embedding gives way to a blank one."""

TOKENS = {"cpu": 4096, "cuda": 131_072}  # read at once: small caches want little, and like lengths pad less
POSITIONS = {"cpu": 512, "cuda": 131_072}  # the same for a transformer: it takes no steps that wide batches would share


def baseline(model: Model, batch: Batch, name: str) -> Float[Tensor, "B T D"]:
    """The embeddings of a baseline text: the blank of that name at each position."""
    if name not in BLANKS:
        raise unknown("baseline", name, BLANKS)
    if not isinstance(model, BlankModel):
        raise AssayError(f"The model has no table of embeddings to take the baseline {name!r} from.")
    blank = model.blank(name)
    return blank.repeat(1 if batch.subwords is None else batch.subwords.shape[2]).expand(*batch.ids.shape, -1)


def filler(model: Model, batch: Batch, removal: str) -> Float[Tensor, " D"] | None:
    """The embedding that replaces a removed token, or None where it is deleted."""
    if removal not in REMOVALS:
        raise unknown("removal", removal, REMOVALS)
    return None if removal == "delete" else baseline(model, batch, removal)[0, 0]


def kept_probabilities(
    model: Model, batch: Batch, kept: Bool[Tensor, "B N T"], removal: str = "delete"
) -> Float[Tensor, "B N C"]:
    """The probabilities of N versions of each text, each with only its `kept` tokens left."""
    rows, versions, tokens = kept.shape
    example = torch.arange(rows, device=kept.device).repeat_interleave(versions)
    answers = version_probabilities(model, batch, example, kept.reshape(-1, tokens), removal)
    return answers.reshape(rows, versions, -1)


@torch.no_grad()
def version_probabilities(
    model: Model, batch: Batch, example: Int[Tensor, " N"], kept: Bool[Tensor, "N T"], removal: str = "delete"
) -> Float[Tensor, "N C"]:
    """The probabilities of N versions of texts, each of one `example`, with only the `kept` tokens left.

    They are in float64 if the model is, else in float32. As many versions are a batch as TOKENS or POSITIONS allow,
    those of like length together.
    """
    blank = filler(model, batch, removal)
    kept = kept & batch.mask[example]
    x = model.embed(batch)
    there = kept if blank is None else batch.mask[example]
    lengths = (extents(batch)[example] * there).sum(-1) + query_lengths(batch)[example]

    def read(chosen: Int[Tensor, " n"], width: int) -> Float[Tensor, "n C"]:
        rows = example[chosen]
        if blank is None:
            positions = left(kept[chosen])[:, :width]
            return model(x[rows[:, None], positions], gathered(batch, rows, positions, kept[chosen])).probabilities
        positions = torch.arange(width, device=x.device).expand(len(chosen), -1)
        filled = torch.where(kept[chosen, :width, None], x[rows, :width], blank)
        return model(filled, gathered(batch, rows, positions, batch.mask[rows])).probabilities

    return read_alike(lengths, there.sum(-1), capacity(model, x.device), read)


def read_alike(
    lengths: Int[Tensor, " N"],
    words: Int[Tensor, " N"],
    limit: int,
    read: Callable[[Int[Tensor, " n"], int], Float[Tensor, "n C"]],
) -> Float[Tensor, "N C"]:
    """Evaluates N versions in batches of like length, each of at most `limit` positions.

    `read` is given the numbers of some versions and the most words that one of them has.
    """
    order = lengths.argsort(stable=True, descending=True)  # the longest first: what fits then fits to the end
    sizes, widths = lengths[order].tolist(), words[order].tolist()
    parts: list[Tensor] = []
    start = 0
    while start < len(order):
        stop = start + max(1, limit // max(1, sizes[start]))
        parts.append(read(order[start:stop], max(1, *widths[start:stop])))
        start = stop
    answers = torch.cat(parts)
    return torch.empty_like(answers).index_copy(0, order, answers)


def capacity(model: Model, device: torch.device) -> int:
    """How many tokens (subwords) fit into one batch of the model."""
    stacked = isinstance(model, StackedModel) and model.layers > 0
    return (POSITIONS if stacked else TOKENS).get(device.type, 32_768)


def extents(batch: Batch) -> Int[Tensor, "B T"]:
    """The number of positions of each token: its subwords, or one; 0 on padding."""
    return batch.mask.long() if batch.subwords is None else (batch.subwords >= 0).sum(-1) * batch.mask


def query_lengths(batch: Batch) -> Int[Tensor, " B"]:
    """The number of positions of each text's question, which a transformer reads with every version."""
    if batch.subwords is None or batch.query is None:
        return torch.zeros_like(batch.lengths)
    return batch.query.mask.sum(-1)


def at_most(batch: Batch) -> int:
    """An upper bound on the positions of a batch with padding, known without synchronising the device."""
    subwords = batch.ids if batch.subwords is None else batch.subwords
    return subwords.numel() + (0 if batch.query is None else batch.query.ids.numel())


def left(kept: Bool[Tensor, "N T"]) -> Int[Tensor, "N T"]:
    """The positions of the kept tokens in order, followed by those of the others."""
    return (~kept).to(torch.uint8).argsort(stable=True, dim=-1)


def gathered(
    batch: Batch, example: Int[Tensor, " N"], positions: Int[Tensor, "N W"], kept: Bool[Tensor, "N T"]
) -> Batch:
    """One text for each `example`: its tokens at these positions; tokens that are not kept become padding."""
    rows = example[:, None]
    return replace(
        batch[example],
        ids=batch.ids[rows, positions],
        mask=kept.gather(1, positions),
        truth=None,
        sentences=None if batch.sentences is None else batch.sentences[rows, positions],
        subwords=None if batch.subwords is None else batch.subwords[rows, positions],
    )
