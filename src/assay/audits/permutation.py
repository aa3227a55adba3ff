"""Does the prediction change when the attention weights are shuffled?"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from assay.audits.cases import Answer, Case, numpy
from assay.audits.stack import answers, of_stack, parts, seeds, stacked, without_attention
from assay.intervene.attention import Permute
from assay.intervene.layers import Shuffled, Stack
from assay.metrics.divergence import tvd


@dataclass(frozen=True)
class Permutation:
    """The median total variation distance of the output over random shuffles, beside the largest weight.

    In a stack of self-attention the weights of every layer, head and attending place are shuffled at once, over what
    may be attended to there. Each shuffle is a pass through the model, so there are `stack_shuffles` of them, and the
    largest weight is the mean over layers, heads and places.
    """

    shuffles: int = 100
    stack_shuffles: int = 20
    paper: str = "Jain and Wallace (2019), section 4.2.1, algorithm 2 and figure 6"

    def kind(self, classes: int) -> str:
        return "sample"

    def unfit(self, case: Case) -> str | None:
        return without_attention(case)

    def __call__(self, case: Case) -> Answer:
        if stacked(case.model):
            return self._of_stack(case)
        observed = case.weights[:, None]
        shuffled = Permute(case.seed)(observed.expand(-1, self.shuffles, -1), case.items)
        moved, stayed = ((weights @ case.values).softmax(-1) for weights in (shuffled, observed))
        median = tvd(moved, stayed).quantile(0.5, dim=-1)
        return Answer({"median_tvd": numpy(median), "max_attention": numpy(case.weights.amax(-1))})

    def _of_stack(self, case: Case) -> Answer:
        moved = answers(case, (Shuffled(seed) for seed in seeds(case.seed)), self.stack_shuffles)
        median = tvd(moved, case.probabilities[:, None]).quantile(0.5, dim=-1)
        peaks = torch.cat([Stack.of(of_stack(case), case.batch[rows]).peak for rows in parts(case)])
        return Answer({"median_tvd": numpy(median), "max_attention": numpy(peaks)})
