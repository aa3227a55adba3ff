"""Relevance propagation: a modified backward pass, gradient × input with other local multipliers."""

from __future__ import annotations

from assay.explainers.relevance.methods import AttnLrp, DeepLift, Lrp
from assay.explainers.relevance.shares import Shares

__all__ = ["AttnLrp", "DeepLift", "Lrp", "Shares"]
