"""Explanations against known evidence: planted words, shortcuts that the model uses, and words that people marked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from assay.audits.cases import Answer, BaseAudit, Case, Numbers, Resources, TokenMask, TokenValues, numpy, of_subject
from assay.audits.statements import best
from assay.lookup import MODEL, NOT_APPLICABLE
from assay.metrics import plausibility
from assay.metrics.plausibility import auprc, average_precision, precision_at_truth
from assay.models.erasure import kept_probabilities
from assay.records import Record
from assay.stories import Conclusion, Drawing, Measure, Rule, Story
from assay.writing import count

TRUTH = Story(
    title="Do the explanations find the words that decide?",
    question="Do the explanations find the words that decide?",
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
class Truth(BaseAudit):
    """How well scores rank the planted evidence first: AUPRC, and precision at as many words.

    Scores are ranked as they are, the highest first, since planted words speak for the class; `auprc_size` ranks by
    absolute value. What people hold to be evidence is another question: the audit `plausibility`.
    """

    reliability: ClassVar[str] = "exact"
    story: ClassVar[Story] = TRUTH
    paper: str = "DeYoung et al. (2020), section 4.1; planted evidence: this tool"

    unfit = staticmethod(unplanted)

    def conclude(self, record: Record) -> Conclusion:
        return Conclusion(best(record, "truth", "auprc", "an AUPRC of"))

    def __call__(self, case: Case) -> Answer:
        assert case.batch.truth is not None
        truth, mask = case.batch.truth.cpu().numpy(), case.mask
        measures = {}
        for name, scores in case.scores.items():
            measures[f"auprc:{name}"] = average_precision(numpy(scores), truth, mask)
            measures[f"auprc_size:{name}"] = average_precision(numpy(scores.abs()), truth, mask)
            measures[f"precision:{name}"] = precision_at_truth(numpy(scores), truth, mask)
        return Answer(measures)


SHORTCUT = Story(
    title="Do the explanations show a shortcut?",
    question="Where a word that means nothing decides, do the explanations show it?",
    measures=(
        Measure("used", "texts in which the model uses the shortcut (share)"),
        Measure(
            "shown",
            "how well the shortcut is shown",
            better="high",
            column="shortcut",
            place=7,
            help="how well it shows the planted token that was used",
            main=True,
        ),
    ),
    drawings=(
        Drawing(
            "dots",
            "shortcut",
            (
                "Precision among as many of the highest words as were planted, in texts where the model uses "
                "them, with 95 % intervals. The dashed line is where random scores are."
            ),
            {"measures": {"shown": ""}, "title": "how well the shortcut is shown", "drawn": "best"},
        ),
    ),
    reading=(
        "The planted words decide; in a shortcut they mean nothing. Only texts in which the model surely uses "
        "them count. An explainer that does not show them would hide the fault."
    ),
    rule=Rule(
        "Passes when the 95 % interval of its precision at the planted words lies at or above 0.8, fails "
        "when it lies below 0.5 or not above what random scores reach. In between it gets a warning.",
        measure="shown",
        sentence="At the planted words {name} has a precision of {found}; random scores reach {null} at most.",
        passes=0.8,
        fails=0.5,
        beyond_null=True,
    ),
)


@dataclass(frozen=True)
class Shortcut(BaseAudit):
    """The precision at the planted words, of those texts alone in which the model demonstrably uses them.

    It uses them (`used:model`) where the text without them has another decision, or a probability of the predicted
    class that differs by `moved` at least; `shown` is the share of evidence among as many highest tokens, and nan in
    all other texts. On `planted:shortcut` these words mean nothing.
    """

    moved: float = 0.25
    reliability: ClassVar[str] = "exact"
    story: ClassVar[Story] = SHORTCUT
    paper: str = "Bastings et al. (2022), on shortcuts that are planted and checked; planted corpora: this tool"

    unfit = staticmethod(unplanted)

    def conclude(self, record: Record) -> Conclusion:
        used = record.finding("shortcut", MODEL, "used")
        told = best(record, "shortcut", "shown", "a precision at the planted words of")
        if used is None or used.n == 0:
            return Conclusion(told)
        share = f"The model uses the planted words in {100 * used.mean:.0f} of 100 texts (n = {count(used.n)})."
        unused = f"The model uses the planted words in none of {count(used.n)} texts."
        answer = f"{share} {told}" if told else f"{share} So there is nothing to show."
        return Conclusion(answer, NOT_APPLICABLE, unused) if used.mean == 0 else Conclusion(answer)

    def __call__(self, case: Case) -> Answer:
        assert case.batch.truth is not None
        truth, mask = case.batch.truth.cpu().numpy(), case.mask
        used = self._used(case)
        measures = {"used:model": used}
        for name, scores in case.scores.items():
            shown = precision_at_truth(numpy(scores), truth, mask)
            measures[f"shown:{name}"] = np.where(used == 1, shown, np.nan)
        return Answer(measures)

    def _used(self, case: Case) -> Float[np.ndarray, " B"]:
        """1 where the model uses the evidence, else 0; nan where there is none."""
        assert case.batch.truth is not None
        without = kept_probabilities(case.model, case.batch, ~case.batch.truth[:, None])[:, 0]
        chosen = case.predicted[:, None]
        change = (without.gather(1, chosen) - case.probabilities.gather(1, chosen)).abs()[:, 0]
        used = (change >= self.moved) | (without.argmax(-1) != case.predicted)
        marked = (case.batch.truth & case.batch.mask).any(-1)
        return np.where(marked.cpu().numpy(), numpy(used), np.nan)


HUMAN: dict[str, Any] = {
    "faithful": False,
    "caution": "what people find convincing, not what the model did",
    "main": True,
}
"""What holds for every match with what people marked."""

PLAUSIBILITY = Story(
    title="Do the explanations convince people?",
    question="Do the explanations mark the words that people mark?",
    measures=(
        Measure(
            "token_f1",
            "token F1",
            better="high",
            column="human token F1",
            short="human F1",
            place=10,
            help="overlap with the words that people marked",
            **HUMAN,
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
            **HUMAN,
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
            **HUMAN,
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
class Plausibility(BaseAudit):
    """Token F1 and IOU F1 of the highest words against human evidence, AUPRC and average precision of all scores.

    As many words are taken as people mark: `share` of a text's tokens, the mean over all audited texts with evidence
    (over those of the batch where the audit was not prepared). Scores are ranked as they are, the highest first, of
    equal ones the earlier. Texts without evidence have no number. That people find an explanation convincing does not
    make it true to the model.
    """

    share: float | None = None
    story: ClassVar[Story] = PLAUSIBILITY
    paper: str = "DeYoung et al. (2020), section 4.1"

    def prepared(self, resources: Resources) -> Plausibility:
        """The same audit with the share of evidence in all texts."""
        shares = [
            float(row.truth.double().mean()) for row in resources.rows if row.truth is not None and row.truth.any()
        ]
        return replace(self, share=float(np.mean(shares))) if shares else self

    reliability: ClassVar[str] = "exact"

    def unfit(self, case: Case) -> str | None:
        if case.batch.truth is None:  # a corpus without evidence, or one batch of a corpus that has some
            return "the corpus does not mark the words that people go by" if self.share is None else None
        return "the words that decide are planted, not marked by people" if case.planted else None

    def conclude(self, record: Record) -> Conclusion:
        told = best(record, "plausibility", "auprc", "an AUPRC of")
        warning = "This tells what people find convincing, not what the model did."
        return Conclusion(f"{told} {warning}" if told else "")

    def __call__(self, case: Case) -> Answer:
        mask = case.mask
        truth = np.zeros_like(mask) if case.batch.truth is None else case.batch.truth.cpu().numpy() & mask
        share = self.share or _evidence(truth, mask)
        measures: Numbers = {}
        for name, values in case.scores.items():
            measures |= of_subject(name, _compared(numpy(values), truth, mask, share))
        return Answer(measures)


def _evidence(truth: TokenMask, mask: TokenMask) -> float:
    """The mean share of tokens that are evidence, over the texts that have any; 0 where none has."""
    shares = truth.sum(-1) / mask.sum(-1)
    return float(shares.sum() / max(1, (shares > 0).sum()))


def _compared(scores: TokenValues, truth: TokenMask, mask: TokenMask, share: float) -> Numbers:
    """Every measure of one explainer."""
    chosen = plausibility.top(scores, mask, share)
    spans = plausibility.spans(chosen), plausibility.spans(truth)
    counts = {"token": plausibility.token_counts(chosen, truth), "iou": plausibility.span_counts(*spans, len(mask))}
    undefined = ~truth.any(-1) | (np.isnan(scores) & mask).any(-1)
    measures = {}
    for kind, counted in counts.items():
        of = plausibility.scores(counted)
        for title in ("f1", "precision", "recall"):
            measures[f"{kind}_{title}"] = np.where(undefined, np.nan, getattr(of, title))
    measures["auprc"] = auprc(scores, truth, mask)
    measures["average_precision"] = average_precision(scores, truth, mask)
    return measures
