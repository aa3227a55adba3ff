"""Compiles the forward pass of a transformer with torch.compile."""

from __future__ import annotations

from functools import wraps
from typing import Any

import torch
from torch import nn

MARK = "_compiled_by_assay"


def compiled(inner: nn.Module, backend: str = "inductor") -> None:
    """Compiles the model on its first forward pass; passes that record or edit attention run uncompiled.

    What is compiled belongs to the class, not to the object: a copy whose weights are then changed answers by these.
    """
    kind, usual = type(inner), inner.config._attn_implementation  # type: ignore[union-attr]
    plain: Any = kind.forward
    fast: Any = torch.compile(plain, dynamic=True, backend=backend)

    @wraps(plain)
    def forward(self: Any, *given: Any, **named: Any) -> Any:
        way = fast if self.config._attn_implementation == usual else plain
        return way(self, *given, **named)

    names = {name: getattr(kind, name) for name in ("__module__", "__qualname__", "__doc__")}
    inner.__class__ = type(kind.__name__, (kind,), {**names, "forward": forward, MARK: True})


def is_compiled(inner: nn.Module) -> bool:
    """Whether the model is compiled, and so always computes all positions."""
    return hasattr(type(inner), MARK)
