"""Traits of an explainer: attributes that a member states where they hold, with defaults for those that state none.

`sparse`: it searches for a few words; most scores are 0, and another precision may lead to another choice.
`class_free`: its scores are the same for every class.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from assay.types import Explainer

F = TypeVar("F", bound=Callable[..., object])


def is_sparse(explainer: Explainer) -> bool:
    return bool(getattr(explainer, "sparse", False))


def is_class_free(explainer: Explainer) -> bool:
    return bool(getattr(explainer, "class_free", False))


def class_free(explainer: F) -> F:
    """A decorator for explainers that are plain functions; a class states `class_free: ClassVar[bool] = True`."""
    explainer.class_free = True  # type: ignore[attr-defined]
    return explainer
