"""Shared by audits that run the same explainer on other models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.audits.cases import Case, numpy
from assay.metrics.agreement import kendall
from assay.models.textmodel import TextModel
from assay.types import Batch, Explainer, Output


def without_twins(case: Case) -> str | None:
    """Why audits that explain other models do not apply, or None."""
    if not isinstance(case.model, TextModel):
        return "the model is not one whose weights can be drawn anew"
    return None if case.explainers else "only scores were given, not the explainers that made them"


def explained_on(network: TextModel, case: Case, name: str) -> Float[Tensor, "B T"]:
    """The scores of an explainer on another network, for the class that the audited model predicts."""
    return case.explainers[name](network, case.batch, case.predicted)


@dataclass(frozen=True)
class Heard:
    """Another network's result for the texts: the scores of each explainer, and its predictions."""

    scores: Mapping[str, Float[Tensor, "*N B T"]]
    probabilities: Float[Tensor, "*N B C"]


def heard(network: TextModel, batch: Batch, target: Int[Tensor, " B"], explainers: Mapping[str, Explainer]) -> Heard:
    """Runs explainers and network; a prediction made within an explainer is reused."""
    answers: list[Tensor] = []
    with torch.no_grad():
        words = network.embed(batch)

    def note(module: torch.nn.Module, given: tuple[Any, ...], named: dict[str, Any], output: Output) -> None:
        x, read, *edits = (*given, *named.values())
        unedited = read is batch and all(edit is None for edit in edits)
        if not answers and unedited and torch.equal(x.detach(), words):
            answers.append(output.probabilities.detach())

    hook = network.register_forward_hook(note, with_kwargs=True)
    try:
        scores = {name: explainer(network, batch, target) for name, explainer in explainers.items()}
        if not answers:
            with torch.no_grad():
                network(words, batch)
    finally:
        hook.remove()
    return Heard(scores, answers[0])


def likeness(case: Case, name: str, scores: Float[Tensor, "*N B T"]) -> Float[np.ndarray, "*N B"]:
    """Kendall's τ-b between the absolute scores of an explainer on the audited model and other scores of the texts."""
    others = numpy(scores.abs())
    own, mask = numpy(case.scores[name].abs()), case.batch.mask.cpu().numpy()
    flat = (np.broadcast_to(each, others.shape).reshape(-1, others.shape[-1]) for each in (own, others, mask))
    return kendall(*flat).tau.reshape(others.shape[:-1])


def mean_defined(values: Sequence[Float[np.ndarray, " B"]] | Float[np.ndarray, "N B"]) -> Float[np.ndarray, " B"]:
    """The mean for each example of those numbers that are defined; nan where none is."""
    stacked = np.asarray(values)
    defined = np.isfinite(stacked)
    sums, counts = np.where(defined, stacked, 0.0).sum(0), defined.sum(0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
