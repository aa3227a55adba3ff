"""Do the explanations rank the words of a text alike?"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from assay.audits.cases import Answer, Case, numpy
from assay.metrics.agreement import correlation, ranked


@dataclass(frozen=True)
class Agreement:
    """Kendall's τ-b between the absolute scores of every two explainers."""

    paper: str = "Jain and Wallace (2019), section 4.1, table 2 and figure 2"

    def kind(self, classes: int) -> str:
        return "exact"

    def unfit(self, case: Case) -> str | None:
        return None if len(case.scores) > 1 else "it takes two explainers to agree"

    def __call__(self, case: Case) -> Answer:
        mask = case.batch.mask.cpu().numpy()
        sizes = {name: ranked(numpy(scores.abs()), mask) for name, scores in case.scores.items()}
        measures = {}
        for one, other in combinations(sizes, 2):
            found = correlation(sizes[one], sizes[other])
            measures[f"tau:{one}~{other}"] = found.tau
            measures[f"p:{one}~{other}"] = found.p
        return Answer(measures)
