"""Where a word that means nothing decides, do the explanations show it?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from assay.audits.cases import Answer, Case, numpy
from assay.audits.truth import UNPLANTED
from assay.metrics.overlap import precision_at_truth
from assay.models.erasure import kept_probabilities


@dataclass(frozen=True)
class Shortcut:
    """The precision at the planted words, of those texts alone in which the model demonstrably uses them.

    It uses them (`used:model`) where the text without them has another decision, or a probability of the predicted
    class that differs by `moved` at least; `shown` is the share of evidence among as many highest tokens, and nan in
    all other texts. On `planted:shortcut` these words mean nothing.
    """

    moved: float = 0.25
    paper: str = "Bastings et al. (2022), on shortcuts that are planted and checked; planted corpora: this tool"

    def kind(self, classes: int) -> str:
        return "exact"

    def unfit(self, case: Case) -> str | None:
        return None if case.planted and case.batch.truth is not None else UNPLANTED

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
