"""What is audited: the test texts of a corpus, all or a sample of them, by which explainers and audits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

HEADS = ("own", "attention")
EXPLAINERS = (
    *("attention", "attention_x_gradient", "rollout", "value_zeroing", "gradient_norm", "input_x_gradient"),
    *("integrated_gradients", "attnlrp", "leave_one_out", "occlusion", "random"),
)
AUDITS = ("agreement", "permutation", "layers", "adversary", "erasure", "consistency")
EXACT = ("single_weight", "minimal_set")

BOUNDED = (
    *("attention", "attention_x_gradient", "rollout", "chefer", "gradient_norm", "input_x_gradient"),
    *("gradient", "lrp", "attnlrp", "random"),
)
"""Ten that read a text once, however long it is."""

BOUNDED_AUDITS = ("erasure(shuffles=1, masked=False)", "consistency")
"""The same of audits: one random ranking a text is enough where there are so many texts."""


@dataclass(frozen=True)
class Cell:
    """One corpus under some explainers, and the audits of the model with each head."""

    name: str
    corpus: str
    explainers: tuple[str, ...] = EXPLAINERS
    audits: Mapping[str, tuple[str, ...]] = field(
        default_factory=lambda: {"own": AUDITS, "attention": (*AUDITS, *EXACT)}
    )
    limit: int | None = None  # texts that are audited, drawn by the seed; None is all
    dtype: str = "float32"  # in which the trained model is read


CELLS = (
    Cell("snippets", "snippets"),
    Cell("sst", "sst"),
    Cell("imdb", "imdb", limit=500),
    Cell("imdb-whole", "imdb", BOUNDED, {"own": BOUNDED_AUDITS}, dtype="bfloat16"),
)
