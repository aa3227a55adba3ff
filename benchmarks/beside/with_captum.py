"""captum's ways, on embeddings of words; it reads all texts at once where it can."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import torch
from captum._utils.models.linear_model import SkLearnRidge
from captum.attr import (
    Attribution,
    FeatureAblation,
    InputXGradient,
    IntegratedGradients,
    KernelShap,
    Lime,
    NoiseTunnel,
    Saliency,
    ShapleyValueSampling,
)
from captum.metrics import sensitivity_max
from torch import Tensor

from benchmarks.beside.plainly import AT_ONCE, Plain, counted, labels
from benchmarks.beside.turns import Scores, Text, Way

__all__ = ["WAYS", "captum_kernel_shap", "captum_lime", "captum_shapley", "counted"]

SAMPLES, NODES, NOISY, ORDERS, DRAWS = 256, 50, 16, 16, 10
RADIUS = 1e-3
Probability = Callable[[Tensor], Tensor]


def features(x: Tensor) -> Tensor:
    """A feature for each token."""
    return torch.arange(x.shape[1], device=x.device)[None, :, None].repeat(1, 1, x.shape[2])


def captum_lime(probability: Probability, x: Tensor, at_once: int, samples: int = SAMPLES) -> Tensor:
    """captum's Lime, told to draw, weigh and fit as lime does for texts: its own ways are another method."""

    def drawn(original: Tensor, **options: object) -> Tensor:
        part = torch.ones(1, x.shape[1], device=x.device)
        part[0, torch.randperm(x.shape[1])[: int(torch.randint(1, x.shape[1] + 1, ()))]] = 0
        return part

    def weight(original: Tensor, perturbed: Tensor, part: Tensor, **options: object) -> float:
        return math.exp(-((100 * (1 - math.sqrt(part.mean()))) ** 2) / 2 / 25**2)

    ridge = SkLearnRidge(alpha=samples / 5000)
    method = Lime(probability, interpretable_model=ridge, similarity_func=weight, perturb_func=drawn)
    options = {"n_samples": samples, "perturbations_per_eval": at_once}
    return method.attribute(x, feature_mask=features(x), **options)[0, :, 0]


def captum_kernel_shap(probability: Probability, x: Tensor, at_once: int, samples: int = SAMPLES) -> Tensor:
    options = {"n_samples": samples, "perturbations_per_eval": at_once}
    return KernelShap(probability).attribute(x, feature_mask=features(x), **options)[0, :, 0]


def whole(make: Callable[[Callable[..., Tensor]], Attribution], pool: Callable[[Tensor, Tensor], Tensor], **options):  # type: ignore[no-untyped-def]
    """A method of gradients over all texts at once; `pool` makes one number a word of what comes out."""

    def opened(folder: Path) -> Way:
        plain = Plain(folder)
        method = make(plain.probabilities)

        def run(texts: Sequence[Text]) -> Scores:
            x = plain.words(texts).requires_grad_()
            found = method.attribute(x, target=labels(texts), **options)
            scores: Scores = pool(found.detach(), x.detach()).tolist()
            return scores

        return run

    return opened


def single(method: Callable[[Probability, Tensor, int], Tensor], at_once: int = AT_ONCE) -> Callable[[Path], Way]:
    """A method that takes one text after the other, and reads so many versions of it at once; by itself it is one."""

    def opened(folder: Path) -> Way:
        plain = Plain(folder)

        def run(texts: Sequence[Text]) -> Scores:
            return [method(plain.of(text.label), plain.words([text]), at_once).tolist() for text in texts]

        return run

    return opened


def ablation(folder: Path, at_once: int = AT_ONCE) -> Way:
    """Each word in turn gives way to the mask's embedding."""
    plain = Plain(folder)
    mask = plain.table.weight[plain.tokenizer.mask_token_id].detach()
    method = FeatureAblation(plain.probabilities)

    @torch.no_grad()
    def run(texts: Sequence[Text]) -> Scores:
        x = plain.words(texts)
        found = method.attribute(
            x,
            baselines=mask.expand_as(x),
            target=labels(texts),
            feature_mask=features(x),
            perturbations_per_eval=max(1, at_once // len(texts)),
        )
        scores: Scores = found[..., 0].tolist()
        return scores

    return run


def captum_shapley(probability: Probability, x: Tensor, at_once: int, orders: int = ORDERS) -> Tensor:
    """Shapley values from random orders."""
    options = {"n_samples": orders, "perturbations_per_eval": at_once}
    return ShapleyValueSampling(probability).attribute(x, feature_mask=features(x), **options)[0, :, 0]


def sensitivity(folder: Path) -> Way:
    """How far gradients move when the embeddings do."""
    plain = Plain(folder)
    method = Saliency(plain.probabilities)

    def run(texts: Sequence[Text]) -> Scores:
        x = plain.words(texts).requires_grad_()
        found = sensitivity_max(
            method.attribute, x, perturb_radius=RADIUS, n_perturb_samples=DRAWS, target=labels(texts), abs=False
        )
        scores: Scores = found[:, None].tolist()
        return scores

    return run


def _norm(found: Tensor, x: Tensor) -> Tensor:
    return found.norm(dim=-1)


def _sum(found: Tensor, x: Tensor) -> Tensor:
    return found.sum(-1)


WAYS = {
    "gradient": whole(Saliency, _norm, abs=False),
    "input_x_gradient": whole(InputXGradient, _sum),
    "integrated": whole(IntegratedGradients, _sum, n_steps=NODES, internal_batch_size=AT_ONCE),
    "integrated_usual": whole(IntegratedGradients, _sum),
    "smoothgrad": whole(lambda f: NoiseTunnel(Saliency(f)), _norm, nt_samples=NOISY, stdevs=0.05, abs=False),
    "ablation": ablation,
    "ablation_usual": partial(ablation, at_once=1),
    "lime": single(captum_lime),
    "lime_usual": single(captum_lime, 1),
    "kernel_shap": single(captum_kernel_shap),
    "kernel_shap_usual": single(captum_kernel_shap, 1),
    "shapley": single(captum_shapley),
    "shapley_usual": single(captum_shapley, 1),
    "sensitivity": sensitivity,
}
