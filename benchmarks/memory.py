"""Prints the peak memory, in megabytes, of an audit of as many sentences as the argument says."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import random
import sys
from collections.abc import Callable

from assay.data.examples import Example
from assay.data.text import TextOptions, Tokeniser
from assay.models.recipes import Recipe, initialise
from assay.models.store import Trained
from assay.run.auditing import audited
from assay.run.examination import AuditPlan
from benchmarks.beside.turns import peak_megabytes


def audit(examples: int) -> Callable[[], object]:
    """An audit of so many random sentences, ready to run."""
    draw = random.Random(0)
    words = [f"w{number}" for number in range(16_000)]
    texts = [" ".join(draw.choices(words, k=draw.randint(2, 36))) for _ in range(examples)]
    tokeniser = Tokeniser.fit([" ".join(words)], TextOptions(min_count=1))
    model = Trained(initialise(Recipe(), tokeniser, 2).eval(), tokeniser, ("no", "yes"))
    return lambda: audited(model, [Example(text, place % 2) for place, text in enumerate(texts)], AuditPlan())


def main(examples: int) -> None:
    audit(examples)()
    print(peak_megabytes())


if __name__ == "__main__":
    main(int(sys.argv[1]))
