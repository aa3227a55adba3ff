"""Where do the explanations contradict each other?"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

from assay.audits.answers import extremes, mean, pairs
from assay.audits.cases import Answer, Case, numpy
from assay.metrics.agreement import sign_agreement, top_overlap
from assay.records import Record
from assay.stories import Conclusion, Drawing, Measure, Story
from assay.writing import number

STORY = Story(
    title="Do the explanations name the same words?",
    measures=(
        Measure("overlap", "overlap of the top words", main=True),
        Measure("sign", "same sign (share of words)", main=True),
    ),
    drawings=(
        Drawing(
            "matrix",
            "consistency_overlap",
            options={
                "measure": "overlap",
                "title": "Overlap of the top words",
                "reading": "the share of the highest words that two have in common",
                "order": ["agreement", "tau"],
            },
        ),
        Drawing(
            "matrix",
            "consistency_sign",
            options={
                "measure": "sign",
                "title": "Same sign",
                "reading": "the share of words that both call a reason for, or both against, the class; "
                "scores without signs are left out",
                "order": ["agreement", "tau"],
            },
        ),
    ),
    reading=(
        "Two explanations of one prediction that name different words cannot both be the whole reason. "
        "Explainers stand in the order of their likeness, so that families show as dark blocks."
    ),
    ungraded="Two explanations may differ and each be right in part; no limit between them can be defended.",
)


@dataclass(frozen=True)
class Consistency:
    """How much of their highest words every two explainers share, and how often their signs are the same.

    Scores are ranked as they are. The rank correlation of all words is what the audit `agreement` measures.
    """

    share: float = 0.2
    story: ClassVar[Story] = STORY
    paper: str = "Krishna et al. (2022), section 3.2: the disagreement problem"

    def kind(self, classes: int) -> str:
        return "exact"

    def unfit(self, case: Case) -> str | None:
        return None if len(case.scores) > 1 else "it takes two explainers to contradict each other"

    def conclude(self, record: Record) -> Conclusion:
        told = extremes(record, "consistency", "overlap", "an overlap of the top words of")
        signs = pairs(record, "consistency", "sign")
        if not told or not signs:
            return Conclusion(told)
        return Conclusion(f"{told} They give a word the same sign in {number(mean(signs), 2)} of cases on average.")

    def __call__(self, case: Case) -> Answer:
        mask = case.batch.mask.cpu().numpy()
        scores = {name: numpy(values) for name, values in case.scores.items()}
        measures = {}
        for one, other in combinations(scores, 2):
            measures[f"overlap:{one}~{other}"] = top_overlap(scores[one], scores[other], mask, self.share)
            measures[f"sign:{one}~{other}"] = sign_agreement(scores[one], scores[other], mask)
        return Answer(measures)
