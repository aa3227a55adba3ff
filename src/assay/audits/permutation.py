"""Does the prediction change when the attention weights are shuffled?"""

from __future__ import annotations

from dataclasses import dataclass

from assay.audits.cases import Answer, Case, numpy, without_pooling
from assay.intervene.attention import Permute
from assay.metrics.divergence import tvd


@dataclass(frozen=True)
class Permutation:
    """The median total variation distance of the output over random shuffles, beside the largest weight."""

    shuffles: int = 100
    paper: str = "Jain and Wallace (2019), section 4.2.1, algorithm 2 and figure 6"

    def kind(self, classes: int) -> str:
        return "sample"

    def unfit(self, case: Case) -> str | None:
        return without_pooling(case)

    def __call__(self, case: Case) -> Answer:
        observed = case.weights[:, None]
        shuffled = Permute(case.seed)(observed.expand(-1, self.shuffles, -1), case.items)
        moved, stayed = ((weights @ case.values).softmax(-1) for weights in (shuffled, observed))
        median = tvd(moved, stayed).quantile(0.5, dim=-1)
        return Answer({"median_tvd": numpy(median), "max_attention": numpy(case.weights.amax(-1))})
