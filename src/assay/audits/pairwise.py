"""Every two explainers beside each other: rank correlation, and overlap and signs of the top words."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

from assay.audits.cases import Answer, BaseAudit, Case, numpy
from assay.audits.statements import extremes, mean, pairs, tested
from assay.metrics.agreement import correlation, ranked, sign_agreement, top_overlap
from assay.records import Finding, Record
from assay.stories import Conclusion, Drawing, Measure, Rule, Story
from assay.writing import number

REFERENCE = "leave_one_out"
AGREEMENT = Story(
    title="Do the explanations agree with each other?",
    question="Do the explanations rank the words of a text alike?",
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
class Agreement(BaseAudit):
    """Kendall's τ-b between the absolute scores of every two explainers."""

    reliability: ClassVar[str] = "exact"
    story: ClassVar[Story] = AGREEMENT
    paper: str = "Jain and Wallace (2019), section 4.1, table 2 and figure 2"

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
        mask = case.mask
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


CONSISTENCY = Story(
    title="Do the explanations name the same words?",
    question="Where do the explanations contradict each other?",
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
class Consistency(BaseAudit):
    """How much of their highest words every two explainers share, and how often their signs are the same.

    Scores are ranked as they are. The rank correlation of all words is what the audit `agreement` measures.
    """

    share: float = 0.2
    reliability: ClassVar[str] = "exact"
    story: ClassVar[Story] = CONSISTENCY
    paper: str = "Krishna et al. (2022), section 3.2: the disagreement problem"

    def unfit(self, case: Case) -> str | None:
        return None if len(case.scores) > 1 else "it takes two explainers to contradict each other"

    def conclude(self, record: Record) -> Conclusion:
        told = extremes(record, "consistency", "overlap", "an overlap of the top words of")
        signs = pairs(record, "consistency", "sign")
        if not told or not signs:
            return Conclusion(told)
        return Conclusion(f"{told} They give a word the same sign in {number(mean(signs), 2)} of cases on average.")

    def __call__(self, case: Case) -> Answer:
        mask = case.mask
        scores = {name: numpy(values) for name, values in case.scores.items()}
        measures = {}
        for one, other in combinations(scores, 2):
            measures[f"overlap:{one}~{other}"] = top_overlap(scores[one], scores[other], mask, self.share)
            measures[f"sign:{one}~{other}"] = sign_agreement(scores[one], scores[other], mask)
        return Answer(measures)
