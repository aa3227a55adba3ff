"""Does the explanation notice when the model is another one?"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from assay.audits.cases import Answer, Case
from assay.audits.resources import Resources
from assay.audits.twins import explained_on, likeness, mean_defined, without_twins
from assay.data.examples import Corpus
from assay.intervene.parameters import cascade
from assay.models.textmodel import TextModel


@dataclass(frozen=True)
class Sanity:
    """Kendall's τ-b between the absolute scores on the model and on ones that have not learnt its task; low is good.

    They are the model with its parts drawn anew, from the decoder down to the embeddings, and, where the training texts
    are at hand, a model that has learnt shuffled labels by heart.
    """

    seed: int = 0
    paper: str = "Adebayo et al. (2018), cascading randomisation and random labels"
    networks: Mapping[str, TextModel] = field(default_factory=dict, compare=False, repr=False)

    def kind(self, classes: int) -> str:
        return "sample"

    def unfit(self, case: Case) -> str | None:
        return without_twins(case)

    def prepared(self, resources: Resources) -> Sanity:
        """The audit with all other models at hand."""
        networks = cascade(resources.model.network, self.seed)
        if resources.lacks() is None:
            assert resources.corpus is not None
            networks["labels"] = resources.train(mislabelled(resources.corpus, self.seed), "labels").network
        return replace(self, networks=networks)

    def __call__(self, case: Case) -> Answer:
        assert isinstance(case.model, TextModel)
        networks = self.networks or cascade(case.model, self.seed)
        measures: dict[str, np.ndarray] = {}
        for name in case.explainers:
            found = {step: likeness(case, name, explained_on(other, case, name)) for step, other in networks.items()}
            measures |= {f"similarity_{step}:{name}": values for step, values in found.items()}
            measures[f"similarity:{name}"] = mean_defined(list(found.values()))
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
