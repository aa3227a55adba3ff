"""Small models of every kind on a workbench, and texts for them."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from assay.data.batches import collate
from assay.data.text import TextOptions, Tokeniser
from assay.models.store import Opened
from assay.run.api import read
from assay.run.workbench import Workbench
from assay.types import Batch
from tests import builders, pretrained

CLASSES = ("bad", "good", "mixed", "odd", "none")
TEXT = "w1 w2 w3. w4 w5 w6. w7 w8."
QUERY = "w9 w10"


@cache
def tokeniser() -> Tokeniser:
    """All words of the small models: w0 to w34 and the full stop."""
    return Tokeniser.fit([" ".join([*(f"w{n}" for n in range(builders.WORDS - 5)), "."])], TextOptions(min_count=1))


@cache
def pooled(kind: str, classes: int = 2) -> Workbench:
    """One of the kinds of models whose attention pools."""
    return Workbench(Opened(builders.kind(kind, classes), tokeniser(), CLASSES[:classes]), kind)


@cache
def stack(architecture: str, classes: int = 3) -> Workbench:
    """A transformer whose attention is peaked."""
    network = pretrained.pretrained(architecture, classes, initializer_range=0.1)
    return Workbench(Opened(network, pretrained.tokeniser(), CLASSES[:classes]), architecture)


def query(bench: Workbench) -> str | None:
    """A question for models of pairs of ours, which need one."""
    return QUERY if bench.attention == "pooled" and bench.model.network.paired else None


def batch(bench: Workbench, text: str, asked: str | None = None) -> Batch:
    return collate([read(bench.model, text, asked)], len(bench.model.classes))


def softmax(logits: torch.Tensor) -> list[float]:
    found: Any = logits.double().softmax(-1).flatten().tolist()
    return list(found)
