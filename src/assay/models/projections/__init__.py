"""Projections of attention scores onto the simplex over real items, dense or sparse."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch

from assay.errors import AssayError, unknown
from assay.models.projections.families import Family
from assay.models.projections.tsallis import Mask, Scores, tsallis

Projection = Callable[[Scores, Mask], Scores]
"""Takes scores and the mask of real items; returns weights that sum to one over them, and zeros where there is none."""

WRITTEN = re.compile(r"\s*([a-z]+)\s*(?:\(([^()]*)\))?\s*")


def softmax(scores: Scores, mask: Mask) -> Scores:
    """exp(z) / Σ exp(z): every real item gets some weight."""
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~mask, lowest).softmax(-1) * mask


def uniform(scores: Scores, mask: Mask) -> Scores:
    """1/N, whatever the scores: untrained attention (Wiegreffe and Pinter, 2019)."""
    shared = scores.masked_fill(mask, 1.0).masked_fill(~mask, 0.0)  # of the scores, so that there is a gradient: none
    return shared / shared.detach().sum(-1, keepdim=True).clamp(min=1)


def sparsemax(scores: Scores, mask: Mask) -> Scores:
    """The Euclidean projection of the scores onto the simplex (Martins and Astudillo, 2016)."""
    return tsallis(scores, mask, 2.0)


@dataclass(frozen=True)
class Sparsegen:
    """argmin ‖p − z‖² − λ‖p‖² on the simplex, which is sparsemax(z / (1 − λ)) (Laha et al., 2018)."""

    strength: float

    def __post_init__(self) -> None:
        if not -math.inf < self.strength < 1:
            raise AssayError(f"The λ of sparsegen must be below 1, got {self.strength:g}.")

    def __call__(self, scores: Scores, mask: Mask) -> Scores:
        return tsallis(scores, mask, 2.0, 1 / (1 - self.strength))


@dataclass(frozen=True)
class Entmax:
    """α-entmax, between softmax (α = 1) and sparsemax (α = 2) (Peters et al., 2019)."""

    # differs from Peters et al. (2019): no α above 2, where the gradient of a weight has no bound as it reaches zero

    alpha: float

    def __post_init__(self) -> None:
        if not 1 <= self.alpha <= 2:
            raise AssayError(f"The α of entmax must be from 1 to 2, got {self.alpha:g}.")

    def __call__(self, scores: Scores, mask: Mask) -> Scores:
        return softmax(scores, mask) if self.alpha == 1 else tsallis(scores, mask, float(self.alpha))


PROJECTIONS: dict[str, Projection] = {"softmax": softmax, "sparsemax": sparsemax, "uniform": uniform}
GRADED: dict[str, Callable[[float], Projection]] = {"entmax": Entmax, "sparsegen": Sparsegen}
"""Those that a number sets, written behind the name."""

EXAMPLES = {"entmax": 1.5, "sparsegen": 0.5}
"""A number for each that it takes."""


def family(project: Projection) -> Family | None:
    """The parametric family of a projection, where it has one; uniform weights are the limit of scores times 0."""
    if isinstance(project, Entmax):
        return Family(project.alpha)
    if isinstance(project, Sparsegen):
        return Family(2.0, 1 / (1 - project.strength))
    plain: dict[Projection, Family] = {softmax: Family(1.0), sparsemax: Family(2.0), uniform: Family(2.0, 0.0)}
    return plain.get(project)


@cache
def projection(text: str) -> Projection:
    """The projection from its text form, as in softmax or sparsegen(0.5)."""
    parts = WRITTEN.fullmatch(text)
    if parts is None or parts[1] not in (*PROJECTIONS, *GRADED):
        raise unknown("projection", text, (*PROJECTIONS, *(f"{name}(number)" for name in GRADED)))
    name, number = parts.groups()
    if name in PROJECTIONS:
        if number is not None:
            raise AssayError(f"The projection {name} takes no number.")
        return PROJECTIONS[name]
    try:
        given = float(number or "")
    except ValueError:
        written = f"{name}({EXAMPLES[name]})"
        raise AssayError(f"The projection {name} needs a number, as in {written}, got {number or ''!r}.") from None
    return GRADED[name](given)
