"""Faithfulness of landmark explanations: do the landmarks that are named matter more to the answer than others?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.errors import AssayError
from assay.influence.landmarks.kernels import Passage
from assay.influence.landmarks.model import LandmarkModel
from assay.influence.landmarks.reasons import reasons
from assay.influence.landmarks.relevance import contrast


@dataclass(frozen=True)
class Faithfulness:
    """The mean fall of the answer's lead in logits when its similarity to some landmarks is set to the usual one."""

    named: float  # those that a sentence would name
    alike: float  # as many that the text is most alike to
    chance: float  # as many at random
    above_chance: float  # the share of texts for which the named ones matter more than random ones do on average
    texts: int


@torch.no_grad()
def faithfulness(
    model: LandmarkModel, texts: Sequence[Passage], count: int = 1, draws: int = 20, seed: int = 0
) -> Faithfulness:
    """Erases the `count` landmarks that are named, the most alike, and random ones, for texts that have reasons."""
    likeness = model.likeness(texts)
    answers = model.network(likeness).argmax(-1)
    alike = [each.alike[:count] for each in reasons(model, likeness, answers)]
    kept = [row for row, names in enumerate(alike) if names]
    if not kept:
        raise AssayError("No landmark of its class speaks for the answer to any of these texts; none can be erased.")
    likeness, answers = likeness[kept], answers[kept]
    sizes = [len(alike[row]) for row in kept]
    random = np.random.default_rng(seed)
    own = np.unique(model.indices)
    nearest = model.indices[np.argsort(-likeness.cpu().numpy(), axis=1, kind="stable")]
    named = _fall(model, likeness, answers, [alike[row] for row in kept])
    close = _fall(
        model, likeness, answers, [list(dict.fromkeys(row.tolist()))[:k] for row, k in zip(nearest, sizes, strict=True)]
    )
    drawn = [
        _fall(model, likeness, answers, [random.choice(own, k, replace=False).tolist() for k in sizes])
        for _ in range(draws)
    ]
    chance = np.mean(drawn, axis=0)
    return Faithfulness(
        float(named.mean()), float(close.mean()), float(chance.mean()), float((named > chance).mean()), len(kept)
    )


def _fall(
    model: LandmarkModel, likeness: Float[Tensor, "B M"], answers: Tensor, erased: Sequence[Sequence[int]]
) -> Float[np.ndarray, " B"]:
    """The fall of the answers' lead without these training texts."""
    gone: Bool[np.ndarray, "B M"] = np.array([np.isin(model.indices, list(each)) for each in erased])
    without = torch.where(torch.from_numpy(gone).to(likeness.device), model.network.usual, likeness)
    before, after = (contrast(model.network(each), answers) for each in (likeness, without))
    fall: Float[np.ndarray, " B"] = (before - after).double().cpu().numpy()
    return fall
