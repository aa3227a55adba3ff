"""Penalties on the number of selected words and on breaks between them."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from assay.errors import unknown
from assay.rationales.play import Play

COUNTS = ("z", "chance")
KINDS = ("text", "batch", "above", "plain")


@dataclass(frozen=True)
class Size:
    """Sparsity: the distance of the share of selected words from the `rate`, of each `text` or of the `batch`.

    `above` costs only what is more than the rate, and `plain` is the share itself. What is counted is the mask `z`, or
    the `chance` of each word to be read at all, of all masks together.
    """

    rate: float = 0.2
    kind: str = "batch"
    of: str = "z"

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise unknown("kind of size", self.kind, KINDS)
        if self.of not in COUNTS:
            raise unknown("count of words", self.of, COUNTS)

    def __call__(self, play: Play) -> Float[Tensor, " B"]:
        counted = play.z if self.of == "z" else play.grouping.expanded(play.drawn.chance)
        lengths = play.batch.lengths
        total = counted.mean(1).sum(-1)
        if self.kind == "batch":
            return ((total.sum() / lengths.sum()) - self.rate).abs().expand(len(lengths))
        share = total / lengths
        if self.kind == "plain":
            return share
        return (share - self.rate).relu() if self.kind == "above" else (share - self.rate).abs()


@dataclass(frozen=True)
class Continuity:
    """The mean of |z_t − z_t−1| over the words of a text (total variation): few and long spans are cheap.

    Of the `chance`, it is the expected number of changes between read and not read (Bastings et al., 2019).
    """

    of: str = "z"

    def __post_init__(self) -> None:
        if self.of not in COUNTS:
            raise unknown("count of words", self.of, COUNTS)

    def __call__(self, play: Play) -> Float[Tensor, " B"]:
        if self.of == "z":
            steps = (play.z[..., 1:] - play.z[..., :-1]).abs()
        else:
            chance, owner = play.grouping.expanded(play.drawn.chance), play.grouping.owner
            here, before = chance[..., 1:], chance[..., :-1]
            steps = (here + before - 2 * here * before) * (owner[:, None, 1:] != owner[:, None, :-1])
        return (steps * play.batch.mask[:, None, 1:]).mean(1).sum(-1) / play.batch.lengths
