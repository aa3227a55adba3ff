"""Beam search for a whole batch."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.data.text import PAD, SPECIAL, START, UNKNOWN
from assay.rationales.text.network import FIRST, EncoderDecoder
from assay.rationales.text.pairs import END_ID, LONGEST_TARGET, Sequences

NEVER = [SPECIAL.index(name) for name in (PAD, UNKNOWN, START)]


@torch.no_grad()
def search(
    network: EncoderDecoder, batch: Sequences, beams: int = 1, longest: int = LONGEST_TARGET
) -> tuple[Int[Tensor, "B S"], Float[Tensor, " B"]]:
    """The best sentence of a beam search, with its log-probability; a beam of 1 is greedy.

    The end marker closes a sentence and 0 follows it; one that has not ended after `longest` words is cut. What is
    unknown is never written.
    """
    memory, rows = network.encode(batch), len(batch.source)
    device, words = network.device, network.words + batch.extra
    home = torch.arange(rows, device=device).repeat_interleave(beams)
    memory = memory.chosen(home)
    hidden = memory.begin
    last = torch.full_like(home, FIRST)
    written = torch.zeros(rows * beams, longest, dtype=torch.long, device=device)
    total = torch.full((rows, beams), -torch.inf, device=device, dtype=torch.promote_types(hidden.dtype, torch.float32))
    total[:, 0] = 0.0  # at first all beams are alike, so one goes on
    ended = torch.zeros(rows * beams, dtype=torch.bool, device=device)
    for position in range(longest):
        following, hidden = network.following(memory, last, hidden)
        following[:, NEVER] = -torch.inf
        following.masked_fill_(ended[:, None], -torch.inf)
        following[:, 0].masked_fill_(ended, 0.0)  # an ended sentence goes on with nothing, for free
        scores = (total.reshape(-1, 1) + following).reshape(rows, beams * words)
        total, best = scores.topk(beams, dim=-1)
        origin = (best // words + torch.arange(rows, device=device)[:, None] * beams).reshape(-1)
        last = (best % words).reshape(-1)
        hidden, written, ended = hidden[:, origin], written[origin], ended[origin]
        written[:, position] = last
        ended = ended | (last == END_ID)
        if bool(ended.all()):
            break
    top = torch.arange(rows, device=device) * beams + total.argmax(-1)
    return written[top], total.amax(-1)
