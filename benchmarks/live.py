"""Prints how long a live change of one weight takes, on a small LSTM and on MiniLM: python -m benchmarks.live."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "2")

import statistics
import time
from collections.abc import Callable

import torch

from assay.data.planted import PLANTED
from assay.data.text import TextOptions, Tokeniser
from assay.intervene.edits import Act
from assay.models.config import Architecture
from assay.models.network import Classifier
from assay.models.store import Opened
from assay.run.workbench import Workbench
from benchmarks import minilm

CLASSES, CHANGES = ("negative", "positive"), 200


def small(longest: int = 1000) -> Opened:
    """An LSTM of the usual size that has learnt nothing: what it answers takes as long."""
    texts = [example.text for example in PLANTED["planted:majority"](0).train]
    tokeniser = Tokeniser.fit([*texts, *minilm.SENTENCES], TextOptions(min_count=1, longest=longest))
    torch.manual_seed(0)
    return Opened(Classifier(Architecture(), len(tokeniser.vocabulary), 2).eval(), tokeniser, CLASSES)


def large() -> Opened:
    """MiniLM: six layers of twelve heads."""
    network, tokeniser = minilm.model()
    return Opened(network, tokeniser, CLASSES)


def dragged(bench: Workbench, text: str) -> Callable[[int], object]:
    """Each call gives one word another weight, as a hand does that drags it."""
    words = len(bench.attend(text, None, Act())["words"])
    return lambda number: bench.attend(text, None, Act("set", {number % words: number / CHANGES}))


def milliseconds(change: Callable[[int], object]) -> list[float]:
    """How long each of many changes takes; the first ones do not count."""
    found = []
    for number in range(CHANGES):
        start = time.perf_counter()
        change(number)
        found.append(1000 * (time.perf_counter() - start))
    return sorted(found[10:])


def main() -> None:
    text = minilm.SENTENCES[0]
    for name, model in (("LSTM", small()), ("MiniLM", large())):
        bench = Workbench(model, name)
        took = milliseconds(dragged(bench, text))
        words, tail = len(bench.attend(text, None, Act())["words"]), took[int(0.95 * len(took))]
        print(
            f"{name}: {words} words, {torch.get_num_threads()} threads, one weight set: "
            f"median {statistics.median(took):.1f} ms, 95th percentile {tail:.1f} ms"
        )


if __name__ == "__main__":
    main()
