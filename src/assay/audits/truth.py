"""Do the explanations find the words that decide?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from assay.audits.answers import best
from assay.audits.cases import Answer, Case, numpy
from assay.metrics.plausibility import average_precision, precision_at_truth
from assay.records import Record
from assay.stories import Conclusion, Drawing, Measure, Rule, Story

STORY = Story(
    title="Do the explanations find the words that decide?",
    measures=(
        Measure(
            "auprc",
            "AUPRC",
            better="high",
            column="AUPRC",
            place=0,
            help="how well the ranking finds the words that decide by construction",
            main=True,
        ),
        Measure("auprc_size", "AUPRC by absolute score", better="high"),
        Measure("precision", "precision at the number of deciding words", better="high"),
    ),
    drawings=(
        Drawing(
            "dots",
            "truth",
            (
                "How well each explainer finds the deciding words, with 95 % intervals. The dashed line is "
                "the AUPRC of random scores."
            ),
            {
                "measures": {
                    "auprc": "AUPRC",
                    "precision": "precision at the number of deciding words",
                },
                "title": "",
                "drawn": "best",
            },
        ),
    ),
    reading=(
        "In this corpus it is known which words decide, so the ranking can be checked directly: 1 means that "
        "all deciding words come first."
    ),
    rule=Rule(
        "Passes when the 95 % interval of its AUPRC lies at or above 0.8, fails when it lies below 0.5 or "
        "not above what random scores reach. In between it gets a warning.",
        measure="auprc",
        sentence="For the words that decide {name} has an AUPRC of {found}; random scores reach {null} at most.",
        passes=0.8,
        fails=0.5,
        beyond_null=True,
    ),
    terms=("AUPRC",),
)


def unplanted(case: Case) -> str | None:
    """Why the words that decide are not known, or None where they are planted."""
    return None if case.planted and case.batch.truth is not None else "the corpus does not plant the words that decide"


@dataclass(frozen=True)
class Truth:
    """How well scores rank the planted evidence first: AUPRC, and precision at as many words.

    Scores are ranked as they are, the highest first, since planted words speak for the class; `auprc_size` ranks by
    absolute value. What people hold to be evidence is another question: the audit `plausibility`.
    """

    story: ClassVar[Story] = STORY
    paper: str = "DeYoung et al. (2020), section 4.1; planted evidence: this tool"

    def kind(self, classes: int) -> str:
        return "exact"

    def unfit(self, case: Case) -> str | None:
        return unplanted(case)

    def conclude(self, record: Record) -> Conclusion:
        return Conclusion(best(record, "truth", "auprc", "an AUPRC of"))

    def __call__(self, case: Case) -> Answer:
        assert case.batch.truth is not None
        truth, mask = case.batch.truth.cpu().numpy(), case.batch.mask.cpu().numpy()
        measures = {}
        for name, scores in case.scores.items():
            measures[f"auprc:{name}"] = average_precision(numpy(scores), truth, mask)
            measures[f"auprc_size:{name}"] = average_precision(numpy(scores.abs()), truth, mask)
            measures[f"precision:{name}"] = precision_at_truth(numpy(scores), truth, mask)
        return Answer(measures)
