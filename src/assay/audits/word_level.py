"""Does attention tell more when every state has to stay true to its word?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from assay.audits.adversary import Adversary
from assay.audits.cases import Answer, Case, numpy
from assay.audits.decoding import Decoded, Decoding
from assay.audits.permutation import Permutation
from assay.audits.resources import LACKING, Resources, Variant
from assay.audits.rivals import right, unfit_for_rivals
from assay.audits.truth import Truth
from assay.errors import AssayError, unknown
from assay.metrics.information import Words
from assay.models.options import Training
from assay.models.recipes import Recipe
from assay.models.regularisers import REGULARISERS

BASE, CONCAT = "base", "concat"
STRENGTHS = (*REGULARISERS, "mlm")
GAINS = ("right", "median_tvd", "auprc")
Numbers = dict[str, Float[np.ndarray, " B"]]


@dataclass(frozen=True)
class WordLevel:
    """The model without and with a word-level objective: is it as good, and is its attention harder to replace?

    `right` says whether the class is right, `information` how many bits at least a state tells of its word, among the
    most frequent words (`information_shuffled`, with words shuffled, must be about 0 or below), `median_tvd` how far
    shuffled attention moves the output, `jsd@ε` how unlike an attention can be that moves it by at most ε, and `auprc`
    how well attention finds planted evidence. A gain is over `base`.

    Tying needs states as large as embeddings: where they are not, all models that are compared, `base` too, have half
    as many hidden units as the embeddings have dimensions. Each is trained once, from the plan's seed, so the intervals
    speak of the texts and not of the luck of a training. With more than three classes every second ε is left out.
    """

    variants: tuple[str, ...] = (CONCAT, "tying", "mlm")
    tying: float = 0.1  # at 1, tying and mlm cost accuracy on SST
    mlm: float = 0.1
    conicity: float = 0.1
    diversity: float = 0.1
    epsilons: tuple[float, ...] = (0.01, 0.05, 0.1, 0.2, 0.5)
    words: int = 1000  # the most frequent ones, which the states are asked to tell
    tokens: int = 40_000  # of training texts, to learn from how states tell them
    seed: int = 0
    paper: str = "Tutek and Šnajder (2020), word-level objectives; Mohankumar et al. (2020)"
    lacking: str = LACKING
    models: Mapping[str, Decoded] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name in self.variants:
            if name not in (CONCAT, *STRENGTHS):
                raise unknown("variant of word_level", name, (CONCAT, *STRENGTHS))
        if not self.variants or len(set(self.variants)) < len(self.variants):
            raise AssayError(f"Name each variant of word_level once, and at least one, not {self.variants}.")
        if not all(0 <= epsilon < 1 for epsilon in self.epsilons):
            raise AssayError(f"An epsilon is a change of probability, from 0 to below 1, not {self.epsilons}.")
        if self.words < 2 or self.tokens < self.words:
            raise AssayError("The audit word_level tells at least 2 words apart, by at least as many tokens.")
        self._strengths(*STRENGTHS)  # those that cannot be are refused before anything is trained

    def kind(self, classes: int) -> str:
        return "sample" if classes == 2 else "lower bound"  # of ε-max JSD; information is one for any number

    def unfit(self, case: Case) -> str | None:
        return unfit_for_rivals(case, None if self.models else self.lacking)

    def prepared(self, resources: Resources) -> WordLevel:
        """The audit with all models and the decoders of their states."""
        recipe = resources.recipe()
        reason = resources.lacks()
        if reason is not None or recipe is None or (reason := self._untieable(recipe)) is not None:
            return replace(self, lacking=reason or self.lacking)
        recipes = self.recipes(recipe)
        own = recipes[BASE] == recipe
        wanted = {f"word_level-{name}": Variant(made) for name, made in recipes.items() if not (own and name == BASE)}
        trained = {f"word_level-{BASE}": resources.trained, **resources.train_all(wanted)}
        decoding = Decoding.of(resources, Words(self.words), self.tokens, self.seed)
        return replace(self, models={name: decoding(trained[f"word_level-{name}"].network) for name in recipes})

    def __call__(self, case: Case) -> Answer:
        found = {name: self._measured(replace(case, model=each.network), each) for name, each in self.models.items()}
        measures: Numbers = {}
        for name, numbers in found.items():
            measures |= {f"{measure}:{name}": values for measure, values in numbers.items()}
            if name != BASE:
                gains = {measure: numbers[measure] - found[BASE][measure] for measure in GAINS if measure in numbers}
                measures |= {f"{measure}_gain:{name}": values for measure, values in gains.items()}
        return Answer(measures)

    def recipes(self, recipe: Recipe) -> dict[str, Recipe]:
        """How each of the models is made."""
        parts = recipe.architecture
        if "tying" in self.variants:
            parts = replace(parts, hidden=parts.embedding // 2)
        plain = replace(recipe.training, seed=self.seed, tying=0.0, mlm=0.0, conicity=0.0, diversity=0.0)
        made = {BASE: Recipe(replace(parts, concat=False), recipe.text, plain)}
        for name in self.variants:
            training = replace(plain, **({} if name == CONCAT else self._strengths(name)))
            made[name] = Recipe(replace(parts, concat=name == CONCAT), recipe.text, training)
        return made

    def _strengths(self, *names: str) -> dict[str, Any]:
        strengths = {name: getattr(self, name) for name in names}
        Training(**strengths)
        return strengths

    def _untieable(self, recipe: Recipe) -> str | None:
        """Why states of this recipe cannot have the size of embeddings, or None."""
        parts = recipe.architecture
        if parts.encoder == "none":
            return "the model has no encoder, so its states are the words themselves"
        if "tying" not in self.variants:
            return None
        step = 8 if parts.encoder in ("cnn", "transformer") else 2
        if parts.embedding % step:
            return (
                f"states of the {parts.encoder} encoder can be as large as embeddings only if {step} divides their size"
            )
        return None

    def _measured(self, case: Case, model: Decoded) -> Numbers:
        """All numbers of one model; the case is that model's."""
        information, shuffled = model.bits(case.batch)
        measures = {
            "right": right(numpy(case.probabilities), case),
            "information": information,
            "information_shuffled": shuffled,
            "median_tvd": Permutation()(case).measures["median_tvd"],
        }
        for epsilon in self.epsilons[:: 1 if case.values.shape[-1] <= 3 else 2]:
            measures[f"jsd@{epsilon:g}"] = Adversary(epsilon, k=1)(case).measures["jsd"]
        shown = replace(case, scores={"attention": case.shown(case.weights)})
        if Truth().unfit(shown) is None:
            measures["auprc"] = Truth()(shown).measures["auprc:attention"]
        return measures
