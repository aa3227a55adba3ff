"""A small task that is learnt in a moment: a word of one class among words of none."""

from __future__ import annotations

import numpy as np
import torch

from assay.data.batches import Tokenised
from assay.influence.training_run import TrainingRun
from assay.models.config import Training
from tests import builders

SIGNS = 8  # words of each class, from the first ordinary one on


def rows(count: int, seed: int = 0) -> list[Tokenised]:
    """Texts of 4 to 8 words, one of which decides."""
    random = np.random.default_rng(seed)
    made = []
    for index in range(count):
        label, length = int(random.integers(2)), int(random.integers(4, 9))
        ids = random.integers(4 + 2 * SIGNS, builders.WORDS, length)
        ids[random.integers(length)] = 4 + SIGNS * label + random.integers(SIGNS)
        spans = torch.stack([torch.arange(length), torch.arange(length) + 1], 1).int()
        made.append(Tokenised(index, torch.from_numpy(ids), spans, torch.zeros(length, dtype=torch.long), label))
    return made


def training_run(given: list[Tokenised], epochs: int = 8, **options: object) -> TrainingRun:
    """A training of a small network on them."""
    network = builders.model(dtype=torch.float32, **{"encoder": "average", **options})
    return TrainingRun(network, given, Training(epochs=epochs, batch_size=20, learning_rate=2e-2), epochs)
