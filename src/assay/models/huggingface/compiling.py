"""A transformer whose forward pass torch compiles."""

from __future__ import annotations

from functools import wraps
from typing import Any

import torch
from torch import nn

MARK = "_compiled_by_assay"


def compiled(inner: nn.Module, backend: str = "inductor") -> None:
    """Has the model compiled when it is first read; where its attention is watched or edited, it is read as it stands.

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
    """Whether it is compiled, and so always read as a whole."""
    return hasattr(type(inner), MARK)
