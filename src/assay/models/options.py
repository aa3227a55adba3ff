"""Training hyperparameters, as plain options that can be compared and stored."""

from __future__ import annotations

import math
from dataclasses import dataclass

from assay.errors import AssayError


@dataclass(frozen=True)
class Training:
    """The defaults are those of Jain and Wallace (2019), with early stopping and no regulariser."""

    epochs: int = 20
    patience: int = 3  # epochs without a better dev score before stopping
    batch_size: int = 32
    learning_rate: float = 1e-3
    decay: float = 1e-5  # L2, on everything but the embeddings
    decay_embeddings: bool = False  # on these, too
    clip: float | None = 5.0  # largest norm of a gradient
    balanced: bool = True  # weigh classes by the inverse of their frequency
    seed: int = 0
    tying: float = 0.0  # δ: states are drawn to the embeddings of their words
    mlm: float = 0.0  # η: states must tell which words were masked
    conicity: float = 0.0  # states are driven away from their common direction
    diversity: float = 0.0  # states are driven away from one another
    penalty: float = 1.0  # of networks that have one: that of rows of attention that are alike, or of many spans
    avoid: tuple[str, ...] = ()  # words that attention is kept away from
    deceive: float = 0.0  # λ: how strongly

    def __post_init__(self) -> None:
        if min(self.epochs, self.patience, self.batch_size) < 1:
            raise AssayError("Epochs, patience and batch size must be at least 1.")
        if not 0 < self.learning_rate < math.inf:
            raise AssayError(f"The learning rate must be above 0, got {self.learning_rate:g}.")
        if not 0 <= self.seed < 2**63:  # torch takes no larger one
            raise AssayError(f"The seed must be from 0 to below 2^63, got {self.seed}.")
        for name in ("tying", "mlm", "conicity", "diversity", "penalty", "deceive"):
            strength = getattr(self, name)
            if not 0 <= strength < math.inf:
                raise AssayError(f"The strength of {name!r} must be at least 0, got {strength:g}.")
        if (self.deceive > 0) != bool(self.avoid):
            raise AssayError("To train attention to deceive, name the words to --avoid and how strongly to --deceive.")
