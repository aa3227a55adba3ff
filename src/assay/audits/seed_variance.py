"""How far apart are the attention and the output of models that differ in nothing but the seed?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from assay.audits import four_tests
from assay.audits.answers import TRAINED
from assay.audits.cases import Answer, Case, Numbers
from assay.audits.resources import LACKING, Resources
from assay.audits.rivals import Rival, RivalAudit, averaged, compared, siblings
from assay.errors import AssayError
from assay.records import Record
from assay.stories import Conclusion, Measure, Story

STORY = Story(
    title="How far apart does the seed alone put attention?",
    measures=(
        Measure("jsd", "attention, distance from the audited model (JSD)", main=True),
        Measure("tvd", "predictions, distance from the audited model (TVD)", main=True),
        Measure("same", "same decision as the audited model (share)"),
        Measure("right", "texts on which it is right (share)", better="high"),
    ),
    drawings=(four_tests.DISTANCES,),
    reading=(
        "Models that differ in nothing but their seed are equally good accounts of the data. What attention "
        "varies among them it varies for no reason. The audited model is one of them; distances are from it."
    ),
    ungraded="It is the null for the trained adversary, not a test by itself.",
    about="model",
    subjects="model",
    kinds=TRAINED,
    terms=("TVD", "JSD", "seed"),
)


@dataclass(frozen=True)
class SeedVariance(RivalAudit):
    """JSD of the attention and TVD of the output between the model and each of several from other seeds.

    It is the null against which a trained adversary is read: an attention is no less like the model's than chance makes
    it, unless it is further off than that. `seeds` is the mean over all of them.
    """

    seeds: int = 8
    story: ClassVar[Story] = STORY
    paper: str = "Wiegreffe and Pinter (2019)"
    lacking: str = LACKING
    rivals: Mapping[str, Rival] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.seeds < 2:
            raise AssayError(f"To see how models vary takes at least 2 other seeds, not {self.seeds}.")

    def prepared(self, resources: Resources) -> SeedVariance:
        """The audit with all other models at hand."""
        if (reason := resources.lacks()) is not None:
            return replace(self, lacking=reason)
        models = resources.train_all(siblings(resources, self.seeds))
        return replace(self, rivals={name.replace("-", " "): Rival(model.network) for name, model in models.items()})

    def conclude(self, record: Record) -> Conclusion:
        return Conclusion(four_tests.seeds(record))

    def __call__(self, case: Case) -> Answer:
        measures: Numbers = {}
        for name, rival in self.rivals.items():
            measures |= compared(case, rival, name)
        return Answer(averaged(measures, "seeds") | measures)
