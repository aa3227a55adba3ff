"""How much of the furthest attention does the published search find?"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from assay.audits.cases import Answer, Case, numpy, without_pooling
from assay.intervene.adversary import furthest
from assay.intervene.adversary.search import Search

ALIKE = 1e-4  # JSDs this close count as the same


@dataclass(frozen=True)
class Searched:
    """ε-max JSD by the paper's ascent of 500 steps, beside the furthest attention, which is exact for two classes.

    What the search finds is a lower bound, and all numbers of this audit are about it. `found` is the share of the
    furthest divergence that the search reaches, where there is any, and `reached` says whether it reaches all of it.
    """

    epsilon: float = 0.01
    k: int = 5
    steps: int = 500
    seed: int = 0
    paper: str = "Jain and Wallace (2019), section 4.2.2; the furthest attention: this tool"

    def kind(self, classes: int) -> str:
        return "search"

    def unfit(self, case: Case) -> str | None:
        return without_pooling(case)

    def __call__(self, case: Case) -> Answer:
        given = case.values, case.weights, case.items, self.epsilon, self.k
        best = furthest(*given).jsd[:, 0]
        met = Search(self.steps, seed=self.seed)(*given).jsd[:, 0]
        share = (met / best).where(best > ALIKE, torch.nan)
        measures = {"jsd": best, "searched": met, "found": share, "reached": (best - met <= ALIKE).double()}
        return Answer({name: numpy(values) for name, values in measures.items()})
