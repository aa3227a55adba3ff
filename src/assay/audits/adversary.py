"""How different can the attention be while the prediction stays the same?"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from assay.audits.cases import Answer, Case, numpy
from assay.audits.stack import of_stack, parts, stacked, without_attention
from assay.intervene.adversary import furthest
from assay.intervene.layers import Stack
from assay.intervene.stacked import StackSearch, limit
from assay.types import Batch, Model


@dataclass(frozen=True)
class Adversary:
    """ε-max JSD: the largest divergence of an attention that moves the output by at most ε; exact for two classes.

    `jsd_upper` is certified for any number: no attention within ε diverges more.

    In a stack of self-attention the weights of every layer, head and attending place are others at once, found by a
    search of so many `steps`, and the divergence is the mean over all of them; `jsd_upper` is then the most that any
    other attention has, whatever the answer. Places that the answer cannot depend on do not count.
    """

    epsilon: float = 0.01
    k: int = 5
    steps: int = 30
    paper: str = "Jain and Wallace (2019), section 4.2.2, equation 1, figures 7 and 8"

    def kind(self, classes: int) -> str:
        return {2: "exact", 3: "bracket"}.get(classes, "lower bound")

    def searches(self, model: Model) -> bool:
        return stacked(model)

    def unfit(self, case: Case) -> str | None:
        return without_attention(case)

    def __call__(self, case: Case) -> Answer:
        if stacked(case.model):
            return self._of_stack(case)
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

    def _of_stack(self, case: Case) -> Answer:
        found = [self._searched(case, case.batch[rows]) for rows in parts(case)]
        measures = {name: numpy(torch.cat([part[name] for part, _ in found])) for name in found[0][0]}
        return Answer(measures, {"adversary": numpy(torch.cat([shown for _, shown in found]))})

    def _searched(self, case: Case, batch: Batch) -> tuple[dict[str, Float[Tensor, " B"]], Float[Tensor, "B T"]]:
        """The measures of some texts, and what is then read of each word."""
        model = of_stack(case)
        stack = Stack.of(model, batch)
        found = StackSearch(self.epsilon, self.steps)(model, batch, stack)
        measures = {"jsd": found.jsd, "jsd_upper": limit(stack), "tvd": found.tvd, "max_attention": stack.peak}
        return measures, stack.read(found.weights, batch.ids.shape[1])
