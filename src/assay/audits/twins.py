"""The same explainer on another model: what audits that compare models share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from torch import Tensor

from assay.audits.cases import Case, numpy
from assay.metrics.agreement import kendall
from assay.models.textmodel import TextModel


def without_twins(case: Case) -> str | None:
    """The reason of every audit that explains other models than the audited one."""
    if not isinstance(case.model, TextModel):
        return "the model is not one whose weights can be drawn anew"
    return None if case.explainers else "only scores were given, not the explainers that made them"


def explained_on(network: TextModel, case: Case, name: str) -> Float[Tensor, "B T"]:
    """The scores of an explainer on another network, for the class that the audited model predicts."""
    return case.explainers[name](network, case.batch, case.predicted)


def likeness(case: Case, name: str, scores: Float[Tensor, "B T"]) -> Float[np.ndarray, " B"]:
    """Kendall's τ-b between the absolute scores of an explainer on the audited model and other scores of the texts."""
    mask = case.batch.mask.cpu().numpy()
    return kendall(numpy(case.scores[name].abs()), numpy(scores.abs()), mask).tau


def mean_defined(values: Sequence[Float[np.ndarray, " B"]]) -> Float[np.ndarray, " B"]:
    """The mean for each example of those numbers that are defined; nan where none is."""
    stacked = np.stack(values)
    defined = np.isfinite(stacked)
    sums, counts = np.where(defined, stacked, 0.0).sum(0), defined.sum(0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
