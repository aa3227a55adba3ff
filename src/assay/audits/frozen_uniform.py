"""Is the model any better for having learnt where to look?"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from assay.audits import four_tests
from assay.audits.answers import TRAINED
from assay.audits.cases import Answer, Case, numpy
from assay.audits.resources import LACKING, Resources, Variant
from assay.audits.rivals import Rival, compared, made, right, unfit_for_rivals
from assay.records import Record
from assay.stories import Conclusion, Drawing, Measure, Rule, Story

STORY = Story(
    title="Is attention needed at all?",
    measures=(
        Measure("right", "texts on which it is right (share)", better="high", main=True),
        Measure("right_gain", "gain of learnt over uniform attention", better="high"),
        Measure("tvd", "predictions, distance from learnt attention (TVD)"),
        Measure("same", "same decision as with learnt attention (share)"),
    ),
    drawings=(
        Drawing(
            "models",
            "frozen_uniform",
            "Accuracy with learnt attention, and of a model trained with all weights alike, with 95 % intervals.",
            {
                "measure": "right",
                "title": "texts on which it is right",
                "called": {"learnt": "learnt attention", "uniform": "uniform attention"},
                "shares": True,
            },
        ),
    ),
    reading=(
        "If a model does as well when all words weigh the same, the task does not need attention, and whether "
        "attention explains cannot be seen on it. The interval is over texts; two models of one recipe "
        "differ as well, by how much the audit of seeds tells."
    ),
    rule=Rule(
        "Passes when learnt attention is surely better than uniform weights, fails when its gain surely "
        "stays below 3 points: then no test of attention says much on this task. In between it gets a "
        "warning."
    ),
    about="model",
    subjects="model",
    kinds=TRAINED,
    against="uniform",
    terms=("TVD",),
)


@dataclass(frozen=True)
class FrozenUniform:
    """Whether the model is right more often than one that learnt the same texts with all attention frozen to 1/N.

    `right_gain` is how much more often. Where it is 0, the task does not need attention, and what is done to that of a
    model for this task says little.
    """

    story: ClassVar[Story] = STORY
    paper: str = "Wiegreffe and Pinter (2019)"
    lacking: str = LACKING
    uniform: Rival | None = field(default=None, compare=False, repr=False)

    def kind(self, classes: int) -> str:
        return "sample"

    def unfit(self, case: Case) -> str | None:
        return unfit_for_rivals(case, self.lacking if self.uniform is None else None)

    def prepared(self, resources: Resources) -> FrozenUniform:
        """The audit with the other model at hand."""
        if (reason := resources.lacks()) is not None:
            return replace(self, lacking=reason)
        recipe = made(resources)
        even = replace(recipe, architecture=replace(recipe.architecture, projection="uniform"))
        return replace(self, uniform=Rival(resources.train_all({"uniform": Variant(even)})["uniform"].network))

    def conclude(self, record: Record) -> Conclusion:
        return Conclusion(four_tests.uniform(record), *four_tests.graded_uniform(record))

    def __call__(self, case: Case) -> Answer:
        assert self.uniform is not None
        found = compared(case, self.uniform, "uniform")
        learnt = right(numpy(case.probabilities), case)
        return Answer(
            {
                "right:learnt": learnt,
                "right:uniform": found["right:uniform"],
                "right_gain:learnt": learnt - found["right:uniform"],
                "tvd:uniform": found["tvd:uniform"],
                "same:uniform": found["same:uniform"],
            }
        )
