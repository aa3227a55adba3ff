"""How many of the attended items must be erased before the decision changes, and how many would have been enough?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.audits.cases import Answer, Case, numpy, without_pooling
from assay.audits.single_weight import drawn, rankings
from assay.intervene.erasure import Pooling, flips, leave_one_out, ranked, smallest
from assay.types import PooledModel, over_tokens

OPTIMUM = "optimum"


@dataclass(frozen=True)
class MinimalSet:
    """The share of items, and of attention, erased down each ranking until the decision changes, beside the optimum.

    Erased weights are 0 and the others are renormalised; when nothing is left, the decoder reads the zero vector. The
    rankings are those of the paper (attention, the signed gradient of the decision's probability, their product,
    random) and leave_one_out: how much that probability drops when the item alone is erased. The random one is a single
    draw, which depends on the text and the seed alone; all else is exact, and the optimum is the true smallest set.

    Every ranking is measured on the same texts, those with several items, also where it never changes the decision:
    then all items went and it did not help. `erased` is the share of items that went, 1 in such a text, so its mean is
    the area over the curve of decisions changed by the time that a share of the items is erased; in survival analysis
    it is the mean restricted to 1. `erased_mass` is the share of attention on them, and `never` counts such texts.
    `too_many` items beyond the smallest set, `optimal` and `wins` are over all texts whose decision some set changes;
    a ranking that never does took all items there, is not optimal, and loses to any that does.
    """

    # differs from Serrano and Smith (2019): section 5.1 leaves out the texts whose decision a ranking never changes

    seed: int = 0
    paper: str = "Serrano and Smith (2019), section 5, figures 5 and 6"

    def kind(self, classes: int) -> str:
        return "exact"

    def unfit(self, case: Case) -> str | None:
        return without_pooling(case)

    def __call__(self, case: Case) -> Answer:
        assert isinstance(case.model, PooledModel)
        pooling = Pooling.of(case.values, case.weights, case.items, case.empty)
        scores = rankings(pooling) | {"random": drawn(case, self.seed), "leave_one_out": leave_one_out(pooling)}
        down = flips(pooling, ranked(torch.stack([*scores.values()], 1), pooling.mask))
        best = smallest(pooling)
        found = Erased(
            [*scores, OPTIMUM],
            _beside(down.flipped, best.flipped) > 0,
            _beside(down.count, best.count),
            _beside(down.mass, best.mass),
            numpy(case.items.sum(-1)),
        )
        shown = over_tokens(case.model, best.erased.double(), case.batch)
        return Answer(found.measures(), {"smallest_set": numpy(shown)})


@dataclass(frozen=True)
class Erased:
    """What R rankings and, last, the optimum erase until the decision changes: all where it never does."""

    names: Sequence[str]
    flipped: Bool[np.ndarray, "B R"]
    count: Float[np.ndarray, "B R"]
    mass: Float[np.ndarray, "B R"]
    items: Float[np.ndarray, " B"]

    def measures(self) -> dict[str, Float[np.ndarray, " B"]]:
        """Every measure; none of a text with a single item."""
        needed = np.where(self.flipped, self.count, np.inf)
        some = self.flipped[:, -1]
        measures = {"items": self.items}
        for place, name in enumerate(self.names):
            measures |= self._shares(place, name)
            if name != OPTIMUM:
                measures[f"too_many:{name}"] = np.where(some, self.count[:, place] - self.count[:, -1], np.nan)
                measures[f"optimal:{name}"] = np.where(some, needed[:, place] <= needed[:, -1], np.nan)
        for one, other in permutations(range(len(self.names) - 1), 2):
            wins = np.where(some, needed[:, one] < needed[:, other], np.nan)
            measures[f"wins:{self.names[one]}~{self.names[other]}"] = wins
        return {name: np.where(self.items > 1, values, np.nan) for name, values in measures.items()}

    def _shares(self, place: int, name: str) -> dict[str, Float[np.ndarray, " B"]]:
        return {
            f"erased:{name}": self.count[:, place] / np.maximum(self.items, 1),
            f"erased_mass:{name}": self.mass[:, place],
            f"never:{name}": np.where(self.flipped[:, place], 0.0, 1.0),
        }


def _beside(rankings: Tensor, optimum: Tensor) -> Float[np.ndarray, "B R"]:
    return numpy(torch.cat([rankings, optimum[:, None]], 1))
