"""Small models and batches that many tests share."""

from __future__ import annotations

from dataclasses import replace

import torch

from assay.models.config import Architecture
from assay.models.network import Network
from assay.models.networks import built
from assay.types import Batch, Query

WORDS = 40

KINDS: dict[str, dict[str, object]] = {
    "lstm": {"encoder": "lstm"},
    "gru": {"encoder": "gru", "alignment": "dot"},
    "cnn": {"encoder": "cnn"},
    "average": {"encoder": "average", "alignment": "dot"},
    "none": {"encoder": "none"},
    "transformer": {"encoder": "transformer"},
    "hierarchical-gru": {"shape": "hierarchical", "encoder": "gru"},
    "hierarchical-none": {"shape": "hierarchical", "encoder": "none", "alignment": "dot"},
    "paired-lstm": {"shape": "paired", "encoder": "lstm"},
    "paired-average": {"shape": "paired", "encoder": "average", "alignment": "dot"},
    "lstm-sparse": {"encoder": "lstm", "projection": "sparsegen(-3)", "concat": True},
    "transformer-sparse": {"encoder": "transformer", "projection": "sparsegen(-3)", "inner": "sparsemax"},
    "structured": {"shape": "structured", "encoder": "average"},
    "spans": {"shape": "spans", "encoder": "average", "alignment": "dot"},
    "aspect": {"shape": "aspect", "encoder": "gru"},
}
"""Models that stand for all: each class of encoder, each shape with and without a recurrence, both alignments, and
weights of which some are exactly 0 (few enough that most words still have scores)."""

MARKED = tuple(name for name in KINDS if not name.startswith("hierarchical"))
"""Those that can have markers around a text."""


def batch(lengths: tuple[int, ...] = (7, 1, 4, 12), seed: int = 0, width: int | None = None) -> Batch:
    """Random texts of these lengths, padded to the longest or to `width`."""
    generator = torch.Generator().manual_seed(seed)
    count = torch.tensor(lengths)
    mask = torch.arange(width or max(lengths)) < count[:, None]
    ids = torch.stack(
        [
            torch.cat([torch.randint(4, WORDS, (n,), generator=generator), torch.zeros(mask.shape[1] - n).long()])
            for n in lengths
        ]
    )
    return Batch(ids, mask, torch.arange(len(lengths)) % 2)


def structured(plain: Batch, seed: int = 1) -> Batch:
    """The batch with sentences of one to four words and a question of one to five words for each text."""
    generator = torch.Generator().manual_seed(seed)
    rows, tokens = plain.ids.shape
    begins = torch.rand(64, rows, generator=generator)[:tokens].T < 0.4  # wider padding draws the same ones
    asked = torch.randint(4, WORDS, (rows, 5), generator=generator)
    count = torch.randint(1, 6, (rows, 1), generator=generator)
    seen = torch.arange(5) < count
    return replace(plain, sentences=begins.long().cumsum(-1), query=Query(asked * seen, seen))


def model(seed: int = 0, classes: int = 2, dtype: torch.dtype = torch.float64, **options: object) -> Network:
    """A small random classifier, sharp enough that its attention is not flat."""
    torch.manual_seed(seed)
    architecture = replace(Architecture(embedding=6, hidden=8, alignment_size=5), **options)  # type: ignore[arg-type]
    network = built(architecture, WORDS, classes).to(dtype).eval()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(2.0)
    return network


def kind(name: str, classes: int = 2, dtype: torch.dtype = torch.float64, markers: bool = False) -> Network:
    """A small model of one of the KINDS."""
    return model(classes=classes, dtype=dtype, markers=markers, **KINDS[name])


def distinct(plain: Batch, seed: int = 2) -> Batch:
    """The batch with other words, of which no text has one twice: nothing chosen among them is a matter of rounding."""
    generator = torch.Generator().manual_seed(seed)
    rows, tokens = plain.ids.shape
    words = torch.stack([torch.randperm(WORDS - 4, generator=generator)[:tokens] for _ in range(rows)]) + 4
    return replace(plain, ids=words * plain.mask)


def texts(lengths: tuple[int, ...] = (7, 1, 4, 12), width: int | None = None) -> Batch:
    """Random texts that every kind of model can read."""
    return structured(batch(lengths, width=width))
