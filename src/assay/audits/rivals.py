"""Other networks on the texts of a case: how they are made, where they look, and what they answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from jaxtyping import Bool, Float

from assay.audits.bench import FOREIGN, Bench, Variant
from assay.audits.cases import Case, numpy
from assay.audits.twins import mean_defined
from assay.errors import AssayError
from assay.metrics.divergence import jsd, tvd
from assay.models.network import Network
from assay.models.objectives import Imitated
from assay.models.recipes import Recipe
from assay.types import Batch, Edit, over_tokens

Numbers = dict[str, Float[np.ndarray, " B"]]


@dataclass(frozen=True)
class Rival:
    """Another network; where it learnt under the attention of a third one, `lead` gives it that of a batch."""

    network: Network = field(repr=False)
    lead: Callable[[Batch], Edit] | None = field(default=None, repr=False)


@dataclass(frozen=True)
class View:
    """What a rival answers, and its attention to items and to tokens."""

    probabilities: Float[np.ndarray, "B C"]
    weights: Float[np.ndarray, "B N"]
    shown: Float[np.ndarray, "B T"]


@torch.no_grad()
def viewed(rival: Rival, batch: Batch) -> View:
    """The batch as the rival reads it."""
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
    """How far the rival is from the audited model: its attention, its output, its decision; and whether it is right."""
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
    """The reason of every audit that compares a network with others which were made like it."""
    return lacking if isinstance(case.model, Network) else FOREIGN


def made(bench: Bench) -> Recipe:
    """How the audited model was made; where `bench.lacks()` something, there is nothing to ask."""
    recipe = bench.recipe()
    assert recipe is not None
    return recipe


def siblings(bench: Bench, seeds: int) -> dict[str, Variant]:
    """Models made as the audited one from the seeds after its own, by name."""
    recipe = made(bench)
    numbers = range(recipe.training.seed + 1, recipe.training.seed + seeds + 1)
    return {
        f"seed-{number}": Variant(replace(recipe, training=replace(recipe.training, seed=number))) for number in numbers
    }


def adversary(bench: Bench, strength: float) -> dict[str, Variant]:
    """The model that gives the audited one's answers by other attention, by name; its weights start as those did."""
    recipe = made(bench)
    training = replace(recipe.training, balanced=False)  # answers are imitated, and labels take no part
    return {
        f"adversary-{strength:g}": Variant(
            replace(recipe, training=training), Imitated(bench.trained.network, float(strength))
        )
    }


def check_strengths(strengths: tuple[float, ...]) -> None:
    """Refuses what is no sweep of λ."""
    if not strengths or not all(0 <= strength < float("inf") for strength in strengths):
        raise AssayError(f"Strengths are one or more numbers from 0, as in (0.01, 0.1), not {strengths}.")
    if len({f"{strength:g}" for strength in strengths}) < len(strengths):
        raise AssayError(f"Name each strength once, not {strengths}.")
