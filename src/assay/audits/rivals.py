"""Comparison models: explanations on other models, and attention and predictions of models trained anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.audits.cases import (
    FOREIGN,
    LACKING,
    BaseAudit,
    Case,
    ItemValues,
    Numbers,
    PerText,
    Resources,
    TokenValues,
    mean_defined,
    numpy,
)
from assay.errors import AssayError
from assay.metrics.agreement import kendall
from assay.metrics.information import jsd, tvd
from assay.models.network import Network
from assay.models.objectives import Imitated
from assay.models.textmodel import TextModel
from assay.models.workers import Variant
from assay.types import Batch, Edit, Explainer, Output, over_tokens


def without_twins(case: Case) -> str | None:
    """Why audits that explain other models do not apply, or None."""
    if not isinstance(case.model, TextModel):
        return "the model is not one whose weights can be drawn anew"
    return None if case.explainers else "only scores were given, not the explainers that made them"


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
    alike = (np.broadcast_to(each, others.shape) for each in (numpy(case.scores[name].abs()), others, case.mask))
    return kendall(*(each.reshape(-1, others.shape[-1]) for each in alike)).tau.reshape(others.shape[:-1])


@dataclass(frozen=True)
class Rival:
    """A comparison model; `lead` gives it another model's attention, where it was trained under that."""

    network: Network = field(repr=False)
    lead: Callable[[Batch], Edit] | None = field(default=None, repr=False)


@dataclass(frozen=True)
class View:
    """A rival's predictions, and its attention to items and to tokens."""

    probabilities: Float[np.ndarray, "B C"]
    weights: ItemValues
    shown: TokenValues


@dataclass(frozen=True, kw_only=True)
class RivalAudit(BaseAudit):
    """What audits share that compare the model with `rivals`, which are trained beside it."""

    lacking: str = LACKING  # why there are none
    rivals: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def unfit(self, case: Case) -> str | None:
        if not isinstance(case.model, Network):
            return FOREIGN
        return None if self.rivals else self.lacking

    def prepared(self, resources: Resources) -> RivalAudit:
        """The audit with all other models at hand, or with the reason why there are none."""
        reason = resources.lacks() or self.refused(resources)
        if reason is not None:
            return replace(self, lacking=reason)
        return self.trained(resources)

    def refused(self, resources: Resources) -> str | None:
        """Why these models cannot be compared with the audited one, although models can be trained; or None."""
        return None

    def trained(self, resources: Resources) -> RivalAudit:
        """The audit with all other models."""
        raise NotImplementedError

    def compared(self, case: Case) -> Numbers:
        """How far each rival is from the audited model."""
        measures: Numbers = {}
        for name, rival in self.rivals.items():
            measures |= compared(case, rival, name)
        return measures


@torch.no_grad()
def viewed(rival: Rival, batch: Batch) -> View:
    """The rival's forward pass of a batch."""
    network = rival.network
    x = network.embed(batch)
    output = network(x, batch, None if rival.lead is None else rival.lead(batch))
    shown = over_tokens(network, output.attention[-1], batch) * network.within(x, batch)
    return View(numpy(output.probabilities), numpy(output.attention[-1]), numpy(shown))


def right(probabilities: Float[np.ndarray, "B C"], case: Case) -> PerText:
    """1 where the highest probability is that of the label, else 0."""
    hit = np.equal(probabilities.argmax(-1), case.batch.labels.cpu().numpy())
    return np.asarray(hit, dtype=np.float64)


def compared(case: Case, rival: Rival, subject: str) -> Numbers:
    """Distances of a rival from the audited model in attention, output and decision; and its accuracy."""
    view = viewed(rival, case.batch)
    same = np.equal(view.probabilities.argmax(-1), case.predicted.cpu().numpy())
    return {
        f"jsd:{subject}": jsd(numpy(case.weights), view.weights),
        f"tvd:{subject}": tvd(numpy(case.probabilities), view.probabilities),
        f"same:{subject}": np.asarray(same, dtype=np.float64),
        f"right:{subject}": right(view.probabilities, case),
    }


def averaged(numbers: Numbers, subject: str) -> Numbers:
    """The mean of each measure over all its subjects, for each text."""
    measures: dict[str, list[PerText]] = {}
    for name, values in numbers.items():
        measures.setdefault(name.partition(":")[0], []).append(values)
    return {f"{name}:{subject}": mean_defined(values) for name, values in measures.items()}


def siblings(resources: Resources, seeds: int) -> dict[str, Variant]:
    """Models trained like the audited one with the next seeds, by name."""
    recipe = resources.made
    first = recipe.training.seed + 1
    return {
        f"seed-{seed}": Variant(replace(recipe, training=replace(recipe.training, seed=seed)))
        for seed in range(first, first + seeds)
    }


def adversary(resources: Resources, strength: float) -> dict[str, Variant]:
    """An adversary trained to give the audited model's predictions by other attention, by name."""
    recipe = resources.made
    training = replace(recipe.training, balanced=False)  # answers are imitated, and labels take no part
    imitated = Imitated(resources.trained.network, float(strength))
    return {f"adversary-{strength:g}": Variant(replace(recipe, training=training), imitated)}


def check_strengths(strengths: tuple[float, ...]) -> None:
    """Raises for an invalid list of λ."""
    if not strengths or not all(0 <= strength < float("inf") for strength in strengths):
        raise AssayError(f"Strengths are one or more numbers from 0, as in (0.01, 0.1), not {strengths}.")
    if len({f"{strength:g}" for strength in strengths}) < len(strengths):
        raise AssayError(f"Name each strength once, not {strengths}.")
