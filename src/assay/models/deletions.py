"""What a pooled model answers when a token is deleted, or gives way to a blank, for each token in turn.

Where states depend on all tokens through a recurrence, most of the work is shared: without token i only the forward
states behind i and the backward states before i are new. One pass over the text carries, for every i at once, the
state of the text without i; the input projections are computed once. Where a state depends on its neighbours at most,
only those within reach of i are computed again.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from assay import costs
from assay.models.attention import softmax
from assay.models.classifier import Classifier
from assay.models.encoders import Average, Convolution, Nothing, Recurrent, mirrored, reordered
from assay.types import Batch


def shares_work(model: object) -> bool:
    """Whether `deletion_logits` can answer for this model."""
    return isinstance(model, Classifier) and isinstance(model.encoder, Recurrent | Convolution | Average | Nothing)


@torch.no_grad()
def deletion_logits(
    model: Classifier, x: Float[Tensor, "B T D"], batch: Batch, blank: Float[Tensor, " D"] | None = None
) -> Float[Tensor, "B T C"]:
    """The logits of each text without its t-th token, or with a blank there; without any token, of the zero context."""
    marked = model.architecture.markers
    seen = model.surrounded(x, batch.mask) if marked else (x, batch.mask)
    again = _recurrent if isinstance(model.encoder, Recurrent) else _windowed
    answers = again(model, *seen, blank)
    if marked:
        answers = answers[:, 1:-1, 1:-1]
    kept = batch.mask[:, None].expand(answers.shape[:-1])
    if blank is None:
        kept = kept & ~torch.eye(x.shape[1], dtype=torch.bool, device=x.device)
    weights = softmax(answers[..., 0], kept)
    logits = (weights[:, :, None] @ answers[..., 1:]).squeeze(2)
    return torch.where(kept.any(-1, keepdim=True), logits, model.decoder.bias)


def _read(model: Classifier, states: Float[Tensor, "*B M"]) -> Float[Tensor, "*B A"]:
    """The attention score of each state, then its logits."""
    return torch.cat([model.alignment(states)[..., None], model.decoder(states)], dim=-1)


def _windowed(
    model: Classifier, x: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"], blank: Tensor | None
) -> Float[Tensor, "B S S A"]:
    """What is read of each token (last S) in the text without another (first S): new only within reach of that one."""
    reach = max(model.encoder.widths) // 2 if isinstance(model.encoder, Convolution) else 0
    places = torch.arange(x.shape[1], device=x.device)
    offsets = torch.arange(-2 * reach, 2 * reach + 1, device=x.device)
    if blank is None:
        offsets = offsets[offsets != 0]
    costs.add(forward=len(x) * (1 + len(offsets)))  # the text once, and for each of its tokens so many neighbours
    padded = nn.functional.pad(x * mask[..., None], (0, 0, 2 * reach, 2 * reach))
    around = padded[:, places[:, None] + offsets + 2 * reach]  # [B, S, W, D]
    if blank is not None:
        around[:, :, 2 * reach] = blank
    windows = around.flatten(0, 1)
    new = model.encoder(windows, windows.new_ones(windows.shape[:2], dtype=torch.bool))
    central = slice(reach, len(offsets) - reach)
    base = nn.functional.pad(_read(model, model.encoder(x, mask)), (0, 0, reach, reach))
    answers = base[:, None].repeat(1, len(places), 1, 1)
    changed = _read(model, new[:, central]).reshape(*around.shape[:2], -1, base.shape[-1])
    answers[:, places[:, None], places[:, None] + offsets[central] + reach] = changed
    return answers[:, :, reach : reach + len(places)]


def _recurrent(
    model: Classifier, x: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"], blank: Tensor | None
) -> Float[Tensor, "B S S A"]:
    """What is read of each token (last S) in the text without another (first S): new in one direction."""
    if costs.measuring():  # the text once, and for each of its tokens what stands on one side of it: half the text
        costs.add(forward=len(x) + float(mask.sum()) / 2)
    states = model.encoder(x, mask)
    places = torch.arange(x.shape[1], device=x.device)
    order, rows = mirrored(mask), torch.arange(len(x), device=x.device)
    ahead, filled_ahead = _one_way(model, x, states, blank, reverse=False)
    behind, filled_behind = _one_way(model, reordered(x, order), reordered(states, order), blank, reverse=True)
    behind = behind[rows[:, None, None], order[:, :, None], order[:, None]]  # from places turned around to true ones
    answers = torch.where((places > places[:, None])[..., None], ahead, behind)
    if blank is not None:
        filled = torch.cat([filled_ahead, reordered(filled_behind, order)], dim=-1)
        answers[:, places, places] = _read(model, filled)
    return answers


def _one_way(
    model: Classifier, x: Float[Tensor, "B S D"], states: Float[Tensor, "B S M"], blank: Tensor | None, reverse: bool
) -> tuple[Float[Tensor, "B S S A"], Float[Tensor, "B S H"]]:
    """For one direction, what is read of each later token (axis 2) in the text without an earlier one (axis 1).

    Beside it, the state at each token in the text that has a blank there, if there is one.
    """
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
    filled = x.new_zeros(rows, tokens, half)
    instead = None if blank is None else nn.functional.linear(blank, *project)
    own = slice(half, None) if reverse else slice(None, half)
    maps = (model.alignment.project, model.decoder)
    weights = [layer.weight[:, own] for layer in maps]
    others = [layer(_without(states, own)) for layer in maps]  # what the other direction adds, the same throughout
    for place in range(tokens):
        # carried[:, j] is the text so far without token j; carried[:, place] is the whole text so far.
        updated = step(inputs[:, place, None], carried[:, : place + 1], *recur)
        carried[:, place + 1] = updated[:, place]
        carried[:, :place] = updated[:, :place]
        if instead is not None:
            carried[:, place] = step(instead, carried[:, place], *recur)
            filled[:, place] = carried[:, place, :half]
        read = updated[:, :place, :half]
        aligned, decoded = (
            nn.functional.linear(read, weight).add_(other[:, place, None])
            for weight, other in zip(weights, others, strict=True)
        )
        answers[:, :place, place, 0] = model.alignment.finish(aligned)
        answers[:, :place, place, 1:] = decoded
    return answers, filled


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
