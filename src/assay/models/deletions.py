"""What a pooled model answers when a token is deleted and the rest is read again, for each token.

Where states depend on all tokens through a recurrence, most of the work is shared: without token i only the forward
states behind i and the backward states before i are new. One pass over the text carries, for every i at once, the
state of the text without i; the input projections are computed once. Where states do not depend on other tokens at
all, nothing needs to be read again.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from assay.models.attention import softmax
from assay.models.classifier import Classifier
from assay.models.encoders import Average, Recurrent, mirrored, reordered
from assay.types import Batch


def shares_work(model: object) -> bool:
    """Whether `deletion_logits` can answer for this model."""
    return isinstance(model, Classifier) and isinstance(model.encoder, Recurrent | Average)


@torch.no_grad()
def deletion_logits(model: Classifier, x: Float[Tensor, "B T D"], batch: Batch) -> Float[Tensor, "B T C"]:
    """The logits of each text without its t-th token; without any token left, those of the zero context."""
    if isinstance(model.encoder, Average):
        states = model.states(x, batch)
        scores = model.alignment(states)[:, None].expand(-1, x.shape[1], -1)
        values = model.decoder(states)[:, None]
    else:
        scores, values = _recurrent(model, x, batch)
    kept = batch.mask[:, None] & ~torch.eye(x.shape[1], dtype=torch.bool, device=x.device)
    weights = softmax(scores, kept)
    logits = (weights[:, :, None] @ values).squeeze(2)
    return torch.where(kept.any(-1, keepdim=True), logits, model.decoder.bias)


def _recurrent(
    model: Classifier, x: Float[Tensor, "B T D"], batch: Batch
) -> tuple[Float[Tensor, "B T T"], Float[Tensor, "B T T C"]]:
    """The attention score and the logits of each token (last T) in the text without another (first T)."""
    mask = batch.mask
    if model.architecture.markers:
        x, mask = model.surrounded(x, mask)
    states = model.encoder(x, mask)
    places = torch.arange(x.shape[1], device=x.device)
    order, rows = mirrored(mask), torch.arange(len(x), device=x.device)
    ahead = _one_way(model, x, states, reverse=False)
    behind = _one_way(model, reordered(x, order), reordered(states, order), reverse=True)
    behind = behind[rows[:, None, None], order[:, :, None], order[:, None]]  # from places turned around to true ones
    later = (places > places[:, None])[..., None]
    answers = torch.where(later, ahead, behind)
    if model.architecture.markers:
        answers = answers[:, 1:-1, 1:-1]
    return answers[..., 0], answers[..., 1:]


def _one_way(
    model: Classifier, x: Float[Tensor, "B S D"], states: Float[Tensor, "B S M"], reverse: bool
) -> Float[Tensor, "B S S A"]:
    """For one direction, score and logits of each later token (axis 2) in the text without an earlier one (axis 1)."""
    assert isinstance(model.encoder, Recurrent)
    network = model.encoder.behind if reverse else model.encoder.ahead
    project, recur = (
        (getattr(network, f"weight_{part}_l0"), getattr(network, f"bias_{part}_l0")) for part in ("ih", "hh")
    )
    step = _lstm_step if isinstance(network, nn.LSTM) else _gru_step
    rows, tokens, half = len(x), x.shape[1], network.hidden_size
    inputs = nn.functional.linear(x, *project)
    carried = x.new_zeros(rows, tokens + 1, half * (2 if isinstance(network, nn.LSTM) else 1))
    answers = x.new_zeros(rows, tokens, tokens, 1 + model.decoder.out_features)
    own = slice(half, None) if reverse else slice(None, half)
    maps = (model.alignment.project, model.decoder)
    weights = [layer.weight[:, own] for layer in maps]
    others = [layer(_without(states, own)) for layer in maps]  # what the other direction adds, the same throughout
    for place in range(tokens):
        # carried[:, j] is the text so far without token j; carried[:, place] is the whole text so far.
        updated = step(inputs[:, place, None], carried[:, : place + 1], *recur)
        carried[:, place + 1] = updated[:, place]
        carried[:, :place] = updated[:, :place]
        read = updated[:, :place, :half]
        aligned, decoded = (
            nn.functional.linear(read, weight).add_(other[:, place, None])
            for weight, other in zip(weights, others, strict=True)
        )
        answers[:, :place, place, 0] = model.alignment.finish(aligned)
        answers[:, :place, place, 1:] = decoded
    return answers


def _without(states: Float[Tensor, "B S M"], part: slice) -> Float[Tensor, "B S M"]:
    emptied = states.clone()
    emptied[..., part] = 0
    return emptied


def _lstm_step(inputs: Tensor, carried: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    hidden, cell = carried.chunk(2, dim=-1)
    gates = nn.functional.linear(hidden, weight, bias).add_(inputs)
    keep, forget, new, out = gates.chunk(4, dim=-1)
    cell = (forget.sigmoid_() * cell).addcmul_(keep.sigmoid_(), new.tanh_())
    return torch.cat([out.sigmoid_() * cell.tanh(), cell], dim=-1)


def _gru_step(inputs: Tensor, carried: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    reset, update, new = inputs.chunk(3, dim=-1)
    from_reset, from_update, from_new = nn.functional.linear(carried, weight, bias).chunk(3, dim=-1)
    new = (new + (reset + from_reset).sigmoid() * from_new).tanh()
    return new + (update + from_update).sigmoid() * (carried - new)
