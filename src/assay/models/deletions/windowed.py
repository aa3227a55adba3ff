"""Leave-one-out under a convolution: only hidden states within the receptive field are computed again."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from assay.models.deletions.readings import Reading, Text
from assay.models.encoders import Convolution, Encoder


def windowed(reading: Reading, text: Text, blank: Float[Tensor, " D"] | None) -> Float[Tensor, "R S P"]:
    """The attention-weighted mean without each token, or with a blank in its position."""
    rows, tokens = text.mask.shape
    positions, reach = torch.arange(tokens, device=text.x.device), _reach(reading.encoder)
    states, offsets = _near(reading, text, blank)
    score, value = reading.score(states).reshape(rows, tokens, len(offsets)), reading.value(states)
    beside = positions[:, None] + offsets
    near = text.seen[:, beside.clamp(0, tokens - 1)] & (beside >= 0) & (beside < tokens)
    far = text.seen[:, None] & ((positions - positions[:, None]).abs() > reach)
    scores = torch.cat([reading.score(text.states)[:, None].expand(far.shape), score], dim=-1)
    weights = reading.project(scores, torch.cat([far, near], dim=-1))
    again = weights[:, :, None, tokens:] @ value.reshape(*score.shape, value.shape[-1])
    return torch.baddbmm(again.squeeze(2), weights[..., :tokens], reading.value(text.states))


def neighbours(encoder: Encoder, blank: Tensor | None, device: torch.device | None = None) -> Int[Tensor, " W"]:
    """The offsets from a removed token within which hidden states change."""
    reach = _reach(encoder)
    offsets = torch.arange(-2 * reach, 2 * reach + 1, device=device)
    return offsets if blank is not None else offsets[offsets != 0]


def _reach(encoder: Encoder) -> int:
    return max(encoder.widths) // 2 if isinstance(encoder, Convolution) else 0


def _near(reading: Reading, text: Text, blank: Tensor | None) -> tuple[Float[Tensor, "R N M"], Int[Tensor, " W"]]:
    """The hidden states of the W tokens around each removed or blanked one, and their offsets."""
    reach, offsets = _reach(reading.encoder), neighbours(reading.encoder, blank, text.x.device)
    positions = torch.arange(text.x.shape[1], device=text.x.device)
    padded = nn.functional.pad(text.x * text.mask[..., None], (0, 0, 2 * reach, 2 * reach))
    around = padded[:, positions[:, None] + offsets + 2 * reach]  # [R, S, W, D]
    if blank is not None:
        around[:, :, 2 * reach] = blank
    windows = around.flatten(0, 1)
    states = reading.states(windows, windows.new_ones(windows.shape[:2], dtype=torch.bool))
    central = slice(reach, len(offsets) - reach)  # the outer ones stand for what these see
    near = offsets[central]
    return states[:, central].reshape(len(padded), len(positions) * len(near), states.shape[-1]), near
