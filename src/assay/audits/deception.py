"""How little attention can the deciding words get while the model stays right?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Float, Int

from assay.audits.cases import Answer, Case
from assay.audits.resources import LACKING, Resources, Variant
from assay.audits.rivals import Numbers, Rival, check_strengths, made, right, unfit_for_rivals, viewed
from assay.data.batches import Tokenised, tokenise
from assay.data.text import SPECIAL, Tokeniser
from assay.errors import AssayError
from assay.models.objectives import Without

SELDOM = 5  # a word of fewer texts may tell a class by chance
WITHOUT, HONEST = "without", "λ=0"


@dataclass(frozen=True)
class Deception:
    """The attention to some words (`mass`) and accuracy (`right`) of models trained to look away from them.

    The words are those given, with spaces or commas between them, or the `k` that tell most of the label in the
    training texts. Models learn the labels and −λ log(1 − mass), for each λ of `strengths`; λ=0 asks for nothing. The
    smallest mass of a model that is right within a point as often as that one says how little suffices: a low weight
    need not mean an unused word. A model that learnt and reads texts `without` the words shows how much they decide.
    """

    words: str = ""
    k: int = 10
    strengths: tuple[float, ...] = (0.01, 0.1, 1.0)
    paper: str = "Pruthi et al. (2020), section 3"
    lacking: str = LACKING
    ids: tuple[int, ...] = field(default=(), compare=False, repr=False)
    avoided: tuple[str, ...] = field(default=(), compare=False, repr=False)
    rivals: Mapping[str, Rival] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_strengths(self.strengths)
        if self.k < 1 or min(self.strengths) <= 0:
            raise AssayError("Deception is about at least one word, and its strengths are above 0.")

    def kind(self, classes: int) -> str:
        return "sample"

    def unfit(self, case: Case) -> str | None:
        return unfit_for_rivals(case, None if self.rivals else self.lacking)

    @property
    def remark(self) -> str | None:
        """The words that attention is to avoid."""
        return f"The words to be avoided: {', '.join(self.avoided)}." if self.avoided else None

    def prepared(self, resources: Resources) -> Deception:
        """The audit with its words and all other models at hand."""
        if (reason := resources.lacks()) is not None:
            return replace(self, lacking=reason)
        tokeniser, recipe = resources.trained.tokeniser, made(resources)
        ids = known(self.words, tokeniser) if self.words else self._telling(resources)
        words = tuple(tokeniser.vocabulary[word] for word in ids)
        plain = replace(recipe, training=replace(recipe.training, avoid=(), deceive=0.0))
        variants = {WITHOUT: Variant(plain, Without(ids))}
        for strength in self.strengths:
            deceiving = replace(recipe.training, avoid=words, deceive=float(strength))
            variants[f"deceived-{strength:g}"] = Variant(replace(recipe, training=deceiving))
        if recipe != plain:  # the audited model deceives already
            variants["honest"] = Variant(plain)
        models = resources.train_all(variants)
        honest = models.get("honest", resources.trained)
        rivals = {HONEST: Rival(honest.network)}
        rivals |= {f"λ={each:g}": Rival(models[f"deceived-{each:g}"].network) for each in sorted(self.strengths)}
        return replace(self, ids=ids, avoided=words, rivals=rivals | {WITHOUT: Rival(models[WITHOUT].network)})

    def _telling(self, resources: Resources) -> tuple[int, ...]:
        assert resources.corpus is not None
        tokeniser = resources.trained.tokeniser
        rows, _ = tokenise(resources.corpus.train, tokeniser, tokeniser.options.longest)
        return telling(rows, len(tokeniser.vocabulary), len(resources.trained.classes), self.k)

    def __call__(self, case: Case) -> Answer:
        there = np.isin(case.batch.ids.cpu().numpy(), self.ids) & case.batch.mask.cpu().numpy()
        masses: Numbers = {}
        rights: Numbers = {}
        shown: Float[np.ndarray, "B T"] = np.zeros(there.shape)
        for name, rival in self.rivals.items():
            if name == WITHOUT:
                rights[name] = right(viewed(rival, Without(self.ids).left(case.batch)).probabilities, case)
                continue
            view = viewed(rival, case.batch)
            shown = view.shown
            rights[name] = right(view.probabilities, case)
            masses[name] = np.where(there.any(-1), (shown * there).sum(-1), np.nan)
        measures = {f"mass:{name}": values for name, values in masses.items()}
        measures |= {f"mass_gain:{name}": masses[name] - masses[HONEST] for name in masses if name != HONEST}
        measures |= {f"right:{name}": values for name, values in rights.items()}
        return Answer(measures, {"deceived": shown})


def known(words: str, tokeniser: Tokeniser) -> tuple[int, ...]:
    """The ids of words that are given in one string."""
    places = {word: place for place, word in enumerate(tokeniser.vocabulary)}
    given = [word.lower() if tokeniser.options.lowercase else word for word in re.split(r"[\s,]+", words) if word]
    if not given:
        raise AssayError("Name at least one word that attention is to avoid, or leave the option out.")
    if lacking := [word for word in given if word not in places]:
        raise AssayError(f"The model does not know the word {lacking[0]!r}; name words of its training texts.")
    return tuple(places[word] for word in dict.fromkeys(given))


def telling(rows: Sequence[Tokenised], words: int, classes: int, k: int) -> tuple[int, ...]:
    """The ids of the k words whose presence tells most of the label, by χ² over texts; rare words are left out."""
    counts: Int[np.ndarray, "V C"] = np.zeros((words, classes), dtype=np.int64)
    for row in rows:
        counts[np.unique(row.ids.numpy()), row.label] += 1
    totals = np.bincount([row.label for row in rows], minlength=classes)
    share = totals / totals.sum()
    present = counts.sum(-1, keepdims=True)
    absent = len(rows) - present
    # of both rows of the table, presence and absence, the differences from what is expected are the same
    apart = (counts - present * share) ** 2 / np.maximum(share, 1 / len(rows))
    with np.errstate(divide="ignore", invalid="ignore"):
        chi = (apart * (1 / present + 1 / absent)).sum(-1)
    chi[(present[:, 0] < SELDOM) | (absent[:, 0] == 0)] = -1.0
    chi[: len(SPECIAL)] = -1.0
    order = np.argsort(-chi, kind="stable")[:k]
    found = tuple(int(word) for word in order if chi[word] > 0)
    if not found:
        raise AssayError("No word of the training texts tells anything of the label; name the words to avoid.")
    return found
