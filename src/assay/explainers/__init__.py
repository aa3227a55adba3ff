"""Explainers: one score a token that says how much the token counts for a class."""

from __future__ import annotations

from assay.explainers.attention import attention
from assay.explainers.gradients import gradient, gradient_norm, input_x_gradient
from assay.explainers.occlusion import leave_one_out
from assay.explainers.random import Random
from assay.types import Explainer

EXPLAINERS: dict[str, Explainer] = {
    "attention": attention,
    "gradient": gradient,
    "gradient_norm": gradient_norm,
    "input_x_gradient": input_x_gradient,
    "leave_one_out": leave_one_out,
    "random": Random(),
}

USUAL = ("attention", "gradient", "gradient_norm", "input_x_gradient", "leave_one_out", "random")
"""What is used where nothing else is asked for: cheap enough for every text of a corpus."""
