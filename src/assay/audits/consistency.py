"""Where do the explanations contradict each other?"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from assay.audits.cases import Answer, Case, numpy
from assay.metrics.agreement import sign_agreement, top_overlap


@dataclass(frozen=True)
class Consistency:
    """How much of their highest words every two explainers share, and how often their signs are the same.

    Scores are ranked as they are. The rank correlation of all words is what the audit `agreement` measures.
    """

    share: float = 0.2
    paper: str = "Krishna et al. (2022), section 3.2: the disagreement problem"

    def kind(self, classes: int) -> str:
        return "exact"

    def unfit(self, case: Case) -> str | None:
        return None if len(case.scores) > 1 else "it takes two explainers to contradict each other"

    def __call__(self, case: Case) -> Answer:
        mask = case.batch.mask.cpu().numpy()
        scores = {name: numpy(values) for name, values in case.scores.items()}
        measures = {}
        for one, other in combinations(scores, 2):
            measures[f"overlap:{one}~{other}"] = top_overlap(scores[one], scores[other], mask, self.share)
            measures[f"sign:{one}~{other}"] = sign_agreement(scores[one], scores[other], mask)
        return Answer(measures)
