"""Erasure of the most attended item, beside that of a random other one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.audits.cases import Answer, BaseAudit, Case, ItemValues, Numbers, numpy, of_subject, without_pooling
from assay.audits.statements import lead
from assay.explainers.baselines import Random
from assay.intervene.pooled_attention import Pooling, gradient, ranked, single_logits
from assay.lookup import bounded, items, known, shared
from assay.metrics.information import jsd
from assay.records import Record
from assay.stories import Conclusion, Drawing, Measure, Rule, Story
from assay.writing import count, evidence, percent

STORY = Story(
    title="Does the most attended {item} matter more than another?",
    question="Does the item with the highest weight matter more to the output than another one, drawn at random?",
    measures=(
        Measure("delta_js", "how much more the top item moves the output (ΔJS)", main=True),
        Measure("delta_weight", "gap between their attention weights (Δα)"),
        Measure("smaller", "texts in which it moves the output less (share)", main=True),
        Measure("both", "either item alone changes the decision (share)"),
        Measure("top_only", "only the top item changes the decision (share)"),
        Measure("other_only", "only the other item changes the decision (share)"),
        Measure("neither", "neither changes the decision (share)"),
    ),
    drawings=(
        Drawing(
            "binned",
            "single_weight",
            (
                "How much more the output moves (JS divergence, nats) without the most attended {item} than "
                "without a random other one, by the gap between their attention weights. Box: the middle half "
                "of the texts; thick tick: median; thin line: to the last text within 1.5 box lengths."
            ),
            {
                "value": "delta_js:attention",
                "flag": "smaller:attention",
                "by": "delta_weight:attention",
                "title": "how much more it moves the output (ΔJS)",
            },
        ),
        Drawing(
            "binned",
            "single_weight_smaller",
            (
                "In how many texts the most attended {item} moves the output less than the other one, by the "
                "gap between their attention weights."
            ),
            {
                "value": "delta_js:attention",
                "flag": "smaller:attention",
                "by": "delta_weight:attention",
                "title": "texts in which it moves the output less",
                "counts": True,
            },
        ),
        Drawing(
            "flips",
            "single_weight_flips",
            options={
                "tops": {
                    "attention": "the most attended {item}",
                    "gradient": "the {item} of the highest gradient",
                    "product": "the {item} of the highest gradient × attention",
                }
            },
        ),
    ),
    reading=(
        "The attention weight of one {item} is set to zero and the others share its attention. If attention "
        "tells what matters, boxes lie right of 0, and the further right the larger the gap (upper rows); "
        "bars are long only where the gap is small; and in the tables the {item} on top alone changes many "
        "more decisions than the other one alone. Where neither does, the decision does not hang on one "
        "{item}."
    ),
    rule=Rule(
        "Passes when surely more decisions hang on the most attended one alone than on a random other one "
        "alone, fails when surely fewer do (two-sided sign test over texts, p ≤ 0.05). In between it "
        "gets a warning."
    ),
    about="attention",
    terms=("ΔJS",),
)


@dataclass(frozen=True)
class SingleWeight(BaseAudit):
    """What erasing the top item i* alone does to the output, less what erasing a random other item r does.

    `delta_js` is JS(p, q without i*) − JS(p, q without r) in nats, `delta_weight` the difference of their attention,
    `smaller` tells where i* did less; of the decision, `both`, `top_only`, `other_only` or `neither` of the two changes
    it. The top item is that of the attention, of the gradient, or of their product. One r is drawn for each text, by
    its words and the seed alone. Texts with a single item are left out.
    """

    # differs from Serrano and Smith (2019): section 4.1 draws r from all items, so that it can be i* itself

    seed: int = 0
    story: ClassVar[Story] = STORY
    paper: str = "Serrano and Smith (2019), section 4, figures 3 and 4 and table 2"

    unfit = staticmethod(without_pooling)

    def conclude(self, record: Record) -> Conclusion:
        """How often erasing the most attended item alone changes the decision, beside a random other one."""
        names = ("both", "top_only", "other_only", "smaller")
        both, top, other, smaller = (known(record, "single_weight", name) for name in names)
        if both is None or top is None or other is None or smaller is None:
            return Conclusion()
        one = items(record).one
        answer = (
            f"Erasing the most attended {one} alone changed the decision in {percent(both.mean + top.mean)} of texts "
            f"(n = {count(top.n)}), erasing a random other {one} in {percent(both.mean + other.mean)}; only the first "
            f"did in {shared(top)}. In {percent(smaller.mean)} of texts the most attended "
            f"{one} moved the output less than the other one."
        )
        if any(bounded(record, "single_weight", name) is None for name in ("top_only", "other_only")):
            return Conclusion(answer)
        grade = {1: "pass", 0: "warn", -1: "fail"}[lead(top, other)]
        why = (
            f"In {percent(top.mean)} of texts only the most attended one changes the decision, in "
            f"{percent(other.mean)} only the other one ({evidence(top.low, top.high, top.n)} for the first share)."
        )
        return Conclusion(answer, grade, why)

    def __call__(self, case: Case) -> Answer:
        pooling = Pooling.of(case.values, case.weights, case.items, case.empty)
        chance = drawn(case, self.seed)
        logits = single_logits(pooling)
        single = Single(
            _apart(pooling.logits, logits),
            numpy(pooling.weights),
            (logits.argmax(-1) != pooling.predicted[:, None]).cpu().numpy(),
        )
        measures: Numbers = {}
        for subject, scores in rankings(pooling).items():
            top = ranked(scores, pooling.mask)[:, :1]
            others = pooling.mask.scatter(1, top, False)
            other = ranked(chance, others)[:, :1]
            found = single.compared(top.cpu().numpy(), other.cpu().numpy())
            defined = others.any(-1).cpu().numpy()
            measures |= of_subject(subject, {name: np.where(defined, each, np.nan) for name, each in found.items()})
        return Answer(measures)


def rankings(pooling: Pooling) -> dict[str, Float[Tensor, "B N"]]:
    """Item scores that involve attention: the weights, the gradient of the output by each weight, and their product."""
    by_weight = gradient(pooling)
    return {"attention": pooling.weights, "gradient": by_weight, "product": by_weight * pooling.weights}


def drawn(case: Case, seed: int) -> Float[Tensor, "B N"]:
    """A random number for each item, by its place, the text and the seed alone: that of the token in this place."""
    return Random(seed)(case.model, case.batch, case.predicted)[:, : case.items.shape[1]]


Place = Int[np.ndarray, "B 1"]
"""One item of each text."""


@dataclass(frozen=True)
class Single:
    """What happens when each item alone is erased, and the weight that it had."""

    apart: ItemValues
    weights: ItemValues
    flipped: Bool[np.ndarray, "B N"]

    def compared(self, top: Place, other: Place) -> dict[str, np.ndarray]:
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


def _at(values: np.ndarray, place: Place) -> np.ndarray:
    return np.take_along_axis(values, place, 1)[:, 0]


def _apart(whole: Float[Tensor, "B C"], erased: Float[Tensor, "B N C"]) -> ItemValues:
    """The divergence of each output from that of the whole text."""
    after = numpy(erased.softmax(-1))
    return jsd(np.broadcast_to(numpy(whole.softmax(-1))[:, None], after.shape), after)
