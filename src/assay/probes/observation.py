"""Attention statistics of every head over many sentences, reduced to what the probes need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.data.batches import Tokenised, by_tokens, collate
from assay.models import budget
from assay.models.hf_body import Body
from assay.progress import bar


@dataclass(frozen=True)
class Observed:
    """The words of all sentences one after another: N of them, seen by K = L × H heads, the lowest layer first.

    `most` is the position in the sentence of the other word that a word attends to most, -1 where it attends to none;
    `received` is what a word is given by all words of the sentence; `between` is what the words of each of M pairs
    give each other, the first direction of all heads and then the second.
    """

    most: Int[np.ndarray, "N K"]
    received: Float[np.ndarray, "N K"]
    between: Float[np.ndarray, "M F"]
    layers: int


def maps(
    network: Body, rows: Sequence[Tokenised], title: str
) -> Iterator[tuple[np.ndarray, Float[Tensor, "B L H T T"]]]:
    """The positions of some rows and their attention between words, batch by batch, with a progress bar."""
    device = next(network.inner.parameters()).device
    heads = network.layers * int(network.inner.config.num_attention_heads)
    cells = budget.room(device, "attention maps", heads)
    lengths = np.array([_length(row) ** 2 for row in rows], dtype=np.int64)
    with bar() as shown:
        task = shown.add_task(title, total=len(rows))
        for group in by_tokens(lengths, cells):
            yield group, network.maps(collate([rows[index] for index in group]).to(device))
            shown.advance(task, len(group))


def _length(row: Tokenised) -> int:
    return len(row.ids) if row.subwords is None else int((row.subwords >= 0).sum())


def observe(
    network: Body, rows: Sequence[Tokenised], pairs: Int[np.ndarray, "M 3"] | None = None, title: str = "Sentences"
) -> Observed:
    """Attention statistics of the rows; a pair is a row's number and the positions of two of its words."""
    heads = network.layers * int(network.inner.config.num_attention_heads)
    asked = np.zeros((0, 3), dtype=np.int64) if pairs is None else pairs
    first = starts(rows)
    total = sum(len(row.ids) for row in rows)
    most = np.full((total, heads), -1, dtype=np.int16)
    received = np.zeros((total, heads), dtype=np.float32)
    between = np.zeros((len(asked), 2 * heads), dtype=np.float32)
    for group, seen in maps(network, rows, title):
        positions = np.concatenate([first[row] + np.arange(len(rows[row].ids)) for row in group])
        real = torch.cat([torch.arange(len(rows[row].ids)) + seen.shape[-1] * at for at, row in enumerate(group)])
        most[positions] = _by_word(attended_most(seen), real)
        received[positions] = _by_word(seen.sum(-2), real)
        wanted = np.isin(asked[:, 0], group)
        between[wanted] = _between(seen, group, asked[wanted])
    return Observed(most, received, between, network.layers)


def starts(rows: Sequence[Tokenised]) -> Int[np.ndarray, " R"]:
    """The index of each row's first word in the concatenation of all rows."""
    lengths = np.array([0, *(len(row.ids) for row in rows)], dtype=np.int64)
    return lengths.cumsum()[:-1]


def attended_most(seen: Float[Tensor, "B L H T T"]) -> Int[Tensor, "B L H T"]:
    """The position of the other word that each word attends to most, -1 where it attends to no other."""
    itself = torch.eye(seen.shape[-1], dtype=torch.bool, device=seen.device)
    weight, position = seen.masked_fill(itself, 0).max(-1)
    return position.where(weight > 0, -1)


def _by_word(values: Tensor, real: Int[Tensor, " n"]) -> np.ndarray:
    """The values [B, L, H, T] of real words as [N, K], all heads side by side."""
    flat = values.permute(0, 3, 1, 2).flatten(0, 1).flatten(1)
    return flat.cpu()[real].numpy()


def _between(
    seen: Float[Tensor, "B L H T T"], group: np.ndarray, pairs: Int[np.ndarray, "m 3"]
) -> Float[np.ndarray, "m F"]:
    where = {int(row): at for at, row in enumerate(group)}
    row = torch.tensor([where[int(each)] for each in pairs[:, 0]], dtype=torch.long, device=seen.device)
    one, other = (torch.from_numpy(pairs[:, side]).to(seen.device) for side in (1, 2))
    there, back = (seen[row, :, :, a, b].flatten(1) for a, b in ((one, other), (other, one)))
    return torch.cat([there, back], dim=1).cpu().numpy()
