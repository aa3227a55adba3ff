"""Do the explanations rank the words of a text alike?"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

from assay.audits.answers import extremes, tested
from assay.audits.cases import Answer, Case, numpy
from assay.metrics.agreement import correlation, ranked
from assay.records import Finding, Record
from assay.stories import Conclusion, Drawing, Measure, Rule, Story

REFERENCE = "leave_one_out"
STORY = Story(
    title="Do the explanations agree with each other?",
    measures=(
        Measure("tau", "Kendall τ", main=True),
        Measure("significant", "texts whose τ differs from 0 at p ≤ 0.05 (share)"),
    ),
    drawings=(
        Drawing(
            "histogram",
            "agreement_gradient",
            "Attention and gradients, text by text. The dashed line at 0 is what unrelated rankings give.",
            {
                "columns": ["tau:attention~gradient", "tau:gradient~attention"],
                "title": "Kendall τ of attention with gradients",
                "edges": [-1, 1, 20],
                "line": 0,
            },
        ),
        Drawing(
            "histogram",
            "agreement_leave_one_out",
            "Attention and leave-one-out, text by text. The dashed line at 0 is what unrelated rankings give.",
            {
                "columns": ["tau:attention~leave_one_out", "tau:leave_one_out~attention"],
                "title": "Kendall τ of attention with leave-one-out",
                "edges": [-1, 1, 20],
                "line": 0,
            },
        ),
        Drawing(
            "matrix",
            "agreement_tau",
            options={
                "measure": "tau",
                "title": "Kendall τ",
                "reading": "1 the same ranking of the words, 0 unrelated, below 0 reversed",
                "order": ["agreement", "tau"],
            },
        ),
    ),
    reading=(
        "If attention tells why a model decides, it should rank the words much as other measures of "
        "importance do. A heap near 1 means that it does, a heap around 0 that the rankings have nothing to "
        "do with each other. A share of significant texts says only that some relation is there: long texts "
        "make weak relations significant."
    ),
    rule=Rule(
        "Passes when the 95 % interval of its τ with leave_one_out lies at or above 0.6, fails when it "
        "lies below 0.4 or not above what random scores reach. In between it gets a warning.",
        measure="tau",
        sentence="With leave_one_out {name} has a τ of {found}; random scores reach {null} at most.",
        passes=0.6,
        fails=0.4,
        beyond_null=True,
        reference=REFERENCE,
    ),
    subjects="pair",
)


@dataclass(frozen=True)
class Agreement:
    """Kendall's τ-b between the absolute scores of every two explainers."""

    story: ClassVar[Story] = STORY
    paper: str = "Jain and Wallace (2019), section 4.1, table 2 and figure 2"

    def kind(self, classes: int) -> str:
        return "exact"

    def unfit(self, case: Case) -> str | None:
        return None if len(case.scores) > 1 else "it takes two explainers to agree"

    def conclude(self, record: Record) -> Conclusion:
        """The pairs of the paper: attention with each of its two rivals, then these with each other."""
        rivals = [(name, _either(record, "attention", name)) for name in ("gradient", REFERENCE)]
        told = [f"with {name} at τ {tested(found)}" for name, found in rivals if found]
        between = _either(record, "gradient", REFERENCE)
        ending = f"gradient and {REFERENCE} agree with each other at τ {tested(between)}" if between else ""
        if told:
            return Conclusion(f"Attention agrees {' and '.join(told)}{'; ' if ending else ''}{ending}.")
        if between:
            return Conclusion(f"{ending[0].upper()}{ending[1:]}.")
        return Conclusion(extremes(record, "agreement", "tau", "a τ of"))

    def __call__(self, case: Case) -> Answer:
        mask = case.batch.mask.cpu().numpy()
        sizes = {name: ranked(numpy(scores.abs()), mask) for name, scores in case.scores.items()}
        measures = {}
        for one, other in combinations(sizes, 2):
            found = correlation(sizes[one], sizes[other])
            measures[f"tau:{one}~{other}"] = found.tau
            measures[f"p:{one}~{other}"] = found.p
        return Answer(measures)


def _either(record: Record, one: str, other: str) -> Finding | None:
    found = (record.finding("agreement", subject, "tau") for subject in (f"{one}~{other}", f"{other}~{one}"))
    return next((finding for finding in found if finding is not None and finding.n > 0), None)
