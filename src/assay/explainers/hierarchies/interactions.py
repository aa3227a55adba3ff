"""Shapley interaction of two adjacent phrases, among the phrases around them."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.explainers.hierarchies.versions import Versions
from assay.explainers.surrogates.coalitions import every


def joint_gains(
    versions: Versions, example: Int[Tensor, " N"], edges: Int[Tensor, "N E"]
) -> tuple[Float[Tensor, "N K"], Int[Tensor, " N"]]:
    """The summed joint gains of the two middle phrases, over the sets of k phrases around them, for each k.

    A gain is v(S+l+r) − v(S+l) − v(S+r) + v(S) (Chen et al., 2020). The `edges` are where phrases begin, and
    last where the last one ends: of as many on each side of the two; an empty one is none. Also told is how many
    there are around the two.
    """
    at_once = max(1, (1 << 24) // (versions.batch.ids.shape[1] << edges.shape[1] - 1))
    parts = [
        _gains(versions, *each) for each in zip(torch.split(example, at_once), torch.split(edges, at_once), strict=True)
    ]
    gains, counts = zip(*parts, strict=True)
    return torch.cat(gains), torch.cat(counts)


def _gains(
    versions: Versions, example: Int[Tensor, " N"], edges: Int[Tensor, "N E"]
) -> tuple[Float[Tensor, "N K"], Int[Tensor, " N"]]:
    middle = (edges.shape[1] - 1) // 2  # the number of the right one of the two
    there = edges.diff(dim=-1) > 0
    there = torch.cat([there[:, : middle - 1], there[:, middle + 1 :]], dim=-1)  # [N, 2w]
    sets = every(there.shape[1], edges.device)  # [P, 2w]
    possible = ~(sets & ~there[:, None]).any(-1)
    case, number = possible.nonzero(as_tuple=True)
    pairs = every(2, edges.device)[[3, 1, 2, 0]]  # both, left, right, neither
    left, right = (half[:, None].expand(-1, 4, -1) for half in (sets[:, : middle - 1], sets[:, middle - 1 :]))
    present = torch.cat([left, pairs.expand(len(sets), -1, -1), right], dim=-1)  # [P, 4, E - 1]
    present = torch.nn.functional.pad(present, (1, 1))  # before the first edge, and behind the last
    words = torch.arange(versions.batch.ids.shape[1], device=edges.device)
    segment = (edges[:, :, None] <= words).sum(1)  # [N, T]
    kept = present[number].gather(2, segment[case][:, None].expand(-1, 4, -1))  # [M, 4, T]
    worth = versions.worth(example[case].repeat_interleave(4), kept.flatten(0, 1)).reshape(-1, 4)
    together = worth[:, 0] - worth[:, 1] - worth[:, 2] + worth[:, 3]
    gains = together.new_zeros(len(edges), sets.shape[1] + 1)
    gains.index_put_((case, sets.sum(-1)[number]), together, accumulate=True)
    return gains, there.sum(-1)


def shares(players: int, sizes: int) -> Float[Tensor, "N S"]:
    """The Shapley weight s! (n − s − 1)! / n! of sets of s out of n players."""
    table = torch.zeros(players + 1, sizes, dtype=torch.float64)
    for count in range(1, players + 1):
        for size in range(min(count, sizes)):
            table[count, size] = 1 / (count * math.comb(count - 1, size))
    return table
