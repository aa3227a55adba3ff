"""Comparison models: explanations on other models, and attention and predictions of models trained anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.audits.cases import FOREIGN, Case, Numbers, Resources, numpy
from assay.errors import AssayError
from assay.metrics.agreement import kendall
from assay.metrics.information import jsd, tvd
from assay.models.network import Network
from assay.models.objectives import Imitated
from assay.models.recipes import Recipe
from assay.models.textmodel import TextModel
from assay.models.workers import Variant
from assay.types import Batch, Edit, Explainer, Output, over_tokens


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


@dataclass(frozen=True)
class Rival:
    """A comparison model; `lead` gives it another model's attention, where it was trained under that."""

    network: Network = field(repr=False)
    lead: Callable[[Batch], Edit] | None = field(default=None, repr=False)


@dataclass(frozen=True)
class View:
    """A rival's predictions, and its attention to items and to tokens."""

    probabilities: Float[np.ndarray, "B C"]
    weights: Float[np.ndarray, "B N"]
    shown: Float[np.ndarray, "B T"]


class RivalAudit:
    """What audits share that compare the model with `rivals`, which are trained beside it."""

    lacking: str  # why there are none
    rivals: Mapping[str, Rival]

    def kind(self, classes: int) -> str:
        return "sample"

    def unfit(self, case: Case) -> str | None:
        return unfit_for_rivals(case, None if self.rivals else self.lacking)


@torch.no_grad()
def viewed(rival: Rival, batch: Batch) -> View:
    """The rival's forward pass of a batch."""
    network = rival.network
    x = network.embed(batch)
    output = network(x, batch, None if rival.lead is None else rival.lead(batch))
    shown = over_tokens(network, output.attention[-1], batch) * network.within(x, batch)
    return View(numpy(output.probabilities), numpy(output.attention[-1]), numpy(shown))


def right(probabilities: Float[np.ndarray, "B C"], case: Case) -> Float[np.ndarray, " B"]:
    """1 where the highest probability is that of the label, else 0."""
    hit: Bool[np.ndarray, " B"] = probabilities.argmax(-1) == case.batch.labels.cpu().numpy()
    return hit.astype(np.float64)


def compared(case: Case, rival: Rival, subject: str) -> Numbers:
    """Distances of a rival from the audited model in attention, output and decision; and its accuracy."""
    view = viewed(rival, case.batch)
    same: Bool[np.ndarray, " B"] = view.probabilities.argmax(-1) == case.predicted.cpu().numpy()
    return {
        f"jsd:{subject}": jsd(numpy(case.weights), view.weights),
        f"tvd:{subject}": tvd(numpy(case.probabilities), view.probabilities),
        f"same:{subject}": same.astype(np.float64),
        f"right:{subject}": right(view.probabilities, case),
    }


def averaged(numbers: Numbers, subject: str) -> Numbers:
    """The mean of each measure over all its subjects, for each text."""
    names = dict.fromkeys(name.partition(":")[0] for name in numbers)
    return {
        f"{name}:{subject}": mean_defined([values for key, values in numbers.items() if key.partition(":")[0] == name])
        for name in names
    }


def unfit_for_rivals(case: Case, lacking: str | None) -> str | None:
    """Why audits that compare models trained alike do not apply, or None."""
    return lacking if isinstance(case.model, Network) else FOREIGN


def made(resources: Resources) -> Recipe:
    """The recipe of the audited model, which must be known."""
    recipe = resources.recipe()
    assert recipe is not None
    return recipe


def siblings(resources: Resources, seeds: int) -> dict[str, Variant]:
    """Models trained like the audited one with the next seeds, by name."""
    recipe = made(resources)
    numbers = range(recipe.training.seed + 1, recipe.training.seed + seeds + 1)
    return {
        f"seed-{number}": Variant(replace(recipe, training=replace(recipe.training, seed=number))) for number in numbers
    }


def adversary(resources: Resources, strength: float) -> dict[str, Variant]:
    """An adversary trained to give the audited model's predictions by other attention, by name."""
    recipe = made(resources)
    training = replace(recipe.training, balanced=False)  # answers are imitated, and labels take no part
    return {
        f"adversary-{strength:g}": Variant(
            replace(recipe, training=training), Imitated(resources.trained.network, float(strength))
        )
    }


def check_strengths(strengths: tuple[float, ...]) -> None:
    """Raises for an invalid list of λ."""
    if not strengths or not all(0 <= strength < float("inf") for strength in strengths):
        raise AssayError(f"Strengths are one or more numbers from 0, as in (0.01, 0.1), not {strengths}.")
    if len({f"{strength:g}" for strength in strengths}) < len(strengths):
        raise AssayError(f"Name each strength once, not {strengths}.")
