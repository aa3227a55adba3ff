"""Which layers' attention does the answer depend on?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat

import numpy as np
from jaxtyping import Float
from torch import Tensor

from assay.audits.cases import Answer, Case, numpy
from assay.audits.stack import answers, of_stack, seeds, without_stack
from assay.intervene.attention import Within, uniform
from assay.intervene.layers import Shuffled
from assay.metrics.divergence import tvd
from assay.types import Edit

ALL = "all layers"


@dataclass(frozen=True)
class LayerByLayer:
    """How far the output moves when the attention of one layer is other than it was, and when that of all layers is.

    `uniform` is the total variation distance with equal weights on all that may be attended to, `permuted` its median
    over some `shuffles` of the weights of every head and attending place; `uniform_flips` and `permuted_flips` are how
    often the decision changes. The layers above go on from what they are given.
    """

    shuffles: int = 5
    paper: str = "Jain and Wallace (2019), algorithm 2, and Wiegreffe and Pinter (2019), layer by layer"

    def kind(self, classes: int) -> str:
        return "sample"

    def unfit(self, case: Case) -> str | None:
        return without_stack(case)

    def __call__(self, case: Case) -> Answer:
        measures: dict[str, Float[np.ndarray, " B"]] = {}
        for subject, layers in _choices(of_stack(case).layers).items():
            even = answers(case, repeat(Within(uniform, layers)), 1)
            shuffled = answers(case, _shuffles(case.seed, layers), self.shuffles)
            for name, found in {"uniform": even, "permuted": shuffled}.items():
                measures |= {f"{measure}:{subject}": values for measure, values in _moved(case, name, found).items()}
        return Answer(measures)


def _choices(layers: int) -> dict[str, tuple[int, ...] | None]:
    """Which layers are changed, by the name of the choice: the lowest is layer 0."""
    return {ALL: None} | {f"layer {layer}": (layer,) for layer in range(layers)}


def _shuffles(seed: int, layers: tuple[int, ...] | None) -> Iterator[Edit]:
    return (Within(Shuffled(each), layers) for each in seeds(seed))


def _moved(case: Case, name: str, found: Float[Tensor, "B N C"]) -> dict[str, Float[np.ndarray, " B"]]:
    """How far the versions of each text lie from it, and how many of them are decided otherwise."""
    distance = tvd(found, case.probabilities[:, None]).quantile(0.5, dim=-1)
    flips = (found.argmax(-1) != case.predicted[:, None]).double().mean(-1)
    return {name: numpy(distance), f"{name}_flips": numpy(flips)}
