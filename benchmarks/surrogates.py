"""Prints the table of docs/decisions 0006: our surrogates beside captum's and shap's, on the same model and texts."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import math
import time
from collections.abc import Callable

import numpy as np
import shap
import torch
from captum._utils.models.linear_model import SkLearnRidge
from captum.attr import KernelShap as CaptumKernelShap
from captum.attr import Lime as CaptumLime
from torch import Tensor

from assay.explainers.surrogates.linear import KernelShap, Lime
from assay.explainers.surrogates.owen import Owen
from assay.explainers.surrogates.shapley import Shapley
from assay.models.architecture import Architecture
from assay.models.classifier import Classifier
from assay.types import Batch, Explainer
from benchmarks.__main__ import machine

WORDS, TEXTS, SAMPLES = 5000, 10, 256
SHORT, USUAL = 12, 20  # tokens of texts whose exact values can be had, and of those that are timed

Peer = Callable[[Callable[[Tensor], Tensor], Tensor, int], Tensor]
"""Takes p(class 0) of embeddings, the embeddings of a text, and how many versions of it to read at once."""


def texts(tokens: int) -> Batch:
    ids = torch.randint(4, WORDS, (TEXTS, tokens))
    return Batch(ids, torch.ones_like(ids, dtype=torch.bool), torch.zeros(TEXTS, dtype=torch.long))


def captum_lime(probability: Callable[[Tensor], Tensor], x: Tensor, at_once: int) -> Tensor:
    """captum's Lime, told to draw, weigh and fit as lime does for texts: its own ways are another method."""

    def drawn(original: Tensor, **options: object) -> Tensor:
        part = torch.ones(1, x.shape[1])
        part[0, torch.randperm(x.shape[1])[: int(torch.randint(1, x.shape[1] + 1, ()))]] = 0
        return part

    def weight(original: Tensor, perturbed: Tensor, part: Tensor, **options: object) -> float:
        return math.exp(-((100 * (1 - math.sqrt(part.mean()))) ** 2) / 2 / 25**2)

    ridge = SkLearnRidge(alpha=SAMPLES / 5000)
    lime = CaptumLime(probability, interpretable_model=ridge, similarity_func=weight, perturb_func=drawn)
    options = {"n_samples": SAMPLES, "perturbations_per_eval": at_once}
    return lime.attribute(x, feature_mask=features(x), **options)[0, :, 0]


def captum_kernel_shap(probability: Callable[[Tensor], Tensor], x: Tensor, at_once: int) -> Tensor:
    options = {"n_samples": SAMPLES, "perturbations_per_eval": at_once}
    return CaptumKernelShap(probability).attribute(x, feature_mask=features(x), **options)[0, :, 0]


def features(x: Tensor) -> Tensor:
    """A feature for each token."""
    return torch.arange(x.shape[1])[None, :, None].repeat(1, 1, x.shape[2])


def shap_partition(probability: Callable[[Tensor], Tensor], x: Tensor, at_once: int, most: int = 10_000) -> Tensor:
    """shap's PartitionExplainer over our tree, with as many reads as it takes, or at `most` so many."""

    class Blanks:
        clustering = tree(x.shape[1])
        shape = (None, x.shape[1])

        def __call__(self, kept: np.ndarray, row: np.ndarray) -> np.ndarray:
            return (kept * row)[None]

    def answers(rows: np.ndarray) -> np.ndarray:
        return probability(x * torch.from_numpy(rows).float()[..., None]).numpy()

    explainer = shap.PartitionExplainer(answers, Blanks())
    found = explainer(np.ones((1, x.shape[1])), max_evals=most, batch_size=at_once, silent=True)
    return torch.from_numpy(found.values[0])


def tree(tokens: int) -> np.ndarray:
    """The text halved again and again, in scipy's form: two nodes, a distance and a size in each row."""
    rows: list[list[int]] = []

    def joined(start: int, stop: int) -> int:
        if stop - start == 1:
            return start
        middle = (start + stop + 1) // 2
        rows.append([joined(start, middle), joined(middle, stop), stop - start, stop - start])
        return tokens + len(rows) - 1

    joined(0, tokens)
    return np.array(rows, dtype=float)


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
