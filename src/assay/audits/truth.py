"""Do the explanations find the words that decide?"""

from __future__ import annotations

from dataclasses import dataclass

from assay.audits.cases import Answer, Case, numpy
from assay.metrics.overlap import average_precision, precision_at_truth

UNPLANTED = "the corpus does not plant the words that decide"


@dataclass(frozen=True)
class Truth:
    """How well scores rank the planted evidence first: AUPRC, and precision at as many words.

    Scores are ranked as they are, the highest first, since planted words speak for the class; `auprc_size` ranks by
    absolute value. What people hold to be evidence is another question: the audit `plausibility`.
    """

    paper: str = "DeYoung et al. (2020), section 4.1; planted evidence: this tool"

    def kind(self, classes: int) -> str:
        return "exact"

    def unfit(self, case: Case) -> str | None:
        return None if case.planted and case.batch.truth is not None else UNPLANTED

    def __call__(self, case: Case) -> Answer:
        assert case.batch.truth is not None
        truth, mask = case.batch.truth.cpu().numpy(), case.batch.mask.cpu().numpy()
        measures = {}
        for name, scores in case.scores.items():
            measures[f"auprc:{name}"] = average_precision(numpy(scores), truth, mask)
            measures[f"auprc_size:{name}"] = average_precision(numpy(scores.abs()), truth, mask)
            measures[f"precision:{name}"] = precision_at_truth(numpy(scores), truth, mask)
        return Answer(measures)
