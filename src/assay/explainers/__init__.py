"""Explainers: feature attribution methods, one score per token for a class."""

from __future__ import annotations

from assay.explainers.anchors import Anchors
from assay.explainers.attention import Attention, AttentionGradient, AttentionXGradient, AttentionXValue, StateGradient
from assay.explainers.attention_layers import Chefer, Flow, Rollout, ValueZeroing
from assay.explainers.baselines import OwnRelevance, Random, Rationale
from assay.explainers.decomposition import WordDecomposition
from assay.explainers.gradients import Gradient, SmoothGrad, gradient_norm, input_x_gradient
from assay.explainers.integrated import IntegratedGradients
from assay.explainers.occlusion import Occlusion, SentenceOcclusion, SpanOcclusion, leave_one_out
from assay.explainers.phrase_trees import Projected
from assay.explainers.relevance import AttnLrp, DeepLift, Lrp
from assay.explainers.searches import Counterfactual, InputReduction
from assay.explainers.shapley import Owen, Shapley
from assay.explainers.surrogates import KernelShap, Lime
from assay.types import Explainer

EXPLAINERS: dict[str, Explainer] = {
    "attention": Attention(),
    "attention_gradient": AttentionGradient(),
    "attention_x_gradient": AttentionXGradient(),
    "attention_x_value": AttentionXValue(),
    "rollout": Rollout(),
    "flow": Flow(),
    "chefer": Chefer(),
    "value_zeroing": ValueZeroing(),
    "gradient": Gradient(),
    "gradient_norm": gradient_norm,
    "input_x_gradient": input_x_gradient,
    "integrated_gradients": IntegratedGradients(),
    "smoothgrad": SmoothGrad(),
    "state_gradient": StateGradient(),
    "leave_one_out": leave_one_out,
    "occlusion": Occlusion(),
    "occlusion_zero": Occlusion("zero"),
    "occlusion_pad": Occlusion("pad"),
    "occlusion_mask": Occlusion("mask"),
    "occlusion_mean": Occlusion("mean"),
    "occlusion_span": SpanOcclusion(),
    "occlusion_sentence": SentenceOcclusion(),
    "input_reduction": InputReduction(),
    "counterfactual": Counterfactual(),
    "rationale": Rationale(),
    "own_relevance": OwnRelevance(),
    "lrp": Lrp(),
    "attnlrp": AttnLrp(),
    "deeplift": DeepLift(),
    "contextual_decomposition": WordDecomposition(),
    "hedge": Projected(),
    "lime": Lime(),
    "kernel_shap": KernelShap(),
    "shapley": Shapley(),
    "owen": Owen(),
    "anchors": Anchors(),
    "random": Random(),
}

USUAL = (
    *("attention", "attention_x_gradient", "gradient", "gradient_norm", "input_x_gradient"),
    *("integrated_gradients", "lrp", "leave_one_out", "random"),
)
"""What is used where nothing else is asked for: cheap enough for every text of a corpus."""
