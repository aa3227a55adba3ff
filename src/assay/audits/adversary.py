"""How different can the attention be while the prediction stays the same?"""

from __future__ import annotations

from dataclasses import dataclass

from assay.audits.cases import Answer, Case, numpy, without_pooling
from assay.intervene.adversary import furthest


@dataclass(frozen=True)
class Adversary:
    """ε-max JSD: the largest divergence of an attention that moves the output by at most ε; exact for two classes.

    `jsd_upper` is certified for any number: no attention within ε diverges more.
    """

    epsilon: float = 0.01
    k: int = 5
    paper: str = "Jain and Wallace (2019), section 4.2.2, equation 1, figures 7 and 8"

    def kind(self, classes: int) -> str:
        return {2: "exact", 3: "bracket"}.get(classes, "lower bound")

    def unfit(self, case: Case) -> str | None:
        return without_pooling(case)

    def __call__(self, case: Case) -> Answer:
        found = furthest(case.values, case.weights, case.items, self.epsilon, self.k)
        measures = {
            "jsd": found.jsd[:, 0],
            "jsd_upper": found.upper,
            "tvd": found.tvd[:, 0],
            "jsd_of_k": found.jsd.mean(-1),
            "max_attention": case.weights.amax(-1),
        }
        return Answer(
            {name: numpy(values) for name, values in measures.items()},
            {"adversary": numpy(case.shown(found.weights[:, 0]))},
        )
