"""How much of the furthest attention does the published search find?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from assay.audits.cases import Answer, Case, numpy, without_pooling
from assay.intervene.adversary import Search, furthest
from assay.lookup import known
from assay.records import Record
from assay.stories import Conclusion, Measure, Story
from assay.writing import evidence

ALIKE = 1e-4  # JSDs this close count as the same


STORY = Story(
    title="Does a search find the furthest attention?",
    measures=(
        Measure("jsd", "furthest equal-prediction attention (JSD)"),
        Measure("searched"),
        Measure("found", main=True),
        Measure("reached", main=True),
    ),
    reading=(
        "A search of some hundred steps was the published way to find another attention with the same "
        "prediction. What it finds is a lower bound; the furthest one is computed, exactly where there are "
        "two classes. A low share means that the search makes attention look harder to replace than it is."
    ),
    ungraded="It tells how far a search can be trusted; it is no test of an explanation.",
    about="model",
    kinds=dict.fromkeys(("exact", "to rounding", "bracket", "lower bound", "sample"), "search"),
)


@dataclass(frozen=True)
class Searched:
    """ε-max JSD by the paper's ascent of 500 steps, beside the furthest attention, which is exact for two classes.

    What the search finds is a lower bound, and all numbers of this audit are about it. `found` is the share of the
    furthest divergence that the search reaches, where there is any, and `reached` says whether it reaches all of it.
    """

    epsilon: float = 0.01
    k: int = 5
    steps: int = 500
    seed: int = 0
    story: ClassVar[Story] = STORY
    paper: str = "Jain and Wallace (2019), section 4.2.2; the furthest attention: this tool"

    def kind(self, classes: int) -> str:
        return "search"

    def unfit(self, case: Case) -> str | None:
        return without_pooling(case)

    def conclude(self, record: Record) -> Conclusion:
        found, reached = known(record, "searched", "found"), known(record, "searched", "reached")
        if found is None or reached is None:
            return Conclusion()
        return Conclusion(
            f"The search of Jain and Wallace (2019) reaches {found.mean:.0%} of the largest divergence on average "
            f"({evidence(found.low, found.high, found.n)}), and all of it in {reached.mean:.0%} of the texts."
        )

    def __call__(self, case: Case) -> Answer:
        given = case.values, case.weights, case.items, self.epsilon, self.k
        best = furthest(*given).jsd[:, 0]
        met = Search(self.steps, seed=self.seed)(*given).jsd[:, 0]
        share = (met / best).where(best > ALIKE, torch.nan)
        measures = {"jsd": best, "searched": met, "found": share, "reached": (best - met <= ALIKE).double()}
        return Answer({name: numpy(values) for name, values in measures.items()})
