"""Writes a part of docs/performance.md: each step's cost for one sentence, ours and as a plain loop, on one core."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import platform
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch

from assay import progress
from assay.audits.cases import Case
from assay.audits.equal_predictions import Adversary
from assay.audits.pairwise import Agreement
from assay.audits.permutation import Permutation
from assay.data.batches import by_tokens
from assay.explainers import EXPLAINERS
from assay.metrics.agreement import kendall
from assay.models.config import Architecture
from assay.models.dependence import state_gradient_norms
from assay.models.network import Classifier
from assay.models.textmodel import doubled
from assay.run.examination import TOKENS
from assay.types import Batch
from benchmarks import plain
from benchmarks.memory import audited
from studies.pages import put

PAGE = Path("docs/performance.md")
SENTENCES, WORDS, LOOPED, PRECISE, AUDITED = 1821, 16_175, 16, 8, 400
"""SST's test split and vocabulary; sentences in a plain loop, batches and whole audits read in both precisions."""


@dataclass(frozen=True)
class Step:
    """One step: ours on a batch, and a plain loop over its examples; the wanted and the published milliseconds.

    Where `batched`, what ours is measured against takes whole batches too.
    """

    name: str
    ours: Callable[[Batch], object]
    loop: Callable[[Batch], object]
    wanted: str
    published: str
    batched: bool = False


def sentences() -> list[Batch]:
    """Random sentences with the lengths of SST (mean 19, between 2 and 52), in the batches of an audit."""
    random = np.random.default_rng(0)
    lengths = np.clip(random.gamma(4.2, 19.2 / 4.2, SENTENCES).round().astype(int), 2, 52)
    batches = []
    for group in by_tokens(lengths, TOKENS):
        count = torch.from_numpy(lengths[group])
        mask = torch.arange(int(count.max())) < count[:, None]
        ids = torch.from_numpy(random.integers(4, WORDS, mask.shape)) * mask
        batches.append(Batch(ids, mask, torch.zeros(len(group), dtype=torch.long)))
    return batches


def steps(model: Classifier) -> list[Step]:
    def explained(name: str) -> Callable[[Batch], object]:
        return lambda batch: EXPLAINERS[name](model, batch, batch.labels)

    def compared(batch: Batch) -> object:
        return kendall(*scores(batch), batch.mask.numpy())

    def scores(batch: Batch) -> tuple[np.ndarray, np.ndarray]:
        random = np.random.default_rng(0)
        return random.random(batch.ids.shape), random.random(batch.ids.shape)

    several = Classifier(Architecture(), WORDS, 10).eval()
    return [
        Step("gradient", explained("gradient"), lambda b: plain.gradient(model, b), "", "2.5"),
        Step("leave-one-out", explained("leave_one_out"), lambda b: plain.leave_one_out(model, b), "≤ 4", "18"),
        Step(
            "100 permutations",
            lambda b: Permutation()(Case(model, b, {})),
            lambda b: plain.permutation(model, b),
            "≤ 0.5",
            "12",
        ),
        Step(
            "adversary, exact (loop: search)",
            lambda b: Adversary()(Case(model, b, {})),
            lambda b: plain.adversary(model, b),
            "≤ 0.5",
            "110",
        ),
        Step(
            "adversary, exact (batched search)",
            lambda b: Adversary()(Case(model, b, {})),
            lambda b: plain.searched(model, b),
            "",
            "",
            batched=True,
        ),
        Step(
            "adversary, ten classes (loop: search)",
            lambda b: Adversary()(Case(several, b, {})),
            lambda b: plain.adversary(several, b),
            "≤ 10",
            "",
        ),
        Step(
            "all states' slopes in all words",
            lambda b: state_gradient_norms(model, model.embed(b), b),
            lambda b: plain.dependence(model, b),
            "",
            "",
        ),
        Step("Kendall's τ", compared, lambda b: plain.kendall(*map(torch.from_numpy, scores(b)), b), "≤ 0.1", "5"),
    ]


def milliseconds(run: Callable[[Batch], object], batches: list[Batch]) -> float:
    """Processor time for one sentence; the first batch runs once before, to warm up."""
    run(batches[0])
    start = time.process_time()
    for batch in batches:
        run(batch)
    return 1000 * (time.process_time() - start) / sum(map(len, batches))


def precisions(model: Classifier, batches: list[Batch]) -> list[str]:
    """Lines of a table: explaining in float32 and in float64, as audits do; last, a whole audit."""
    names = ("attention", "gradient", "leave_one_out", "integrated_gradients", "lrp")

    def agreement(network: Classifier, batch: Batch) -> object:
        scores = {name: EXPLAINERS[name](network, batch, batch.labels) for name in names}
        return Agreement()(Case(network, batch, scores))

    wanted = {name: partial(lambda name, n, b: EXPLAINERS[name](n, b, b.labels), name) for name in names}
    double = doubled(model)
    times = {
        name: [milliseconds(partial(run, network), batches) for network in (model, double)]
        for name, run in (wanted | {"these five, and τ of every pair": agreement}).items()
    }
    times["a whole audit: usual explainers, usual audits"] = whole_audits()
    return [
        f"| {name} | {single:.3f} | {twice:.3f} | {twice / single:.2f}× |" for name, (single, twice) in times.items()
    ]


def whole_audits() -> list[float]:
    """Processor milliseconds for one sentence of an audit that explains in float32, and of one as it is."""
    run, found = audited(AUDITED), []
    run()
    for read in (lambda network: network, doubled):
        with patch("assay.run.auditing.doubled", read):
            start = time.process_time()
            run()
        found.append(1000 * (time.process_time() - start) / AUDITED)
    return found


def some(batches: list[Batch]) -> list[Batch]:
    """Sentences of all lengths for the plain loop, which would take too long on all."""
    every = [one for batch in batches for one in plain.singles(batch)]
    return every[:: max(1, len(every) // LOOPED)]


def peak_megabytes(examples: int) -> float:
    """The peak memory of an audit of this many sentences, in a process of its own."""
    answer = subprocess.run(
        [sys.executable, "-m", "benchmarks.memory", str(examples)], capture_output=True, text=True, check=True
    )
    return float(answer.stdout)


def machine() -> str:
    names = [line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]  # noqa: PTH123, SIM115
    processor = names[0] if names else platform.processor() or platform.machine()
    return f"{processor}, one thread; torch {torch.__version__}, Python {platform.python_version()}"


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Classifier(Architecture(), WORDS, 2).eval()
    batches = sentences()
    few = some(batches)
    rows = []
    with progress.bar() as shown:
        task = shown.add_task("measuring", total=len(steps(model)) + 3)
        for step in steps(model):
            ours, loop = milliseconds(step.ours, batches), milliseconds(step.loop, batches if step.batched else few)
            rows.append(
                f"| {step.name} | {ours:.3f} | {loop:.2f} | {loop / ours:.0f}× | {step.wanted} | {step.published} |"
            )
            shown.advance(task)
        doubles = precisions(model, batches[:: max(1, len(batches) // PRECISE)])
        shown.advance(task)
        peaks = []
        for examples in (500, 4000):
            peaks.append(f"{examples:,} sentences: {peak_megabytes(examples):.0f} MB")
            shown.advance(task)
    given = {"machine": machine(), "date": time.strftime("%Y-%m-%d"), "peaks": "; ".join(peaks)}
    put(PAGE, TEXT.format(rows="\n".join(rows), doubles="\n".join(doubles), **given), "plain loops")


TEXT = """Made by `make bench` on {date}: {machine}.

Processor milliseconds for one sentence of the length of SST's (mean 19 words), BiLSTM of the paper's size, in the
batches of an audit. Beside it a plain loop over examples (and tokens, shuffles or optimisation steps) in the same run,
over a sample of the sentences. *Wanted* is the goal we set; *published* is what the released code of Jain and Wallace
(2019) took for the same step on another machine, so compare it with the loop, not with us.

| step | ours, ms | loop, ms | ratio | wanted | published |
|---|---|---|---|---|---|
{rows}

The exact adversary finds the optimum; the search in the loop column finds a lower bound of it. It is our own of 500
steps, sentence by sentence as in the released code; the row *batched search* is the same on whole batches. With ten
classes ours is a lower bound too, a higher one, with an upper bound beside it.

Audits explain networks of ours in float64, so that ranks are not those of rounding ([precision](precision.md)). What
that costs, in the same run; float32 is what audits read before. A product of matrices takes twice as long in float64,
and torch has no fused recurrence for it; a whole audit mostly erases words, which it does in float32:

| what is done | float32, ms | float64, ms | ratio |
|---|---|---|---|
{doubles}

Memory is bounded by tokens, not by examples. Peak of a whole audit (all explainers, all audits), interpreter and
libraries included: {peaks}.
"""

if __name__ == "__main__":
    main()
