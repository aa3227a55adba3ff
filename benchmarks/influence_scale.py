"""How long influence takes on MiniLM, 67,000 training texts by 1,000 queries, and how near projection comes to exact.

Texts: all phrases of the Stanford Sentiment Treebank with a sentiment, as in GLUE's SST-2; queries: its test sentences.
`ASSAY_DATA=… python -m benchmarks.influence_scale --out scale.json`; `--encoder` takes a folder in place of "minilm".
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
import transformers
from scipy.stats import rankdata

from assay.data.batches import tokenise
from assay.data.examples import Example
from assay.data.fetch import needed_copy
from assay.influence.damping import chosen_damping
from assay.influence.dual import DualGaussNewton
from assay.influence.projected import ProjectedGaussNewton
from assay.influence.setting import Setting
from assay.influence.training_run import TrainingRun
from assay.models.config import Training
from assay.models.hf_attention import quiet
from assay.models.hf_finetuning import Answers
from assay.models.hf_loading import located, silent
from assay.models.hf_models import Pretrained, traits
from assay.models.hf_subwords import SubwordOptions, SubwordTokeniser

T = TypeVar("T")
NEUTRAL, LONGEST = 2, 128
TRAINING = Training(epochs=1, batch_size=64, learning_rate=5e-5)
RUNS = (("bfloat16", 128), ("bfloat16", 64), ("float32", 128))
SIZES = (
    *((4096, side, "float32") for side in (32, 64, 128, 384, 2048)),
    *((size, 128, "float32") for size in (1024, 8192)),
    *((size, 384, "float32") for size in (16_384, 32_768)),
    (4096, 128, "bfloat16"),
)


def phrases(split: str, whole: bool) -> list[Example]:
    """The phrases of all trees that are not neutral, each once; or whole sentences only."""
    found: dict[str, int] = {}
    with gzip.open(needed_copy(f"sst/trees_{split}.txt.gz", "sst"), "rt", encoding="utf-8") as trees:
        for tree in trees:
            for text, label, depth in _spans(tree):
                if label != NEUTRAL and (depth == 0 or not whole):
                    found.setdefault(text, int(label > NEUTRAL))
    return [Example(text, label) for text, label in found.items()]


def _spans(tree: str) -> Iterator[tuple[str, int, int]]:
    """The text of each node of a tree, its label and its depth."""
    words: list[str] = []
    opened: list[tuple[int, int]] = []
    parts = iter(tree.replace("(", " ( ").replace(")", " ) ").split())
    for part in parts:
        if part == "(":
            opened.append((int(next(parts)), len(words)))
        elif part == ")":
            label, start = opened.pop()
            yield " ".join(words[start:]), label, len(opened)
        else:
            words.append(part)


def model(encoder: str, device: str) -> tuple[Pretrained, SubwordTokeniser]:
    """The encoder with a new classifier."""
    torch.manual_seed(0)
    with quiet(), silent():
        place = located(encoder)
        inner = transformers.AutoModelForSequenceClassification.from_pretrained(place, num_labels=2)
        tokenizer = transformers.AutoTokenizer.from_pretrained(place)
    made = Pretrained(inner.float().eval(), traits(inner, tokenizer, "minilm"))
    return made.to(device), SubwordTokeniser(tokenizer, SubwordOptions(LONGEST))


def timed(work: Callable[[], T], device: str) -> tuple[T, dict[str, float]]:
    """What comes of it, the seconds, and the peak of the device's memory, or of the process where there is no other."""
    cuda = device.startswith("cuda")
    if cuda:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    found = work()
    if cuda:
        torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peak = torch.cuda.max_memory_allocated() / 2**30 if cuda else kilobytes / 2**20
    return found, {"seconds": round(seconds, 2), "gigabytes": round(peak, 2)}


def likeness(found: np.ndarray, exact: np.ndarray) -> dict[str, float]:
    """The mean over queries of the correlation of two sets of scores, and of their ranks."""
    both = {"pearson": (found, exact), "spearman": (rankdata(found, axis=1), rankdata(exact, axis=1))}
    each = {name: [np.corrcoef(*pair)[0, 1] for pair in zip(*sides, strict=True)] for name, sides in both.items()}
    return {name: round(float(np.mean(values)), 4) for name, values in each.items()}


class Report:
    """Prints each result as it comes, and keeps all in a file."""

    def __init__(self, out: Path | None) -> None:
        self.out, self.rows = out, dict[str, Any]()

    def __call__(self, name: str, **figures: Any) -> None:
        self.rows[name] = figures
        print(f"{name}: " + ", ".join(f"{key} {value}" for key, value in figures.items()), flush=True)
        if self.out is not None:
            self.out.write_text(json.dumps(self.rows, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    options = _options()
    device, report = options.device, Report(options.out)
    (network, tokeniser), cost = timed(lambda: model(options.encoder, device), device)
    texts = phrases("train", whole=False)
    random.Random(0).shuffle(texts)
    (rows, _), reading = timed(lambda: tokenise(texts[: options.train], tokeniser, LONGEST), device)
    queries, _ = tokenise(phrases("test", whole=True)[: options.queries], tokeniser, LONGEST)
    report("texts", train=len(rows), queries=len(queries), loaded=cost["seconds"], tokenised=reading["seconds"])
    training_run = TrainingRun(network, rows, TRAINING, TRAINING.epochs, Answers())
    trained, cost = timed(training_run.learn, device)
    whole = Setting.of(trained, rows, queries, training_run=training_run)
    right = float(np.mean(whole.classes == [row.label for row in queries]))
    report("training", steps=training_run.steps, right=round(right, 3), **cost)
    damping, cost = timed(lambda: options.damping or chosen_damping(whole), device)
    report("damping", damping=damping, **cost)
    for precision, side in RUNS:
        method = ProjectedGaussNewton(side=side, damping=damping, precision=precision, memory=options.memory * 2**30)
        found, cost = timed(lambda method=method: method(whole), device)  # type: ignore[misc]
        finite = bool(np.isfinite(found.scores).all())
        report(f"projected, {precision}, {side}", shape=list(found.scores.shape), finite=finite, **cost, **found.notes)
    compare(some(whole, options.subset, options.asked), damping, options, report)


def some(whole: Setting, train: int, queries: int) -> Setting:
    """The first training texts and queries."""
    rows, asked = whole.train[:train], whole.queries[:queries]
    return Setting(
        whole.network, rows, asked, whole.classes[:queries], whole.target, whole.weights[:train], whole.decay
    )


def compare(part: Setting, damping: float, options: argparse.Namespace, report: Report) -> None:
    """Projections beside the exact dual form, on some of the texts."""
    dual = DualGaussNewton(damping, "plain", leverage=True, memory=options.memory * 2**30)
    exact, cost = timed(lambda: dual(part), options.device)
    report("dual", shape=list(exact.scores.shape), **cost, **exact.notes)
    for size, side, precision in SIZES:
        method = ProjectedGaussNewton(size, side, damping, precision=precision)
        found, cost = timed(lambda method=method: method(part), options.device)  # type: ignore[misc]
        report(f"size {size}, side {side}, {precision}", **likeness(found.scores, exact.scores), **cost)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--damping", type=float, help="in place of one that is chosen from the training")
    sizes = {"train": 67_000, "queries": 1_000, "subset": 4_000, "asked": 100, "memory": 60}
    for name, number in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=number)
    return parser.parse_args()


if __name__ == "__main__":
    main()
