"""Interventions on attention: edits, erasure and adversarial attention."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from assay.intervene.edits import OneHot, Permute, Prune, Replace, Within, Without, uniform
from assay.types import Edit

EDITS: dict[str, Callable[[Tensor], Edit]] = {
    "permute": lambda weights: Permute(),
    "uniform": lambda weights: uniform,
    "one_hot": lambda weights: OneHot(weights.argmax(-1)),
    "replace": Replace,
}
"""Each name makes an edit for a batch from one weight a token, [B, T]: a distribution over the real tokens."""

__all__ = ["EDITS", "OneHot", "Permute", "Prune", "Replace", "Within", "Without", "uniform"]
