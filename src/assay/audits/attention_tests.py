"""The four tests of attention of Wiegreffe and Pinter (2019): uniform weights, other seeds, a guide, an adversary."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from assay.audits import four_tests
from assay.audits.cases import Answer, Case, Resources, by_subject, numpy
from assay.audits.rivals import (
    Rival,
    RivalAudit,
    adversary,
    averaged,
    check_strengths,
    compared,
    right,
    siblings,
    viewed,
)
from assay.audits.statements import TRAINED
from assay.errors import AssayError
from assay.models.network import Network
from assay.models.objectives import Guided
from assay.models.workers import Variant
from assay.records import Record
from assay.stories import Conclusion, Drawing, Measure, Rule, Story

UNIFORM = Story(
    title="Is attention needed at all?",
    question="Is the model any better for having learnt where to look?",
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
class FrozenUniform(RivalAudit):
    """Whether the model is right more often than one that learnt the same texts with all attention frozen to 1/N.

    `right_gain` is how much more often. Where it is 0, the task does not need attention, and what is done to that of a
    model for this task says little.
    """

    story: ClassVar[Story] = UNIFORM
    paper: str = "Wiegreffe and Pinter (2019)"

    def trained(self, resources: Resources) -> FrozenUniform:
        recipe = resources.made
        even = replace(recipe, architecture=replace(recipe.architecture, projection="uniform"))
        models = resources.train_all({"uniform": Variant(even)})
        return replace(self, rivals={"uniform": Rival(models["uniform"].network)})

    def conclude(self, record: Record) -> Conclusion:
        return four_tests.uniform(record)

    def __call__(self, case: Case) -> Answer:
        found = compared(case, self.rivals["uniform"], "uniform")
        learnt, even = right(numpy(case.probabilities), case), found["right:uniform"]
        return Answer(
            {
                "right:learnt": learnt,
                "right:uniform": even,
                "right_gain:learnt": learnt - even,
                "tvd:uniform": found["tvd:uniform"],
                "same:uniform": found["same:uniform"],
            }
        )


SEEDS = Story(
    title="How far apart does the seed alone put attention?",
    question="How far apart are the attention and the output of models that differ in nothing but the seed?",
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
    story: ClassVar[Story] = SEEDS
    paper: str = "Wiegreffe and Pinter (2019)"

    def __post_init__(self) -> None:
        if self.seeds < 2:
            raise AssayError(f"To see how models vary takes at least 2 other seeds, not {self.seeds}.")

    def trained(self, resources: Resources) -> SeedVariance:
        models = resources.train_all(siblings(resources, self.seeds))
        rivals = {name.replace("-", " "): Rival(model.network) for name, model in models.items()}
        return replace(self, rivals=rivals)

    def conclude(self, record: Record) -> Conclusion:
        return four_tests.seeds(record)

    def __call__(self, case: Case) -> Answer:
        measures = self.compared(case)
        return Answer(averaged(measures, "seeds") | measures)


LEARNT = "learnt"


GUIDE = Story(
    title="Does the attention help another model?",
    question="Is the attention of the model worth anything to a model that reads each word alone?",
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
    story: ClassVar[Story] = GUIDE
    paper: str = "Wiegreffe and Pinter (2019)"

    def __post_init__(self) -> None:
        check_strengths((self.strength,))

    def trained(self, resources: Resources) -> Guide:
        recipe = resources.made
        alone = replace(recipe, architecture=replace(recipe.architecture, encoder="average", inner="softmax"))
        even = replace(alone, architecture=replace(alone.architecture, projection="uniform"))
        other, variant = next(iter(adversary(resources, self.strength).items()))
        imported = Guided(resources.trained.network)
        variants = {
            "guide-learnt": Variant(alone),
            "guide-uniform": Variant(even),
            "guide-imported": Variant(alone, imported),
            other: variant,
        }
        models = resources.train_all(variants)
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
        return four_tests.guide(record)

    def __call__(self, case: Case) -> Answer:
        assert isinstance(case.model, Network)
        found = {name: right(viewed(rival, case.batch).probabilities, case) for name, rival in self.rivals.items()}
        gains = {name: values - found[LEARNT] for name, values in found.items() if name != LEARNT}
        return Answer(by_subject("right", found) | by_subject("right_gain", gains))


ADVERSARY = Story(
    title="Can attention be trained away?",
    question=(
        "Can another model learn to give the same answers by looking elsewhere, further off than another seed would?"
    ),
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
    story: ClassVar[Story] = ADVERSARY
    paper: str = "Wiegreffe and Pinter (2019), section 4"

    def __post_init__(self) -> None:
        check_strengths(self.strengths)
        if self.seeds < 0:
            raise AssayError(f"The number of other seeds is a whole number from 0, not {self.seeds}.")

    def trained(self, resources: Resources) -> TrainedAdversary:
        variants: dict[str, Variant] = {}
        for strength in self.strengths:
            variants |= adversary(resources, strength)
        models = resources.train_all(variants | siblings(resources, self.seeds))
        titles = {name: name.replace("adversary-", "λ=").replace("seed-", "seed ") for name in models}
        return replace(self, rivals={titles[name]: Rival(model.network) for name, model in models.items()})

    def conclude(self, record: Record) -> Conclusion:
        return four_tests.adversary(record)

    def __call__(self, case: Case) -> Answer:
        return Answer(self.compared(case))
