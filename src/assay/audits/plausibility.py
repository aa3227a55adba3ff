"""Do the explanations mark the words that people mark?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float

from assay.audits.answers import best
from assay.audits.cases import Answer, Case, numpy
from assay.audits.resources import Resources
from assay.metrics import plausibility
from assay.metrics.plausibility import auprc, average_precision
from assay.records import Record
from assay.stories import Conclusion, Drawing, Measure, Story

STORY = Story(
    title="Do the explanations convince people?",
    measures=(
        Measure(
            "token_f1",
            "token F1",
            better="high",
            column="human token F1",
            short="human F1",
            place=10,
            help="overlap with the words that people marked",
            faithful=False,
            caution="what people find convincing, not what the model did",
            main=True,
        ),
        Measure("token_precision"),
        Measure("token_recall"),
        Measure(
            "iou_f1",
            "IOU F1",
            better="high",
            column="human IOU F1",
            short="human IOU",
            place=11,
            help="overlap with the passages that people marked",
            faithful=False,
            caution="what people find convincing, not what the model did",
            main=True,
        ),
        Measure("iou_precision", "IOU precision"),
        Measure("iou_recall", "IOU recall"),
        Measure(
            "auprc",
            "AUPRC",
            better="high",
            column="human AUPRC",
            short="human AUC",
            place=12,
            help="how well the ranking finds the words that people marked",
            faithful=False,
            caution="what people find convincing, not what the model did",
            main=True,
        ),
        Measure("average_precision", better="high"),
    ),
    drawings=(
        Drawing(
            "dots",
            "plausibility",
            (
                "Match with the words that people marked, with 95 % intervals. The dashed line is the AUPRC "
                "of random scores. What people find convincing, not what the model did."
            ),
            {
                "measures": {"auprc": "AUPRC", "token_f1": "token F1"},
                "title": "match with what people marked",
                "drawn": "best",
            },
        ),
    ),
    reading=(
        "People marked the words that they hold to be the reason. An explainer that finds them is easy to "
        "believe, and may still be wrong about the model, which may have used other words. These numbers do "
        "not count in the order of the leaderboard."
    ),
    ungraded="It tells what people find convincing, not whether an explanation is true to the model.",
    terms=("AUPRC",),
)


@dataclass(frozen=True)
class Plausibility:
    """Token F1 and IOU F1 of the highest words against human evidence, AUPRC and average precision of all scores.

    As many words are taken as people mark: `share` of a text's tokens, the mean over all audited texts with evidence
    (over those of the batch where the audit was not prepared). Scores are ranked as they are, the highest first, of
    equal ones the earlier. Texts without evidence have no number. That people find an explanation convincing does not
    make it true to the model.
    """

    share: float | None = None
    story: ClassVar[Story] = STORY
    paper: str = "DeYoung et al. (2020), section 4.1"

    def prepared(self, resources: Resources) -> Plausibility:
        """The same audit with the share of evidence in all texts."""
        shares = [
            float(row.truth.double().mean()) for row in resources.rows if row.truth is not None and row.truth.any()
        ]
        return replace(self, share=float(np.mean(shares))) if shares else self

    def kind(self, classes: int) -> str:
        return "exact"

    def unfit(self, case: Case) -> str | None:
        if case.batch.truth is None:  # a corpus without evidence, or one batch of a corpus that has some
            return "the corpus does not mark the words that people go by" if self.share is None else None
        return "the words that decide are planted, not marked by people" if case.planted else None

    def conclude(self, record: Record) -> Conclusion:
        told = best(record, "plausibility", "auprc", "an AUPRC of")
        warning = "This tells what people find convincing, not what the model did."
        return Conclusion(f"{told} {warning}" if told else "")

    def __call__(self, case: Case) -> Answer:
        mask = case.batch.mask.cpu().numpy()
        truth = np.zeros_like(mask) if case.batch.truth is None else case.batch.truth.cpu().numpy() & mask
        share = self.share or _evidence(truth, mask)
        measures: dict[str, np.ndarray] = {}
        for name, values in case.scores.items():
            found = _compared(numpy(values), truth, mask, share)
            measures |= {f"{measure}:{name}": column for measure, column in found.items()}
        return Answer(measures)


def _evidence(truth: Bool[np.ndarray, "B T"], mask: Bool[np.ndarray, "B T"]) -> float:
    """The mean share of tokens that are evidence, over the texts that have any; 0 where none has."""
    shares = truth.sum(-1) / mask.sum(-1)
    return float(shares.sum() / max(1, (shares > 0).sum()))


def _compared(
    scores: Float[np.ndarray, "B T"], truth: Bool[np.ndarray, "B T"], mask: Bool[np.ndarray, "B T"], share: float
) -> dict[str, Float[np.ndarray, " B"]]:
    """Every measure of one explainer."""
    chosen = plausibility.top(scores, mask, share)
    spans = plausibility.spans(chosen), plausibility.spans(truth)
    counts = {"token": plausibility.token_counts(chosen, truth), "iou": plausibility.span_counts(*spans, len(mask))}
    undefined = ~truth.any(-1) | (np.isnan(scores) & mask).any(-1)
    measures = {}
    for kind, counted in counts.items():
        of = plausibility.scores(counted)
        for title, values in (("f1", of.f1), ("precision", of.precision), ("recall", of.recall)):
            measures[f"{kind}_{title}"] = np.where(undefined, np.nan, values)
    measures["auprc"] = auprc(scores, truth, mask)
    measures["average_precision"] = average_precision(scores, truth, mask)
    return measures
