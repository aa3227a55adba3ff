"""What each audit of models found, in a sentence or two."""

from __future__ import annotations

from collections.abc import Callable

from assay.records import Record
from assay.report.compared import four, hidden, levels, spreads

ANSWERS: dict[str, Callable[[Record], str | None]] = {
    "dispersion": spreads.concentrated,
    "sparsity": spreads.trends,
    "word_level": levels.words,
    "frozen_uniform": four.uniform,
    "seed_variance": four.seeds,
    "guide": four.guide,
    "trained_adversary": four.adversary,
    "deception": hidden.deceived,
}
