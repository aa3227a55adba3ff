"""The probabilities of a model when only some tokens of a text are left, or some are replaced by random words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from assay.data.batches import Tokenised, tokenise
from assay.data.examples import Example
from assay.data.text import SPECIAL
from assay.errors import AssayError, unknown
from assay.models import budget
from assay.models.store import Opened
from assay.types import BLANKS, Batch, BlankModel, Embeddings, Mask, Model, StackedModel, TokenIds, Vector

REMOVALS = ("delete", *BLANKS)
"""A removed token is deleted and the rest moves together, or its embedding gives way to a blank one."""


def baseline(model: Model, batch: Batch, name: str) -> Embeddings:
    """The embeddings of a baseline text: the blank of that name at each position."""
    if name not in BLANKS:
        raise unknown("baseline", name, BLANKS)
    if not isinstance(model, BlankModel):
        raise AssayError(f"The model has no table of embeddings to take the baseline {name!r} from.")
    blank = model.blank(name)
    return blank.repeat(1 if batch.subwords is None else batch.subwords.shape[2]).expand(*batch.ids.shape, -1)


def filler(model: Model, batch: Batch, removal: str) -> Vector | None:
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

    They are in float64 if the model is, else in float32. As many versions are a batch as `capacity` allows,
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
    return budget.room(device, "versions of stacks" if stacked else "versions")


def extents(batch: Batch) -> TokenIds:
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


# Words replaced by random words of other texts.


WORDS = 4096
"""Of so many words of a vocabulary, or fewer, all are taken."""


@dataclass(frozen=True)
class Pool:
    """The words of many texts, with multiplicity: their ids, and their subwords where a model reads those."""

    ids: Int[Tensor, " M"]
    subwords: Int[Tensor, "M P"] | None = None

    @classmethod
    def of(cls, rows: Sequence[Tokenised]) -> Pool:
        """All words of these texts."""
        parts = [word[word >= 0] for row in rows if row.subwords is not None for word in row.subwords]
        subwords = pad_sequence(parts, batch_first=True, padding_value=-1) if parts else None
        return cls(torch.cat([torch.zeros(0, dtype=torch.long), *(row.ids for row in rows)]), subwords)

    @classmethod
    def of_vocabulary(cls, model: Opened) -> Pool:
        """Words of the model's vocabulary, evenly spread, `WORDS` to 2 × `WORDS`: for when there are no texts."""
        words = [word for word in model.tokeniser.vocabulary if word not in SPECIAL]
        step = max(1, len(words) // WORDS)
        rows, _ = tokenise([Example(word, 0) for word in words[::step]], model.tokeniser, 100)
        return cls.of(rows)

    def __len__(self) -> int:
        return len(self.ids)

    def to(self, device: torch.device) -> Pool:
        return Pool(self.ids.to(device), None if self.subwords is None else self.subwords.to(device))

    def put(self, batch: Batch, kept: Mask, drawn: TokenIds) -> Batch:
        """The batch with the drawn words in place of those that are not kept."""
        ids = torch.where(kept, batch.ids, self.ids[drawn])
        if batch.subwords is None or self.subwords is None:
            return replace(batch, ids=ids * batch.mask, truth=None)
        width = max(batch.subwords.shape[2], self.subwords.shape[1])
        own, other = (_widened(each, width) for each in (batch.subwords, self.subwords))
        subwords = torch.where(kept[..., None], own, other[drawn]).masked_fill(~batch.mask[..., None], -1)
        used = int((subwords >= 0).sum(-1).max()) if subwords.numel() else 1
        return replace(batch, ids=ids * batch.mask, subwords=subwords[..., : max(1, used)], truth=None)


def _widened(subwords: Int[Tensor, "*N P"], width: int) -> Int[Tensor, "*N W"]:
    return torch.nn.functional.pad(subwords, (0, width - subwords.shape[-1]), value=-1)


@torch.no_grad()
def redrawn_probabilities(
    model: Model,
    batch: Batch,
    pool: Pool,
    example: Int[Tensor, " N"],
    kept: Bool[Tensor, "N T"],
    drawn: Int[Tensor, "N T"],
) -> Float[Tensor, "N C"]:
    """The probabilities of N versions of texts, each of one `example`, with words not `kept` drawn at random.

    `drawn` are indices into the pool. Versions of like length are read together, as many at once as `capacity` allows.
    """

    def read(chosen: Int[Tensor, " n"], width: int) -> Float[Tensor, "n C"]:
        version = pool.put(batch[example[chosen]].narrowed(width), kept[chosen, :width], drawn[chosen, :width])
        return model(model.embed(version), version).probabilities

    lengths = (extents(batch).sum(-1) + query_lengths(batch))[example]
    return read_alike(lengths, batch.lengths[example], capacity(model, kept.device), read)
