"""Change of the output when attention weights are shuffled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from assay.audits.cases import Answer, BaseAudit, Case, numpy
from assay.audits.stack import answers, of_stack, parts, seeds, stacked, without_attention
from assay.intervene.edits import Permute
from assay.intervene.stack_attention import Shuffled, Stack
from assay.lookup import bounded, items, known, told
from assay.lookup import stacked as stack_audited
from assay.metrics.information import tvd
from assay.records import Record
from assay.stories import Conclusion, Drawing, Measure, Rule, Story
from assay.writing import count, interval, number

SMALL = 0.05
"""Below this mean of median TVDs shuffling hardly matters: predictions move by less than 5 points."""

STORY = Story(
    title="Does it matter which {item} gets the attention?",
    question="Does the prediction change when the attention weights are shuffled?",
    measures=(
        Measure(
            "median_tvd",
            "median output change (TVD)",
            short="change when shuffled (TVD)",
            help="how far shuffled attention moves the prediction",
            main=True,
        ),
        Measure("max_attention", "largest attention weight"),
    ),
    drawings=(
        Drawing(
            "quarters",
            "permutation",
            (
                "Change of the prediction when attention is shuffled, by how peaked attention is. Thin line: "
                "5 to 95 % of texts; bar: 25 to 75 %; thick tick: median."
            ),
            {"column": "median_tvd", "title": "median change of the prediction (TVD)"},
        ),
    ),
    reading=(
        "The weights of each text are dealt out anew at random, the {items} stay. If the prediction hardly "
        "moves even where one {item} had most of the attention (upper rows), it is hard to argue that this "
        "{item} was the reason."
    ),
    rule=Rule(
        "Fails when shuffling surely moves predictions by less than 0.05 (TVD), passes when it surely "
        "moves them by more. In between it gets a warning."
    ),
    about="attention",
    terms=("TVD",),
)

TRANSFORMER = replace(
    STORY,
    title="Does it matter what the layers attend to?",
    reading=(
        "The weights of each layer, head and place are dealt out anew at random over what may be attended "
        "to. If the prediction hardly moves even where attention is peaked (upper rows: the mean over "
        "layers, heads and places of the largest weight), it is hard to argue that what is attended to "
        "was the reason."
    ),
)
"""The same of a stack of layers that nothing pools."""


@dataclass(frozen=True)
class Permutation(BaseAudit):
    """The median total variation distance of the output over random shuffles, beside the largest weight.

    In a stack of self-attention the weights of every layer, head and attending place are shuffled at once, over what
    may be attended to there. Each shuffle is a pass through the model, so there are `stack_shuffles` of them, and the
    largest weight is the mean over layers, heads and places.
    """

    shuffles: int = 100
    stack_shuffles: int = 20
    story: ClassVar[Story] = STORY
    transformer: ClassVar[Story] = TRANSFORMER
    paper: str = "Jain and Wallace (2019), section 4.2.1, algorithm 2 and figure 6"

    unfit = staticmethod(without_attention)

    def conclude(self, record: Record) -> Conclusion:
        found, sure = known(record, "permutation", "median_tvd"), bounded(record, "permutation", "median_tvd")
        if found is None:
            return Conclusion()
        size = " hardly at all" if found.high < SMALL else " noticeably" if found.high >= SMALL else ""
        mean, ends = number(100 * found.mean, 1), interval(100 * found.low, 100 * found.high, 1)
        among = "in every layer, head and place" if stack_audited(record) else f"among the {items(record).many}"
        answer = (
            f"Shuffling the attention weights {among} moves the prediction{size}: by {mean} "
            f"percentage points on average (95 % interval {ends}, n = {count(found.n)})."
        )
        if sure is None:
            return Conclusion(answer)
        grade = "fail" if sure.high < SMALL else "pass" if sure.low >= SMALL else "warn"
        return Conclusion(answer, grade, f"Shuffled attention moves predictions by a TVD of {told(sure)}.")

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
