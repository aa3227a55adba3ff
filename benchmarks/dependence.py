"""Prints what the dependence of all states on all words costs, beside one way back for each state.

The ways back are those of autograd, all texts of a batch at once through one forward pass, and text by text. Weights
are drawn at random; with an open forget gate nothing fades, so that no gradient can be left out.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import time
from collections.abc import Callable

import torch
from torch import Tensor

from assay.models.config import Architecture
from assay.models.dependence import state_gradient_norms
from assay.models.network import Classifier
from assay.types import Batch
from benchmarks.__main__ import WORDS, machine
from benchmarks.plain import singles

TEXTS, REPEATS = 32, 5
SOME = 8  # states that are followed back one by one, and texts that are read one by one; the rest would take as long
OPEN = 3.0  # added to the forget gate


def texts(words: int) -> Batch:
    """Texts that all have so many words: no padding is saved."""
    mask = torch.ones(TEXTS, words, dtype=torch.bool)
    return Batch(torch.randint(4, WORDS, mask.shape), mask, torch.zeros(TEXTS, dtype=torch.long))


def network(embedding: int, opened: float) -> Classifier:
    model = Classifier(Architecture(embedding=embedding), WORDS, 2).eval()
    with torch.no_grad():
        for one_way in (model.encoder.ahead, model.encoder.behind):
            _, forget, _, _ = one_way.bias_hh_l0.chunk(4)
            forget += opened
    return model


def followed(model: Classifier, batch: Batch) -> float:
    """Seconds for the gradients of all states, one way back for each, from those of some states."""
    x = model.embed(batch).detach().requires_grad_()
    start = time.process_time()
    sizes = model.states(x, batch).norm(dim=-1)
    forward = time.process_time() - start
    chosen = range(0, sizes.shape[1], max(1, sizes.shape[1] // SOME))
    start = time.process_time()
    for place in chosen:
        (gradient,) = torch.autograd.grad(sizes[:, place].sum(), x, retain_graph=True)
        gradient.norm(dim=-1)
    return forward + (time.process_time() - start) * sizes.shape[1] / len(chosen)


def looped(model: Classifier, batch: Batch) -> float:
    some = singles(batch)[:SOME]
    return sum(followed(model, one) for one in some) * len(batch) / len(some)


def ours(model: Classifier, batch: Batch) -> float:
    x: Tensor = model.embed(batch).detach()
    start = time.process_time()
    state_gradient_norms(model, x, batch)
    return time.process_time() - start


def best(run: Callable[[], float]) -> float:
    """The least of some runs, after one that warms up: other work on the machine only adds."""
    run()
    return min(run() for _ in range(REPEATS))


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print(f"{time.strftime('%Y-%m-%d')}: {machine()}; processor seconds for {TEXTS} texts, BiLSTM of 128 units\n")
    print("| embedding | words | forget gate | ours | way back for each state | ratio | text by text | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    for embedding in (300, 50):
        for words in (60, 170):
            for opened in (0.0, OPEN):
                model, batch = network(embedding, opened), texts(words)
                one, many, single = (best(lambda run=run: run(model, batch)) for run in (ours, followed, looped))  # noqa: B023
                print(
                    f"| {embedding} | {words} | {'open' if opened else 'as drawn'} | {one:.2f} | {many:.2f} "
                    f"| {many / one:.1f}× | {single:.2f} | {single / one:.1f}× |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
