"""What a model answers when only some tokens of a text are left: the one way in which anything here removes words."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.errors import AssayError, unknown
from assay.types import BLANKS, Batch, Model, TokenModel

REMOVALS = ("delete", *BLANKS)
"""A removed token is deleted and the rest moves together, or its embedding gives way to a blank one."""

TOKENS = 32_768  # read at once


def baseline(model: Model, batch: Batch, name: str) -> Float[Tensor, "B T D"]:
    """Embeddings of a text that says nothing: the blank of that name at each place."""
    if name not in BLANKS:
        raise unknown("baseline", name, BLANKS)
    if not isinstance(model, TokenModel):
        raise AssayError(f"The model has no table of embeddings to take the baseline {name!r} from.")
    return model.blank(name).expand(*batch.ids.shape, -1)


@torch.no_grad()
def kept_probabilities(
    model: Model, batch: Batch, kept: Bool[Tensor, "B N T"], removal: str = "delete"
) -> Float[Tensor, "B N C"]:
    """The probabilities for N versions of each text, in each of which only the `kept` tokens are left.

    They are in float64 if the model is, else in float32. As many versions are read at once as TOKENS allows, those of
    like length together.
    """
    if removal not in REMOVALS:
        raise unknown("removal", removal, REMOVALS)
    rows, versions, tokens = kept.shape
    kept = (kept & batch.mask[:, None]).reshape(-1, tokens)
    example = torch.arange(rows, device=kept.device).repeat_interleave(versions)
    read = _shorter if removal == "delete" else _blanked
    x = model.embed(batch)
    blank = None if removal == "delete" else baseline(model, batch, removal)[0, 0]
    lengths = kept.sum(-1) if removal == "delete" else batch.lengths[example]
    order = lengths.argsort(stable=True, descending=True)  # the longest first: what fits then fits to the end
    sizes = lengths[order].tolist()
    parts: list[Tensor] = []
    start = 0
    while start < len(order):
        width = max(1, sizes[start])
        chosen = order[start : start + max(1, TOKENS // width)]
        parts.append(read(model, batch[example[chosen]], x[example[chosen]], kept[chosen], width, blank))
        start += len(chosen)
    answers = torch.cat(parts)
    return torch.empty_like(answers).index_copy(0, order, answers).reshape(rows, versions, -1)


def _shorter(
    model: Model, batch: Batch, x: Tensor, kept: Bool[Tensor, "R T"], width: int, blank: Tensor | None
) -> Float[Tensor, "R C"]:
    """Reads the kept tokens alone, moved together."""
    order = (~kept).to(torch.uint8).argsort(stable=True, dim=-1)[:, :width]
    shorter = replace(
        batch,
        ids=batch.ids.gather(1, order),
        mask=kept.gather(1, order),
        truth=None,
        sentences=None if batch.sentences is None else batch.sentences.gather(1, order),
    )
    return model(x.gather(1, order[..., None].expand(-1, -1, x.shape[-1])), shorter).probabilities


def _blanked(
    model: Model, batch: Batch, x: Tensor, kept: Bool[Tensor, "R T"], width: int, blank: Tensor | None
) -> Float[Tensor, "R C"]:
    """Reads the text with a blank in place of each token that is not kept."""
    assert blank is not None
    left = torch.where(kept[..., None], x, blank)[:, :width]
    narrow = replace(
        batch,
        ids=batch.ids[:, :width],
        mask=batch.mask[:, :width],
        truth=None,
        sentences=None if batch.sentences is None else batch.sentences[:, :width],
    )
    return model(left, narrow).probabilities
