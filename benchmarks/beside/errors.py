"""Shapley values to the same error: how far sampling is from the exact values, ours and captum's, and what that takes.

Texts are short enough to be read in all their parts, so the error is that from the truth.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from assay.explainers.shapley import Shapley
from assay.explainers.surrogates import KernelShap
from benchmarks.beside.ours import explained
from benchmarks.beside.plainly import AT_ONCE, Plain
from benchmarks.beside.turns import Text, read
from benchmarks.beside.with_captum import captum_kernel_shap, captum_shapley

WORDS, TEXTS, DRAWS = 12, 4, 2
ASKED, LADDER = (128, 256, 512), (128, 256, 512, 1024, 2048, 4096)
HEAD = (
    "| Shapley values by | reads | error | ms | captum: reads for that error | its error | ms | captum / ours |",
    "|---|---|---|---|---|---|---|---|",
)
Way = Callable[[int, int], Tensor]  # reads and a seed in, a score for each word of each text out


@dataclass(frozen=True)
class Point:
    """The mean error after so many reads, in parts of the exact values' length, and milliseconds for one text."""

    reads: int
    error: float
    milliseconds: float


def table(folder: Path) -> list[str]:
    """For each way to sample, what ours leaves after some reads, and what captum needs to leave no more."""
    texts = [Text(_begun(text.words), text.label, []) for text in read(folder)[1 : TEXTS + 1]]
    plain = Plain(folder)
    truth = torch.tensor(explained(Shapley(exact=WORDS, removal="zero"))(folder)(texts))

    def mine(made: Callable[..., KernelShap | Shapley], reads: int, seed: int) -> Tensor:
        return torch.tensor(explained(made(samples=reads, removal="zero", seed=seed))(folder)(texts))

    def theirs(method: Callable[[Callable[[Tensor], Tensor], Tensor, int], Tensor], seed: int) -> Tensor:
        torch.manual_seed(seed)
        return torch.stack([method(plain.of(text.label), plain.words([text]), AT_ONCE) for text in texts])

    def kernel(reads: int, seed: int) -> Tensor:
        return theirs(partial(captum_kernel_shap, samples=reads), seed)

    def orders(reads: int, seed: int) -> Tensor:
        return theirs(partial(captum_shapley, orders=reads // WORDS), seed)

    ways: dict[str, tuple[Way, Way]] = {
        "KernelSHAP": (partial(mine, KernelShap), kernel),
        "random orders": (partial(mine, partial(Shapley, exact=0)), orders),
    }
    return [*HEAD, *(line for name, pair in ways.items() for line in _lines(name, pair, truth))]


def reached(ladder: Sequence[Point], error: float) -> Point | None:
    """The first that leaves no more than this error."""
    return next((point for point in ladder if point.error <= error), None)


def _begun(sentence: str) -> str:
    """The first words and marks of a sentence."""
    return " ".join(re.findall(r"\w+|[^\w\s]", sentence)[:WORDS])


def _lines(name: str, ways: tuple[Way, Way], truth: Tensor) -> Iterator[str]:
    mine, theirs = ways
    ladder = [_point(theirs, reads, truth) for reads in LADDER]
    for reads in ASKED:
        ours = _point(mine, reads, truth)
        other = reached(ladder, ours.error)
        found = other or ladder[-1]
        more = "" if other else "over "
        yield (
            f"| {name} | {reads:,} | {ours.error:.3f} | {ours.milliseconds:,.0f} | {more}{found.reads:,} | "
            f"{found.error:.3f} | {found.milliseconds:,.0f} | {more}{found.milliseconds / ours.milliseconds:.1f}× |"
        )


def _point(way: Way, reads: int, truth: Tensor) -> Point:
    """Over some draws; the fastest counts."""
    errors, times = [], []
    for seed in range(DRAWS):
        started = time.process_time()
        scores = way(reads, seed)
        times.append(time.process_time() - started)
        errors.append(((scores - truth).norm(dim=1) / truth.norm(dim=1)).mean())
    return Point(reads, float(torch.stack(errors).mean()), 1000 * min(times) / len(truth))
