"""Rank correlation of explanations with those of randomised models."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from assay.audits.cases import Answer, BaseAudit, Case, Numbers, Resources, mean_defined, of_subject
from assay.audits.rivals import likeness, without_twins
from assay.audits.statements import rivals, tested
from assay.data.examples import Corpus
from assay.intervene.perturbation import cascade
from assay.models.textmodel import TextModel
from assay.records import Record
from assay.stories import Conclusion, Drawing, Measure, Rule, Story

STORY = Story(
    title="Do the explanations notice another model?",
    question="Does the explanation notice when the model is another one?",
    measures=(
        Measure(
            "similarity",
            "τ with explanations of randomised models",
            better="low",
            column="sanity",
            place=8,
            help="τ between explanations of the model and of randomised ones: one that looks at no model has 1",
            faithful=False,
            main=True,
        ),
        Measure("similarity_labels", "τ with explanations of a model of random labels"),
        Measure("similarity_layer *", "τ after randomising from the output down to layer *"),
        Measure("similarity_*", "τ after randomising from the output down to the *"),
    ),
    drawings=(
        Drawing(
            "dots",
            "sanity",
            (
                "Likeness of the explanations when more and more of the model is drawn at random, from its "
                "output down, and when it has learnt random labels. At the dashed line nothing was noticed."
            ),
            {
                "measures": {
                    "similarity_decoder": "decoder randomised",
                    "similarity_alignment": "and alignment",
                    "similarity_encoder": "and encoder",
                    "similarity_embedding": "and embedding",
                    "similarity_labels": "random labels",
                },
                "title": "τ with the explanation of the randomised model",
                "null": 1.0,
                "depths": "similarity_",
                "last": ["similarity_embedding", "similarity_labels"],
                "drawn": "least noticing",
            },
        ),
    ),
    reading=(
        "The model is replaced by one that has not learnt its task. An explanation that stays the same was "
        "about the text, not about the model. Low is good here, but noise is low too: this is a test to pass, "
        "not a race to win."
    ),
    rule=Rule(
        "Passes when explanations of randomised models surely agree only weakly with its own (τ below "
        "0.4), fails when they surely agree well (τ from 0.6 on): then it hardly depends on the model. In "
        "between it gets a warning.",
        measure="similarity",
        sentence="Explanations of randomised models agree with {name} at a τ of {found}.",
        better="low",
        passes=0.4,
        fails=0.6,
    ),
)


@dataclass(frozen=True)
class Sanity(BaseAudit):
    """Kendall's τ-b between the absolute scores on the model and on ones that have not learnt its task; low is good.

    They are the model with its parts drawn anew, from the decoder down to the embeddings, and, where the training texts
    are at hand, a model that has learnt shuffled labels by heart.
    """

    seed: int = 0
    story: ClassVar[Story] = STORY
    paper: str = "Adebayo et al. (2018), cascading randomisation and random labels"
    networks: Mapping[str, TextModel] = field(default_factory=dict, compare=False, repr=False)

    unfit = staticmethod(without_twins)

    def prepared(self, resources: Resources) -> Sanity:
        """The audit with all other models at hand."""
        networks = cascade(resources.model.network, self.seed)
        if resources.lacks() is None:
            assert resources.corpus is not None
            networks["labels"] = resources.train(mislabelled(resources.corpus, self.seed), "labels").network
        return replace(self, networks=networks)

    def conclude(self, record: Record) -> Conclusion:
        found = rivals(record, "sanity", "similarity")
        if not found:
            return Conclusion()
        least, most = min(found, key=lambda f: f.mean), max(found, key=lambda f: f.mean)
        told = (
            f"{least.subject} notices most that the model is another one: τ {tested(least)} between both explanations"
        )
        other = f"; {most.subject} notices least: τ {tested(most)}" if most is not least else ""
        return Conclusion(f"{told}{other}. Scores that do not depend on the model at all have 1.")

    def __call__(self, case: Case) -> Answer:
        assert isinstance(case.model, TextModel)
        networks = self.networks or cascade(case.model, self.seed)
        measures: Numbers = {}
        for name, explainer in case.explainers.items():
            found = {
                f"similarity_{step}": likeness(case, name, explainer(network, case.batch, case.predicted))
                for step, network in networks.items()
            }
            measures |= of_subject(name, found | {"similarity": mean_defined(list(found.values()))})
        return Answer(measures)


def mislabelled(corpus: Corpus, seed: int) -> Corpus:
    """The corpus with the labels of its training texts shuffled.

    Some of these stand in for the dev texts: of what cannot be learnt, the epoch that knows most by heart is kept, as
    Adebayo et al. (2018) train until the shuffled labels are memorised.
    """
    labels = [example.label for example in corpus.train]
    random.Random(seed).shuffle(labels)
    train = tuple(replace(example, label=label) for example, label in zip(corpus.train, labels, strict=True))
    return replace(corpus, train=train, dev=train[: len(corpus.dev)])
