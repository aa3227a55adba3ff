"""k-nearest-neighbour influence: how votes among the nearest training examples change without each of them.

What is predicted here is not the network's answer but that of a classifier beside it: the class of most of the k
nearest training examples in one of its layers. For this one the answer is exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.errors import AssayError, unknown
from assay.influence.representations import DECODER, layers, representations, share_below
from assay.influence.setting import Influence, Labels, PerExample, Scores, Setting, Texts, labels_of, refuse
from assay.influence.stories import VOTES
from assay.models.textmodel import TextModel
from assay.stories import with_story

DISTANCES = ("cosine", "euclidean")
AT_ONCE = 2**25  # distances held at a time
BREADTH, LINKS, BUILT = 400, 32, 400  # of a walk, of an index in the graph, of its building


@dataclass(frozen=True)
class NearestVectors:
    """Indices of the nearest vectors to each query, nearest first, and their distances."""

    indices: Int[np.ndarray, "Q k"]
    distances: Float[np.ndarray, "Q k"]


@dataclass(frozen=True)
class Vectors:
    """An index of vectors that can be searched by one of the DISTANCES.

    "cosine" is 1 less the cosine, from 0 to 2. "euclidean" divides each dimension by its standard deviation over the
    vectors, and the distance by the root of twice the number of dimensions: of two vectors drawn from them, the mean
    square is 1.
    """

    given: Float[np.ndarray, "N D"]
    distance: str = "cosine"
    approximate: bool = False
    device: str = "cpu"
    breadth: int = field(default=BREADTH)  # of the walk, where it is one: more find more

    def __post_init__(self) -> None:
        if self.distance not in DISTANCES:
            raise unknown("distance", self.distance, DISTANCES)

    @cached_property
    def scale(self) -> Float[np.ndarray, " D"]:
        """The divisor of each dimension."""
        spread = self.given.std(0, dtype=np.float64) * np.sqrt(2 * self.given.shape[1])
        return np.where(spread > 0, spread, np.inf).astype(np.float32)  # one that never varies tells nothing apart

    def ready(self, vectors: Float[np.ndarray, "Q D"]) -> Float[Tensor, "Q D"]:
        """The vectors transformed so that plain Euclidean distance applies; half its square is the cosine's."""
        if self.distance == "euclidean":
            scaled = vectors / self.scale
        else:
            scaled = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-30)
        return torch.from_numpy(np.ascontiguousarray(scaled, np.float32)).to(self.device)

    @cached_property
    def stored(self) -> Float[Tensor, "N D"]:
        return self.ready(self.given)

    def nearest(
        self, queries: Float[np.ndarray, "Q D"], k: int, without: Int[np.ndarray, " Q"] | None = None
    ) -> NearestVectors:
        """The k nearest to each query; `without` is one index for each query to leave out, such as its own."""
        most = len(self.given) - (without is not None)
        if not 1 <= k <= most:
            raise AssayError(f"The number of neighbours must be from 1 to {most}, got {k}.")
        asked = self.ready(queries)
        search = self._walked if self.approximate else self._compared
        indices = [
            search(part, k, None if without is None else without[start : start + len(part)])
            for start, part in self._parts(asked)
        ]
        return self._measured(asked, np.concatenate(indices))

    def _parts(self, asked: Float[Tensor, "Q D"]) -> list[tuple[int, Float[Tensor, "q D"]]]:
        step = max(1, AT_ONCE // len(self.given))
        return [(start, asked[start : start + step]) for start in range(0, len(asked), step)]

    def _compared(
        self, asked: Float[Tensor, "q D"], k: int, without: Int[np.ndarray, " q"] | None
    ) -> Int[np.ndarray, "q k"]:
        """By all distances."""
        near = asked @ self.stored.T - self.stored.square().sum(1) / 2
        if without is not None:
            near[torch.arange(len(asked)), torch.from_numpy(without).to(near.device)] = -torch.inf
        return near.topk(k, dim=1).indices.cpu().numpy()

    def _walked(
        self, asked: Float[Tensor, "q D"], k: int, without: Int[np.ndarray, " q"] | None
    ) -> Int[np.ndarray, "q k"]:
        """By graph search."""
        more = k + (without is not None)
        indices = self.graph.search(asked.cpu().numpy(), more, threads=1).keys.astype(np.int64).reshape(-1, more)
        if without is None:
            return np.asarray(indices)
        last = (indices == without[:, None]).argsort(1, kind="stable")  # the one that does not count, or the farthest
        return np.asarray(np.take_along_axis(indices, last, 1)[:, :k])

    @cached_property
    def graph(self) -> Any:
        """The navigable small world (Malkov and Yashunin, 2016), built deterministically."""
        try:
            library = import_module("usearch.index")
        except ImportError as lacking:
            raise AssayError(
                "An approximate search needs the package usearch; install assay with the extra 'ann'."
            ) from lacking
        graph = library.Index(
            ndim=self.given.shape[1],
            metric="l2sq",
            dtype="f32",
            connectivity=LINKS,
            expansion_add=BUILT,
            expansion_search=self.breadth,
        )
        graph.add(np.arange(len(self.given)), self.stored.cpu().numpy(), threads=1)
        return graph

    def _measured(self, asked: Float[Tensor, "Q D"], indices: Int[np.ndarray, "Q k"]) -> NearestVectors:
        """Exact distances by differences, which keep precision for near vectors, and the indices in their order."""
        distances = np.zeros(indices.shape)
        step = max(1, AT_ONCE // (indices.shape[1] * asked.shape[1]))
        for start in range(0, len(asked), step):
            part = slice(start, start + step)
            apart = asked[part, None] - self.stored[torch.from_numpy(indices[part]).to(asked.device)]
            distances[part] = apart.double().square().sum(-1).cpu().numpy()
        distances = distances / 2 if self.distance == "cosine" else np.sqrt(distances)
        order = np.lexsort((indices, distances))  # of equal ones the earlier first
        return NearestVectors(np.take_along_axis(indices, order, 1), np.take_along_axis(distances, order, 1))


@dataclass(frozen=True)
class Voting:
    """Base of methods that count the votes of the k nearest training examples in one layer."""

    layer: str = DECODER
    k: int = 20
    distance: str = "cosine"
    folder: Path | None = None  # keeps representations

    def unfit(self, setting: Setting) -> str | None:
        if self.layer not in layers(setting.network):
            return f"the model has no layer {self.layer!r}"
        count = len(setting.train)
        return None if self.k < count else f"there are no more than {count} training examples"

    def stored(self, setting: Setting) -> Vectors:
        """The training examples, ready to be searched."""
        refuse(self.unfit(setting))
        found = self._represented(setting, setting.train)
        return Vectors(found, self.distance, device=str(setting.network.device))

    def _represented(self, setting: Setting, rows: Texts) -> Float[np.ndarray, "N _"]:
        return representations(setting.network, rows, [self.layer], self.folder)[self.layer]

    def _influence(
        self,
        setting: Setting,
        indices: Int[np.ndarray, "Q k"],
        values: Float[np.ndarray, "Q k"],
        facts: Sequence[Mapping[str, Any]] = (),
    ) -> Influence:
        """The values of the neighbours as scores, 0 for all other examples."""
        scores = setting.zeros()
        np.put_along_axis(scores, indices, -values if setting.target == "loss" else values, 1)
        covered = share_below(setting.network, setting.train[0], self.layer)
        notes = {"layer": self.layer, "unit": "share of votes", "distance": self.distance, "k": self.k}
        return Influence(scores, covered, notes=notes, facts=facts)


@with_story("Nearest neighbours", "Cover and Hart (1967); Wallace et al. (2018)", like=VOTES)
@dataclass(frozen=True)
class Neighbours(Voting):
    """The change of the class's share of votes if an example is removed and the next nearest one votes instead.

    Cover and Hart (1967). The score of one of the k nearest is ([the next votes for the class] - [it does]) / k, of
    all others 0. With the target "loss" the sign is turned; units are shares of votes whatever the target. The facts
    of a query hold its conformity, the share of votes for its class, and where `calibrated`, what that share is worth
    beside those of the training examples.
    """

    approximate: bool = False
    calibrated: bool = False

    def stored(self, setting: Setting) -> Vectors:
        return replace(super().stored(setting), approximate=self.approximate)

    def __call__(self, setting: Setting) -> Influence:
        stored, labels = self.stored(setting), setting.labels
        found = stored.nearest(self._represented(setting, setting.queries), self.k + 1)
        voted = labels[found.indices] == setting.classes[:, None]
        change = (voted[:, -1:] * 1.0 - voted[:, :-1]) / self.k
        shares = votes(labels[found.indices[:, :-1]], np.ones_like(change), setting.network.classes)
        facts = [{"conformity": float(row[one])} for row, one in zip(shares, setting.classes, strict=True)]
        if self.calibrated:
            p = p_values(shares, 1 - self.own(setting))
            for fact, one, other in zip(facts, credibility(p), confidence(p), strict=True):
                fact |= {"credibility": float(one), "confidence": float(other)}
        return self._influence(setting, found.indices[:, :-1], change, facts)

    def own(self, setting: Setting) -> PerExample:
        """The share of the k nearest others whose label differs from the example's.

        One that is stored itself is its own nearest neighbour; what is left without it is the vote of the others.
        """
        stored, own = self.stored(setting), setting.labels
        found = stored.nearest(stored.given, self.k, np.arange(len(own)))
        shares: PerExample = (own[found.indices] != own[:, None]).mean(1)
        return shares


@with_story("Shapley values of nearest neighbours", "Jia et al. (2019), theorem 1", like=VOTES)
@dataclass(frozen=True)
class NeighbourShapley(Voting):
    """Minus the Shapley value of each example for the votes of the k nearest for the class.

    Jia et al. (2019), theorem 1: exact, by one pass from the farthest example to the nearest. The values of all
    examples sum to the share of the votes. With the target "loss" the sign is turned.
    """

    def __call__(self, setting: Setting) -> Influence:
        asked = self._represented(setting, setting.queries)
        found = self.stored(setting).nearest(asked, len(setting.train))
        values = shapley(setting.labels[found.indices] == setting.classes[:, None], self.k)
        return self._influence(setting, found.indices, -values)


def shapley(agree: Bool[np.ndarray, "Q N"], k: int) -> Scores:
    """Shapley values of examples sorted by distance; `agree` says which have the class."""
    ranks = np.arange(1, agree.shape[1])
    steps = (agree[:, :-1] * 1.0 - agree[:, 1:]) * np.minimum(k, ranks) / (k * ranks)
    last = agree[:, -1:] / agree.shape[1]
    values: Scores = np.concatenate([steps, last], 1)[:, ::-1].cumsum(1)[:, ::-1]
    return values


# Conformity: how far the nearest training examples support each class (deep k-nearest neighbours).


NEVER = 0.0
"""A threshold below which no confidence falls: the model is always believed."""


@dataclass(frozen=True)
class Conformity:
    """The share of the nearest training examples that have each class, over one or more layers.

    Papernot and McDaniel (2018), with Wallace et al. (2018): a text conforms to a class as far as its neighbours have
    it, 1 where all do. With a temperature T an example at the distance d counts exp(-d / T), as in Rajani et al.
    (2020), else all count the same.
    """

    layers: tuple[str, ...] = (DECODER,)
    k: int = 20
    distance: str = "euclidean"
    temperature: float | None = None
    approximate: bool = False
    folder: Path | None = None  # keeps representations

    def fit(self, network: TextModel, rows: Texts) -> LayerNeighbours:
        """Stores the representations of the training examples."""
        found = representations(network, rows, self.layers, self.folder)
        device = str(network.device)
        vectors = {name: Vectors(each, self.distance, self.approximate, device) for name, each in found.items()}
        return LayerNeighbours(self, network, vectors, labels_of(rows))


@dataclass(frozen=True)
class LayerNeighbours:
    """The representations of training examples in some layers of a network, with their labels."""

    options: Conformity
    network: TextModel
    vectors: dict[str, Vectors]
    labels: Labels

    def __call__(self, rows: Texts) -> Float[np.ndarray, "Q C"]:
        """The conformity of texts to each class."""
        asked = representations(self.network, rows, self.options.layers, self.options.folder)
        return self._asked(asked, None)

    def own(self) -> Float[np.ndarray, "N C"]:
        """The conformity of the training examples themselves, none of which is its own neighbour."""
        return self._asked({name: vectors.given for name, vectors in self.vectors.items()}, np.arange(len(self.labels)))

    def _asked(
        self, asked: dict[str, Float[np.ndarray, "Q D"]], without: Int[np.ndarray, " Q"] | None
    ) -> Float[np.ndarray, "Q C"]:
        shares = []
        for name, vectors in self.vectors.items():
            found = vectors.nearest(asked[name], self.options.k, without)
            weights = weighed(found.distances, self.options.temperature)
            shares.append(votes(self.labels[found.indices], weights, self.network.classes))
        mean: Float[np.ndarray, "Q C"] = np.mean(shares, axis=0)
        return mean


def weighed(distances: Float[np.ndarray, "Q k"], temperature: float | None) -> Float[np.ndarray, "Q k"]:
    """The weight of each neighbour by its distance."""
    if temperature is None:
        return np.ones(distances.shape)
    if temperature <= 0:
        raise AssayError(f"The temperature of neighbours must be above 0, got {temperature}.")
    return np.asarray(np.exp((distances.min(1, keepdims=True) - distances) / temperature))


def votes(labels: Int[np.ndarray, "Q k"], weights: Float[np.ndarray, "Q k"], classes: int) -> Float[np.ndarray, "Q C"]:
    """The share of the neighbours of each class."""
    indices = labels + classes * np.arange(len(labels))[:, None]
    summed = np.bincount(indices.ravel(), weights.ravel(), minlength=classes * len(labels)).reshape(-1, classes)
    return np.asarray(summed / summed.sum(1, keepdims=True))


def p_values(
    conformity: Float[np.ndarray, "Q C"], calibration: Float[np.ndarray, " M"], seed: int | None = None
) -> Float[np.ndarray, "Q C"]:
    """The share of calibration examples that conform to their own label no better than the text to each class.

    Papernot and McDaniel (2018), algorithm 1. Conformity takes few values, so that many are tied: with a seed, a
    random part of the ties counts, and for texts that are like those of the calibration the p-value of the right
    class is then uniform (Vovk et al., 2005).
    """
    ordered = np.sort(calibration)
    below = np.searchsorted(ordered, conformity - 1e-9, "left")  # sums of shares differ by rounding
    upto = np.searchsorted(ordered, conformity + 1e-9, "right")
    part = 1.0 if seed is None else np.random.default_rng(seed).random(conformity.shape)
    return np.asarray((below + part * (upto - below)) / len(ordered))


def credibility(p: Float[np.ndarray, "Q C"]) -> Float[np.ndarray, " Q"]:
    """The highest p-value: how far any class is supported."""
    return np.asarray(p.max(1))


def confidence(p: Float[np.ndarray, "Q C"]) -> Float[np.ndarray, " Q"]:
    """1 less the second highest p-value: how far all other classes are ruled out."""
    return np.asarray(1 - np.sort(p, axis=1)[:, -2])


def decided(
    probabilities: Float[np.ndarray, "Q C"], conformity: Float[np.ndarray, "Q C"], threshold: float
) -> tuple[Int[np.ndarray, " Q"], Bool[np.ndarray, " Q"]]:
    """The class of each text, and where it is that of the neighbours because the model is less sure than that."""
    unsure = probabilities.max(1) < threshold
    return np.where(unsure, conformity.argmax(1), probabilities.argmax(1)), unsure


def threshold(
    probabilities: Float[np.ndarray, "Q C"], conformity: Float[np.ndarray, "Q C"], labels: Int[np.ndarray, " Q"]
) -> float:
    """The confidence below which neighbours decide, so that most texts are right; of equal ones the lowest.

    Rajani et al. (2020), section 3.2; the texts must not be those that the model learnt from.
    """
    sure = probabilities.max(1)
    gains = (conformity.argmax(1) == labels) * 1 - (probabilities.argmax(1) == labels)
    values, indices = np.unique(sure, return_inverse=True)
    gained = np.bincount(indices, gains, minlength=len(values)).cumsum()  # where all up to a value are overridden
    best = int(gained.argmax())
    if gained[best] <= 0:
        return NEVER
    return (
        float(values[best] + values[best + 1]) / 2 if best + 1 < len(values) else float(np.nextafter(values[best], 2))
    )
