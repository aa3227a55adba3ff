"""k-nearest-neighbour influence: how votes among the nearest training examples change without each of them.

What is predicted here is not the network's answer but that of a classifier beside it: the class of most of the k
nearest training examples in one of its layers. For this one the answer is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Int

from assay.errors import AssayError
from assay.influence.nearest import Vectors
from assay.influence.representations import DECODER, layers, representations, share_below
from assay.influence.setting import Influence, Setting
from assay.influence.stories import CHANGE
from assay.stories import with_story

VOTES = "share of votes"


@with_story("Nearest neighbours", "Cover and Hart (1967)", like=CHANGE)
@dataclass(frozen=True)
class Neighbours:
    """The change of the class's share of votes if an example is removed and the next nearest one votes instead.

    Cover and Hart (1967). The score of one of the k nearest is ([the next votes for the class] - [it does]) / k, of
    all others 0. With the target "loss" the sign is turned; units are shares of votes whatever the target.
    """

    layer: str = DECODER
    k: int = 20
    distance: str = "cosine"
    approximate: bool = False
    folder: Path | None = None  # keeps representations

    def unfit(self, setting: Setting) -> str | None:
        return _unfit(setting, self.layer, self.k)

    def __call__(self, setting: Setting) -> Influence:
        stored = _stored(setting, self)
        asked = representations(setting.network, setting.queries, [self.layer], self.folder)[self.layer]
        found = stored.nearest(asked, self.k + 1)
        votes = labels(setting)[found.indices] == setting.classes[:, None]
        scores = np.zeros((len(asked), len(setting.train)))
        np.put_along_axis(scores, found.indices[:, :-1], (votes[:, -1:] * 1.0 - votes[:, :-1]) / self.k, 1)
        return _answer(setting, self.layer, scores, {"distance": self.distance, "k": self.k})

    def own(self, setting: Setting) -> Float[np.ndarray, " N"]:
        """The share of the k nearest others whose label differs from the example's.

        One that is stored itself is its own nearest neighbour; what is left without it is the vote of the others.
        """
        stored, own = _stored(setting, self), labels(setting)
        found = stored.nearest(stored.given, self.k, np.arange(len(own)))
        shares: Float[np.ndarray, " N"] = (own[found.indices] != own[:, None]).mean(1)
        return shares


@with_story("Shapley values of nearest neighbours", "Jia et al. (2019), theorem 1", like=CHANGE)
@dataclass(frozen=True)
class NeighbourShapley:
    """Minus the Shapley value of each example for the votes of the k nearest for the class.

    Jia et al. (2019), theorem 1: exact, by one pass from the farthest example to the nearest. The values of all
    examples sum to the share of the votes. With the target "loss" the sign is turned.
    """

    layer: str = DECODER
    k: int = 20
    distance: str = "cosine"
    folder: Path | None = None

    def unfit(self, setting: Setting) -> str | None:
        return _unfit(setting, self.layer, self.k)

    def __call__(self, setting: Setting) -> Influence:
        stored = _stored(setting, self)
        asked = representations(setting.network, setting.queries, [self.layer], self.folder)[self.layer]
        found = stored.nearest(asked, len(setting.train))
        values = shapley(labels(setting)[found.indices] == setting.classes[:, None], self.k)
        scores = np.zeros_like(values)
        np.put_along_axis(scores, found.indices, -values, 1)
        return _answer(setting, self.layer, scores, {"distance": self.distance, "k": self.k})


def shapley(agree: Bool[np.ndarray, "Q N"], k: int) -> Float[np.ndarray, "Q N"]:
    """Shapley values of examples sorted by distance; `agree` says which have the class."""
    ranks = np.arange(1, agree.shape[1])
    steps = (agree[:, :-1] * 1.0 - agree[:, 1:]) * np.minimum(k, ranks) / (k * ranks)
    last = agree[:, -1:] / agree.shape[1]
    values: Float[np.ndarray, "Q N"] = np.concatenate([steps, last], 1)[:, ::-1].cumsum(1)[:, ::-1]
    return values


def labels(setting: Setting) -> Int[np.ndarray, " N"]:
    """The class of each training example."""
    return np.array([row.label for row in setting.train])


def _stored(setting: Setting, method: Neighbours | NeighbourShapley) -> Vectors:
    if (reason := method.unfit(setting)) is not None:
        raise AssayError(f"This method cannot be used: {reason}.")
    found = representations(setting.network, setting.train, [method.layer], method.folder)[method.layer]
    walked = isinstance(method, Neighbours) and method.approximate
    return Vectors(found, method.distance, walked, str(setting.network.device))


def _unfit(setting: Setting, layer: str, k: int) -> str | None:
    if layer not in layers(setting.network):
        return f"the model has no layer {layer!r}"
    return None if k < len(setting.train) else f"there are no more than {len(setting.train)} training examples"


def _answer(setting: Setting, layer: str, scores: Float[np.ndarray, "Q N"], notes: dict[str, str | int]) -> Influence:
    sign = -1.0 if setting.target == "loss" else 1.0
    covered = share_below(setting.network, setting.train[0], layer)
    return Influence(sign * scores, covered, notes={"layer": layer, "unit": VOTES} | notes)
