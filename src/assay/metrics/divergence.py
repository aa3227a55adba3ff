"""Distances between distributions over the last axis."""

from __future__ import annotations

import math
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from jaxtyping import Float
from scipy.special import rel_entr

MAX_JSD = math.log(2)
"""The divergence of distributions that share no outcome."""


@runtime_checkable
class Array(Protocol):
    """The common interface of numpy arrays and torch tensors used here."""

    def __sub__(self, other: Any, /) -> Any: ...
    def sum(self, axis: Any, /) -> Any: ...


AnyArray = TypeVar("AnyArray", bound=Array)


def tvd(p: AnyArray, q: AnyArray) -> AnyArray:
    """The total variation distance, half the L1 distance; Jain and Wallace (2019)."""
    return abs(p - q).sum(-1) / 2  # type: ignore[no-any-return]


def jsd(p: Float[np.ndarray, "*B C"], q: Float[np.ndarray, "*B C"]) -> Float[np.ndarray, "*B"]:
    """The Jensen-Shannon divergence in nats, from 0 to MAX_JSD; Lin (1991)."""
    p, q = p.astype(np.float64), q.astype(np.float64)
    total = p + q  # not halved, so that the smallest numbers do not vanish
    terms = rel_entr(2 * p, total) + rel_entr(2 * q, total)
    return np.asarray(np.maximum(terms.sum(-1) / 4, 0))
