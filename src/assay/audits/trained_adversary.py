"""Can another model learn to give the same answers by looking elsewhere, further off than another seed would?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from assay.audits import four_tests
from assay.audits.answers import TRAINED
from assay.audits.cases import Answer, Case, Numbers
from assay.audits.resources import LACKING, Resources, Variant
from assay.audits.rivals import (
    Rival,
    RivalAudit,
    adversary,
    check_strengths,
    compared,
    siblings,
)
from assay.errors import AssayError
from assay.records import Record
from assay.stories import Conclusion, Measure, Rule, Story

STORY = Story(
    title="Can attention be trained away?",
    measures=(
        Measure("jsd", "attention, distance from the audited model (JSD)", main=True),
        Measure("tvd", "predictions, distance from the audited model (TVD)", main=True),
        Measure("same", "same decision as the audited model (share)"),
        Measure("right", "texts on which it is right (share)", better="high", main=True),
    ),
    drawings=(four_tests.DISTANCES,),
    reading=(
        "A model is trained to predict as the audited one does with attention as different as possible; λ is "
        "how much difference is worth. Attention that can be moved far, at no more change of the predictions "
        "than another seed makes, is not bound to them. The adversaries are found by training: better ones "
        "may exist."
    ),
    rule=Rule(
        "Fails when attention was trained surely further away than other seeds lie, at no more change of "
        "the predictions. Passes when it surely was not, or no adversary kept the predictions; with few "
        "seeds that is a warning only."
    ),
    about="model",
    subjects="model",
    kinds=TRAINED,
    against="λ=0",
    terms=("TVD", "JSD", "seed"),
)


@dataclass(frozen=True)
class TrainedAdversary(RivalAudit):
    """JSD of the attention and TVD of the output between the model and others trained to part the two.

    They learn TVD − λ KL on the training texts, for each λ of `strengths`. Beside them stand models from other `seeds`:
    attention explains as far as an adversary must give up the output to get further away than those. Unlike the audit
    `adversary`, which may choose an attention for each text, it must find a model.
    """

    strengths: tuple[float, ...] = (0.0, 0.0003, 0.001, 0.003, 0.01, 0.1)
    seeds: int = 8
    story: ClassVar[Story] = STORY
    paper: str = "Wiegreffe and Pinter (2019), section 4"
    lacking: str = LACKING
    rivals: Mapping[str, Rival] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_strengths(self.strengths)
        if self.seeds < 0:
            raise AssayError(f"The number of other seeds is a whole number from 0, not {self.seeds}.")

    def prepared(self, resources: Resources) -> TrainedAdversary:
        """The audit with all other models at hand."""
        if (reason := resources.lacks()) is not None:
            return replace(self, lacking=reason)
        variants: dict[str, Variant] = {}
        for strength in self.strengths:
            variants |= adversary(resources, strength)
        models = resources.train_all(variants | siblings(resources, self.seeds))
        titles = {name: name.replace("adversary-", "λ=").replace("seed-", "seed ") for name in models}
        return replace(self, rivals={titles[name]: Rival(model.network) for name, model in models.items()})

    def conclude(self, record: Record) -> Conclusion:
        return Conclusion(four_tests.adversary(record), *four_tests.graded_adversary(record))

    def __call__(self, case: Case) -> Answer:
        measures: Numbers = {}
        for name, rival in self.rivals.items():
            measures |= compared(case, rival, name)
        return Answer(measures)
