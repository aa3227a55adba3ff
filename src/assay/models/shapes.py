"""Constructs a network of any shape from its architecture."""

from __future__ import annotations

from collections.abc import Callable

from assay.errors import AssayError, reason
from assay.models.architecture import Architecture
from assay.models.aspect import Aspect
from assay.models.classifier import Classifier
from assay.models.hierarchical import Hierarchical
from assay.models.network import Network
from assay.models.paired import Paired
from assay.models.spans import Spans
from assay.models.structured import Structured

NETWORKS: dict[str, Callable[[Architecture, int, int], Network]] = {
    "flat": Classifier,
    "hierarchical": Hierarchical,
    "paired": Paired,
    "structured": Structured,
    "spans": Spans,
    "aspect": Aspect,
}


def built(architecture: Architecture, words: int, classes: int) -> Network:
    """An untrained network for a number of words and classes."""
    try:
        return NETWORKS[architecture.shape](architecture, words, classes)
    except (MemoryError, OverflowError, RuntimeError, TypeError) as fault:  # as torch has it, of what is too large
        raise AssayError(
            f"There is no room for a network of these sizes ({reason(fault)}); try smaller ones."
        ) from fault
