"""A network of any shape from its architecture."""

from __future__ import annotations

from collections.abc import Callable

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
    """An untrained network for so many words and classes."""
    return NETWORKS[architecture.shape](architecture, words, classes)
