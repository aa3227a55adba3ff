"""Is the attention of the model worth anything to a model that reads each word alone?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from assay.audits import four_tests
from assay.audits.answers import TRAINED
from assay.audits.cases import Answer, Case
from assay.audits.resources import LACKING, Resources, Variant
from assay.audits.rivals import Rival, RivalAudit, adversary, check_strengths, made, right, viewed
from assay.models.network import Network
from assay.models.objectives import Guided
from assay.records import Record
from assay.stories import Conclusion, Drawing, Measure, Rule, Story

LEARNT = "learnt"


STORY = Story(
    title="Does the attention help another model?",
    measures=(
        Measure("right", "texts on which it is right (share)", better="high", main=True),
        Measure("right_gain", "the same, gain over attention learnt by itself", better="high"),
    ),
    drawings=(
        Drawing(
            "models",
            "guide",
            (
                "Accuracy of a model that reads each word alone, by what weighs the words, with 95 % "
                "intervals. The dashed line is its own attention."
            ),
            {
                "measure": "right",
                "title": "texts on which it is right",
                "called": {
                    "imported": "audited model",
                    "learnt": "its own",
                    "uniform": "uniform",
                    "adversarial": "adversary",
                },
                "null": "learnt",
                "shares": True,
            },
        ),
    ),
    reading=(
        "The guided model sees one word at a time, so that it must rely on the weights it is given. If "
        "attention marks words that matter, it should serve this model better than uniform weights or those "
        "of an adversary. It need not: a state knows its context, the word alone does not."
    ),
    rule=Rule(
        "Passes when this attention surely helps a model without context, and more than that of an "
        "adversary if there was one; fails when it surely harms. In between it gets a warning."
    ),
    about="model",
    subjects="model",
    kinds=TRAINED,
    against="learnt",
)


@dataclass(frozen=True)
class Guide(RivalAudit):
    """How often networks are right that see each word without its context, under four kinds of attention.

    They learn their own, have 1/N everywhere (`uniform`), are given that of the model (`imported`), or that of an
    adversary trained with λ = `strength` to give the same answers. `right_gain` is over their own. Imported attention
    that helps knows something of the words that the network itself cannot find out.
    """

    # differs from Wiegreffe and Pinter (2019): each word is read by our Average encoder, a linear map and ReLU
    strength: float = 0.01
    story: ClassVar[Story] = STORY
    paper: str = "Wiegreffe and Pinter (2019)"
    lacking: str = LACKING
    rivals: Mapping[str, Rival] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_strengths((self.strength,))

    def prepared(self, resources: Resources) -> Guide:
        """The audit with all other models at hand."""
        if (reason := resources.lacks()) is not None:
            return replace(self, lacking=reason)
        recipe = made(resources)
        alone = replace(recipe, architecture=replace(recipe.architecture, encoder="average", inner="softmax"))
        even = replace(alone, architecture=replace(alone.architecture, projection="uniform"))
        other, variant = next(iter(adversary(resources, self.strength).items()))
        imported = Guided(resources.trained.network)
        models = resources.train_all(
            {
                "guide-learnt": Variant(alone),
                "guide-uniform": Variant(even),
                "guide-imported": Variant(alone, imported),
                other: variant,
            }
        )
        adversarial = Guided(models[other].network)
        name = f"guide-{other}"
        models |= resources.train_all({name: Variant(alone, adversarial)})
        rivals = {
            LEARNT: Rival(models["guide-learnt"].network),
            "uniform": Rival(models["guide-uniform"].network),
            "imported": Rival(models["guide-imported"].network, imported.teacher_edit),
            "adversarial": Rival(models[name].network, adversarial.teacher_edit),
        }
        return replace(self, rivals=rivals)

    def conclude(self, record: Record) -> Conclusion:
        return Conclusion(four_tests.guide(record), *four_tests.graded_guide(record))

    def __call__(self, case: Case) -> Answer:
        assert isinstance(case.model, Network)
        found = {name: right(viewed(rival, case.batch).probabilities, case) for name, rival in self.rivals.items()}
        measures = {f"right:{name}": values for name, values in found.items()}
        measures |= {f"right_gain:{name}": values - found[LEARNT] for name, values in found.items() if name != LEARNT}
        return Answer(measures)
