"""Our ways: explainers as they are, and what audits ask, on the same folder and texts as the peers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import torch

from assay.audits.cases import Case
from assay.audits.sanity import Sanity
from assay.audits.stability import Stability
from assay.audits.word_erasure import Erasure
from assay.costs import measured as counted
from assay.data.batches import collate, tokenise
from assay.data.examples import Example
from assay.explainers import EXPLAINERS
from assay.explainers.gradients import SmoothGrad, gradient_norm, input_x_gradient
from assay.explainers.integrated import IntegratedGradients
from assay.explainers.occlusion import Occlusion
from assay.explainers.shapley import Owen, Shapley
from assay.explainers.surrogates import KernelShap, Lime
from assay.intervene.perturbation import cascade, nudges
from assay.metrics import erasure
from assay.models.erasure import kept_probabilities
from assay.models.hf_loading import Opened, Opening, opened
from assay.models.hf_models import Pretrained
from assay.types import Batch, Explainer
from benchmarks.beside.turns import DEVICE, Scores, Text, Way, prepared

__all__ = ["WAYS", "counted"]

THRESHOLDS = tuple(step / 10 for step in range(1, 11))
Asked = Callable[[Pretrained, Batch, Sequence[Text]], Scores]


@cache
def loaded(folder: Path) -> Opened:
    return opened(str(folder / "model"), Opening(device=DEVICE))


def way(asked: Asked) -> Callable[[Path], Way]:
    """What is asked of the model in a folder and of the texts in one batch."""

    def begun(folder: Path) -> Way:
        made = loaded(folder)
        known: dict[tuple[str, ...], Batch] = {}

        def batch(texts: Sequence[Text]) -> Batch:
            rows, _ = tokenise([Example(text.words, text.label) for text in texts], made.tokeniser, 500)
            return collate(rows).to(DEVICE)

        def run(texts: Sequence[Text]) -> Scores:
            assert isinstance(made.network, Pretrained)
            return asked(made.network, prepared(known, texts, lambda: batch(texts)), texts)

        return run

    return begun


def explained(explainer: Explainer) -> Callable[[Path], Way]:
    return way(lambda model, batch, texts: explainer(model, batch, batch.labels).tolist())


def case(model: Pretrained, batch: Batch, texts: Sequence[Text]) -> Case:
    """The given scores, as if explainers had made them."""
    given = torch.tensor([text.given for text in texts]).transpose(0, 1)
    return Case(model, batch, {str(place): scores for place, scores in enumerate(given)})


def judged(model: Pretrained, batch: Batch, texts: Sequence[Text]) -> Scores:
    """Comprehensiveness, sufficiency and Kendall's τ with leave-one-out, of each of the given scores."""
    from benchmarks.sixfold import evaluated

    given = [{str(place): torch.tensor([scores]) for place, scores in enumerate(text.given)} for text in texts]
    found = [evaluated(model, batch[row : row + 1], scores) for row, scores in enumerate(given)]
    return [[number for numbers in each.values() for number in numbers] for each in found]


def erased(model: Pretrained, batch: Batch, texts: Sequence[Text]) -> Scores:
    """The audit of erasure as it comes: areas, flips, log-odds and five random rankings beside what ferret asks."""
    answer = Erasure(thresholds=THRESHOLDS)(case(model, batch, texts))
    return np.stack([answer.measures[f"comprehensiveness:{name}"] for name in "012345"], 1).tolist()


@torch.no_grad()
def flipped(model: Pretrained, batch: Batch, texts: Sequence[Text]) -> Scores:
    """The probability of the class as words are masked, those of the highest given score first."""
    ranks = erasure.ranks(np.array([text.given[0] for text in texts]), batch.mask.numpy())
    steps = np.arange(1, ranks.shape[1] + 1)
    kept = torch.from_numpy(ranks[:, None] >= steps[:, None])
    found = kept_probabilities(model, batch, kept, "mask")
    return found.gather(2, batch.labels[:, None, None].expand(-1, kept.shape[1], 1))[..., 0].tolist()


def redrawn(model: Pretrained, batch: Batch, texts: Sequence[Text]) -> Scores:
    """Likeness of the gradients of networks whose parts were drawn anew, one number a network."""
    explainers = {"gradient_norm": gradient_norm}
    scores = {"gradient_norm": gradient_norm(model, batch, batch.labels)}
    answer = sanity(model)(Case(model, batch, scores, explainers=explainers))
    found = [values for name, values in answer.measures.items() if name.startswith("similarity_")]
    return np.stack(found, 1).tolist()


def nudged(model: Pretrained, batch: Batch, texts: Sequence[Text]) -> Scores:
    """How far gradients move when the embeddings do, over ten draws."""
    scores = {"gradient_norm": gradient_norm(model, batch, batch.labels)}
    made = Case(model, batch, scores, explainers={"gradient_norm": gradient_norm})
    return stability(model)(made).measures["change:gradient_norm"][:, None].tolist()


@cache
def sanity(model: Pretrained) -> Sanity:
    """The audit with its networks, which are made once for all texts."""
    return Sanity(networks=cascade(model, 0))


@cache
def stability(model: Pretrained) -> Stability:
    """The audit with its moved models, which are made once for all texts."""
    draws = 10
    return Stability(draws=draws, moved=nudges(model, Stability.share, range(draws)))


PATH = IntegratedGradients(nodes=49, tolerance=1e9)  # one piece of 49 nodes, whatever gap is left
WAYS: dict[str, Callable[[Path], Way]] = {
    "gradient": explained(gradient_norm),
    "input_x_gradient": explained(input_x_gradient),
    "integrated": explained(PATH),
    "integrated_pad": explained(replace(PATH, baseline="pad")),
    "integrated_pad_usual": explained(IntegratedGradients(baseline="pad")),
    "integrated_usual": explained(IntegratedGradients()),
    "smoothgrad": explained(SmoothGrad(16)),
    "occlusion_mask": explained(Occlusion("mask")),
    "occlusion": explained(EXPLAINERS["occlusion"]),
    "lime_zero": explained(Lime(256, removal="zero")),
    "lime_mask": explained(Lime(256, removal="mask")),
    "lime": explained(Lime(256)),
    "lime_most": explained(Lime(1024)),
    "lime_many": explained(Lime(1024, removal="mask")),
    "kernel_shap_zero": explained(KernelShap(256, removal="zero")),
    "kernel_shap": explained(KernelShap(256)),
    "shapley_zero": explained(Shapley(samples=16 * 29, removal="zero")),
    "shapley": explained(Shapley(samples=16 * 29)),
    "owen_zero": explained(Owen(10_000, removal="zero")),
    "owen": explained(Owen(500)),
    "owen_mask": explained(Owen(500, removal="mask")),
    "judged": way(judged),
    "erased": way(erased),
    "flipped": way(flipped),
    "redrawn": way(redrawn),
    "nudged": way(nudged),
}
