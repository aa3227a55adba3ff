"""Does the item with the highest weight matter more to the output than another one, drawn at random?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.audits.cases import Answer, Case, numpy, without_pooling
from assay.explainers.random import Random
from assay.intervene.erasure import Pooling, gradient, ranked, single_logits
from assay.metrics.divergence import jsd


@dataclass(frozen=True)
class SingleWeight:
    """What erasing the top item i* alone does to the output, less what erasing a random other item r does.

    `delta_js` is JS(p, q without i*) − JS(p, q without r) in nats, `delta_weight` the difference of their attention,
    `smaller` tells where i* did less; of the decision, `both`, `top_only`, `other_only` or `neither` of the two changes
    it. The top item is that of the attention, of the gradient, or of their product. One r is drawn for each text, by
    its words and the seed alone. Texts with a single item are left out.
    """

    # differs from Serrano and Smith (2019): section 4.1 draws r from all items, so that it can be i* itself

    seed: int = 0
    paper: str = "Serrano and Smith (2019), section 4, figures 3 and 4 and table 2"

    def kind(self, classes: int) -> str:
        return "sample"

    def unfit(self, case: Case) -> str | None:
        return without_pooling(case)

    def __call__(self, case: Case) -> Answer:
        pooling = Pooling.of(case.values, case.weights, case.items, case.empty)
        chance = drawn(case, self.seed)
        logits = single_logits(pooling)
        single = Single(
            _apart(pooling.logits, logits),
            numpy(pooling.weights),
            (logits.argmax(-1) != pooling.predicted[:, None]).cpu().numpy(),
        )
        measures: dict[str, np.ndarray] = {}
        for subject, scores in rankings(pooling).items():
            top = ranked(scores, pooling.mask)[:, :1]
            others = pooling.mask.scatter(1, top, False)
            other = ranked(chance, others)[:, :1]
            found = single.compared(top.cpu().numpy(), other.cpu().numpy())
            defined = others.any(-1).cpu().numpy()
            measures |= {f"{name}:{subject}": np.where(defined, values, np.nan) for name, values in found.items()}
        return Answer(measures)


def rankings(pooling: Pooling) -> dict[str, Float[Tensor, "B N"]]:
    """Item scores that involve attention: the weights, the gradient of the output by each weight, and their product."""
    by_weight = gradient(pooling)
    return {"attention": pooling.weights, "gradient": by_weight, "product": by_weight * pooling.weights}


def drawn(case: Case, seed: int) -> Float[Tensor, "B N"]:
    """A random number for each item, by its place, the text and the seed alone: that of the token in this place."""
    return Random(seed)(case.model, case.batch, case.predicted)[:, : case.items.shape[1]]


@dataclass(frozen=True)
class Single:
    """What happens when each item alone is erased, and the weight that it had."""

    apart: Float[np.ndarray, "B N"]
    weights: Float[np.ndarray, "B N"]
    flipped: Bool[np.ndarray, "B N"]

    def compared(self, top: Int[np.ndarray, "B 1"], other: Int[np.ndarray, "B 1"]) -> dict[str, np.ndarray]:
        """Every measure of one item against another."""
        divergence, weight = (_at(each, top) - _at(each, other) for each in (self.apart, self.weights))
        by_top, by_other = (_at(self.flipped, place) for place in (top, other))
        return {
            "delta_js": divergence,
            "delta_weight": weight,
            "smaller": divergence < 0,
            "both": by_top & by_other,
            "top_only": by_top & ~by_other,
            "other_only": ~by_top & by_other,
            "neither": ~by_top & ~by_other,
        }


def _at(values: np.ndarray, place: Int[np.ndarray, "B 1"]) -> np.ndarray:
    return np.take_along_axis(values, place, 1)[:, 0]


def _apart(whole: Float[Tensor, "B C"], erased: Float[Tensor, "B N C"]) -> Float[np.ndarray, "B N"]:
    """The divergence of each output from that of the whole text."""
    after = numpy(erased.softmax(-1))
    return jsd(np.broadcast_to(numpy(whole.softmax(-1))[:, None], after.shape), after)
