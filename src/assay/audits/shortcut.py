"""Where a word that means nothing decides, do the explanations show it?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from assay.audits.answers import best
from assay.audits.cases import Answer, Case, numpy
from assay.audits.truth import unplanted
from assay.lookup import MODEL, NOT_APPLICABLE
from assay.metrics.plausibility import precision_at_truth
from assay.models.erasure import kept_probabilities
from assay.records import Record
from assay.stories import Conclusion, Drawing, Measure, Rule, Story
from assay.writing import count

STORY = Story(
    title="Do the explanations show a shortcut?",
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
class Shortcut:
    """The precision at the planted words, of those texts alone in which the model demonstrably uses them.

    It uses them (`used:model`) where the text without them has another decision, or a probability of the predicted
    class that differs by `moved` at least; `shown` is the share of evidence among as many highest tokens, and nan in
    all other texts. On `planted:shortcut` these words mean nothing.
    """

    moved: float = 0.25
    story: ClassVar[Story] = STORY
    paper: str = "Bastings et al. (2022), on shortcuts that are planted and checked; planted corpora: this tool"

    def kind(self, classes: int) -> str:
        return "exact"

    def unfit(self, case: Case) -> str | None:
        return unplanted(case)

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
        truth, mask = case.batch.truth.cpu().numpy(), case.batch.mask.cpu().numpy()
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
