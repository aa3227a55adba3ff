"""Is the model any better for having learnt where to look?"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from assay.audits.cases import Answer, Case, numpy
from assay.audits.resources import LACKING, Resources, Variant
from assay.audits.rivals import Rival, compared, made, right, unfit_for_rivals


@dataclass(frozen=True)
class FrozenUniform:
    """Whether the model is right more often than one that learnt the same texts with all attention frozen to 1/N.

    `right_gain` is how much more often. Where it is 0, the task does not need attention, and what is done to that of a
    model for this task says little.
    """

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
