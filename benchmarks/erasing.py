"""Prints what erasing attention costs after the forward pass, beside a plain loop, and the memory of long documents."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch import Tensor

from assay.audits.cases import Case
from assay.audits.minimal_set import MinimalSet
from assay.audits.single_weight import SingleWeight
from assay.data.examples import Example
from assay.data.text import TextOptions, Tokeniser
from assay.explainers.baselines import Random
from assay.intervene.pooled_attention import Pooling, flips, gradient, leave_one_out, ranked, smallest
from assay.models.config import Architecture
from assay.models.network import Classifier
from assay.models.recipes import Recipe, initialise
from assay.models.store import Trained
from assay.run.auditing import audited
from assay.run.examination import AuditPlan
from assay.types import Batch
from benchmarks.__main__ import SENTENCES, WORDS, machine, sentences
from benchmarks.plain import singles

LOOPED = 40  # sentences in the plain loop
DOCUMENTS, LENGTH = 10_000, 400
STEEP = 20.0  # times the weights of an untrained decoder: decisions then last as long as those of a trained one


def read(model: Classifier, batches: Iterable[Batch]) -> list[Case]:
    """The cases with all that takes a forward pass already there."""
    cases = [Case(model, batch, {}) for batch in batches]
    for case in cases:
        assert case.predicted is not None and case.values is not None and case.empty is not None
    return cases


def seconds(run: Callable[[Case], object], cases: list[Case]) -> float:
    """Processor time; the first case runs once before, to warm up."""
    run(cases[0])
    start = time.process_time()
    for case in cases:
        run(case)
    return time.process_time() - start


def loop(case: Case) -> None:
    """Five rankings of one sentence as the published code goes about it: erase one by one, renormalise, decode."""
    model, states = case.model, case._states
    weights = case.weights.float()
    free = weights.clone().requires_grad_()
    (slope,) = torch.autograd.grad(model.decode(states, free).softmax(-1).max(), free)
    with torch.no_grad():
        whole = model.decode(states, weights).softmax(-1)[0]
        drops = [whole.max() - after(model, states, weights, [item])[whole.argmax()] for item in range(len(slope[0]))]
        numbers = Random()(model, case.batch, case.predicted)[0]
        for scores in (weights[0], slope[0], slope[0] * weights[0], numbers, torch.tensor(drops)):
            order = scores.argsort(descending=True).tolist()
            for count in range(1, len(order) + 1):
                if after(model, states, weights, order[:count]).argmax() != whole.argmax():
                    break


def after(model: Classifier, states: Tensor, weights: Tensor, erased: list[int]) -> Tensor:
    """The output without these items."""
    left = weights.clone()
    left[0, erased] = 0
    total = left.sum()
    return model.decode(states, left / total if total > 0 else left).softmax(-1)[0]


def speed() -> str:
    torch.manual_seed(0)
    rows = []
    for classes in (2, 10):
        model = Classifier(Architecture(), WORDS, classes).eval()
        with torch.no_grad():
            model.decoder.weight.mul_(STEEP)
        batches = sentences()
        cases = read(model, batches)
        few = [one for batch in batches for one in singles(batch)]
        looped = read(model, few[:: len(few) // LOOPED][:LOOPED])
        each = SENTENCES * seconds(loop, looped) / len(looped)
        ours, single = (seconds(each_audit, cases) for each_audit in (MinimalSet(), SingleWeight()))
        share = np.nanmean([MinimalSet()(case).measures["fraction:attention"][0] for case in looped])
        rows.append(f"| {classes} | {ours:.3f} | {single:.3f} | {each:.1f} | {each / ours:.0f}× | {share:.2f} |")
    return "\n".join(rows)


def numbers(classes: int) -> None:
    """All rankings and the optimum of every document in one call."""
    torch.manual_seed(0)
    size = (DOCUMENTS, LENGTH)
    mask = torch.ones(size, dtype=torch.bool)
    empty = torch.randn(1, classes).expand(DOCUMENTS, classes)
    pooling = Pooling.of(torch.randn(*size, classes), torch.randn(size).softmax(-1), mask, empty)
    slope = gradient(pooling)
    scores = [pooling.weights, slope, slope * pooling.weights, torch.rand(size).double(), leave_one_out(pooling)]
    flips(pooling, ranked(torch.stack(scores, 1), mask)), smallest(pooling)


def whole(classes: int) -> None:
    """Both audits of every document, from its text to the record."""
    draw = random.Random(0)
    words = [f"w{number}" for number in range(WORDS)]
    texts = [" ".join(draw.choices(words, k=LENGTH)) for _ in range(DOCUMENTS)]
    tokeniser = Tokeniser.fit([" ".join(words)], TextOptions(min_count=1))
    recipe = Recipe(Architecture(encoder="conv", embedding=200, hidden=50, alignment_size=100))
    model = Trained(initialise(recipe, tokeniser, classes).eval(), tokeniser, tuple(map(str, range(classes))))
    examples = [Example(text, place % classes) for place, text in enumerate(texts)]
    audited(model, examples, AuditPlan(explainers=("attention",), audits=("single_weight", "minimal_set")))


MEMORY = {"numbers": numbers, "whole": whole}


def peak(name: str, classes: int) -> str:
    """Peak memory and processor time of one of MEMORY, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.erasing", name, str(classes)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def main() -> None:
    torch.set_num_threads(1)
    if len(sys.argv) > 1:
        MEMORY[sys.argv[1]](int(sys.argv[2]))
        print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB, {time.process_time():.0f} s")
        return
    table = "\n".join(f"| {classes} | {peak('numbers', classes)} | {peak('whole', classes)} |" for classes in (2, 10))
    facts = {"machine": machine(), "date": time.strftime("%Y-%m-%d"), "count": SENTENCES, "looped": LOOPED}
    print(PAGE.format(speed=speed(), memory=table, documents=DOCUMENTS, length=LENGTH, **facts))


PAGE = """{date}: {machine}

{count:,} sentences of the length of SST's, BiLSTM of the paper's size; processor seconds after the forward pass. The
loop erases one by one, renormalises and decodes until the decision changes, for the same five rankings without the
optimum; it ran on {looped} of the sentences. Share: of items erased down the ranking of attention, mean.

| classes | five rankings and the optimum, s | single weights, s | loop, s | ratio | share |
|---|---|---|---|---|---|
{speed}

{documents:,} documents of {length} words; peak memory, libraries included, and processor time of the process.

| classes | all rankings and the optimum, in one call | both audits, from text to record (convolutions, 100 wide) |
|---|---|---|
{memory}
"""

if __name__ == "__main__":
    main()
