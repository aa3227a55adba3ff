"""The stacked layout of texts and their β parts, and generic rules of decomposition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from assay.errors import AssayError

Rows = Shaped[Tensor, "R *N"]
Part = Float[Tensor, "S k *N"]
Seen = Float[Tensor, "S K k *N"]
Unary = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Blocks:
    """The layout of stacked rows: texts, then for each set of words their β parts, then contexts.

    All blocks have the same rows in the same order, so that whatever a model makes of rows (sentences, steps) can be
    told apart again. What is not relevant is γ, the text's value without β. With `samples` there are that many versions
    of each text and set, in which the context is another; they stand in for the two contexts of Shapley's formula.
    """

    sets: int
    samples: int = 0
    outer: frozenset[int] = frozenset()  # the identities of biases that are nobody's, not even the text's

    @property
    def count(self) -> int:
        return 1 + self.sets * (1 + self.samples)

    @contextmanager
    def within(self) -> Iterator[None]:
        """Context manager, for this thread alone: stacked rows have this layout."""
        token = BLOCKS.set(self)
        try:
            yield
        finally:
            BLOCKS.reset(token)

    def cut(self, rows: Rows) -> tuple[Any, Any, Any]:
        """Views of the rows of texts [k, …], of parts [S, k, …], and of contexts [S, K, k, …], if any."""
        if not rows.dim() or len(rows) % self.count:
            raise AssayError("Contextual decomposition cannot tell whose the rows of a layer are.")
        shape = (len(rows) // self.count, *rows.shape[1:])
        apart = rows.view(self.count, *shape)
        seen = apart[1 + self.sets :].view(self.sets, self.samples, *shape) if self.samples else None
        return apart[0], apart[1 : 1 + self.sets], seen

    def shared(self, rows: Rows, total: Rows) -> Rows:
        """The sum of rows and a constant, split in proportion |β| : |β| + |γ| (Singh et al., 2019)."""
        whole, part, _ = self.cut(rows)
        _, divided, _ = self.cut(total)
        divided.sub_(part).mul_(share(part, whole - part)).add_(part)
        return total

    def activated(self, function: Unary, rows: Rows, alone: bool) -> Rows:
        """An activation with f(0) = 0; `alone`: f of β without its context (Singh et al., 2019)."""
        values = function(rows).clone()
        whole, part, seen = self.cut(rows)
        if alone and seen is None:
            return values  # of a part by itself
        self.cut(values)[1].copy_(gain(function, part, part, whole, seen))
        return values

    def held(self, rows: Rows) -> Rows:
        """Undivided: the text's values in place of its parts."""
        values = rows.clone()
        whole, part, _ = self.cut(values)
        part.copy_(whole.expand_as(part))
        return values

    def foreign(self, rows: Rows) -> Rows:
        """Values that belong to no part: β is 0."""
        values = rows.clone()
        self.cut(values)[1].zero_()
        return values


BLOCKS: ContextVar[Blocks] = ContextVar("blocks")


def share(relevant: Tensor, rest: Tensor) -> Tensor:
    """|β| / (|β| + |γ|); 0 where both are 0."""
    size = relevant.abs()
    total = size + rest.abs()
    return torch.where(total > 0, size / torch.where(total > 0, total, 1.0), 0.0)


def gain(function: Unary, part: Part, alone: Part, whole: Tensor, seen: Seen | None) -> Part:
    """A part's contribution to an activation: the mean of f(h) − f(h − β) over contexts h.

    These are no context at all and the text, Shapley's formula for two (Murdoch et al., 2018), or else the versions of
    the text (Jin et al., 2020).
    """
    if seen is not None:
        return (function(seen) - function(seen - part[:, None])).mean(1)
    return (function(alone) - function(alone - part) + function(whole) - function(whole - part)) / 2
