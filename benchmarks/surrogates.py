"""Prints the table of docs/decisions 0006: our surrogates beside captum's and shap's, on the same model and texts."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import time
from collections.abc import Callable

import torch
from torch import Tensor

from assay.explainers.shapley import Owen, Shapley
from assay.explainers.surrogates import KernelShap, Lime
from assay.models.config import Architecture
from assay.models.network import Classifier
from assay.types import Batch, Explainer
from benchmarks.__main__ import machine
from benchmarks.beside.with_captum import SAMPLES, captum_kernel_shap, captum_lime
from benchmarks.beside.with_shap import shap_partition

WORDS, TEXTS = 5000, 10
SHORT, USUAL = 12, 20  # tokens of texts whose exact values can be had, and of those that are timed

Peer = Callable[[Callable[[Tensor], Tensor], Tensor, int], Tensor]
"""Takes p(class 0) of embeddings, the embeddings of a text, and how many versions of it to read at once."""


def texts(tokens: int) -> Batch:
    ids = torch.randint(4, WORDS, (TEXTS, tokens))
    return Batch(ids, torch.ones_like(ids, dtype=torch.bool), torch.zeros(TEXTS, dtype=torch.long))


def looped(model: Classifier, peer: Peer, batch: Batch, at_once: int = SAMPLES) -> Tensor:
    """The peer's scores: it takes one text at a time."""
    rows = []
    for place in range(len(batch)):
        one = batch[place : place + 1]

        def probability(x: Tensor, one: Batch = one) -> Tensor:
            with torch.no_grad():
                return model(x, one[torch.zeros(len(x), dtype=torch.long)]).probabilities[:, 0]

        rows.append(peer(probability, model.embed(one).detach(), at_once))
    return torch.stack(rows)


def milliseconds(run: Callable[[Batch], Tensor], batch: Batch) -> float:
    """Processor time for one text; one before warms up."""
    run(batch[:1])
    start = time.process_time()
    run(batch)
    return 1000 * (time.process_time() - start) / len(batch)


def compared(model: Classifier, ours: Explainer, peer: Peer, usually: int, exact: Explainer) -> str:
    """Milliseconds of both and their ratio; how far both are from the exact scores, in parts of their mean size.

    The peer is timed reading all versions of a text at once, and as many as it reads by default.
    """
    mine, theirs = (lambda batch: ours(model, batch, batch.labels)), (lambda batch: looped(model, peer, batch))
    short, usual = texts(SHORT), texts(USUAL)
    truth = exact(model, short, short.labels)
    errors = [((run(short) - truth).abs().mean() / truth.abs().mean()).item() for run in (mine, theirs)]
    fast, slow = milliseconds(mine, usual), milliseconds(theirs, usual)
    slowest = milliseconds(lambda batch: looped(model, peer, batch, usually), usual)
    ratios = f"{slow / fast:.1f}× | {slowest / fast:.1f}×"
    return f"{fast:.0f} | {slow:.0f} | {slowest:.0f} | {ratios} | {errors[0]:.1%} | {errors[1]:.1%}"


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Classifier(Architecture(), WORDS, 2).eval()
    every = 1 << SHORT
    blank = {"removal": "zero"}
    rows = [
        ("LIME", Lime(SAMPLES, **blank), "captum", captum_lime, 1, Lime(every, **blank)),
        ("KernelSHAP", KernelShap(SAMPLES, **blank), "captum", captum_kernel_shap, 1, Shapley(SHORT, **blank)),
        ("partition", Owen(**blank), "shap", shap_partition, 10, Owen(every, **blank)),
    ]
    print(f"{time.strftime('%Y-%m-%d')}: {machine()}\n")
    print("| method | peer | ours, ms | peer, ms | as it comes, ms | ratio | as it comes | ours off by | peer off by |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, ours, who, peer, usually, exact in rows:
        print(f"| {name} | {who} | {compared(model, ours, peer, usually, exact)} |")


if __name__ == "__main__":
    main()
