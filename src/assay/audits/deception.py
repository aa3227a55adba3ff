"""Attention trained away from given words, and the accuracy that is kept."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from jaxtyping import Int

from assay.audits.cases import Answer, Case, Resources, by_subject
from assay.audits.rivals import Rival, RivalAudit, check_strengths, right, viewed
from assay.audits.statements import TRAINED
from assay.data.batches import Tokenised, tokenise
from assay.data.text import SPECIAL, Tokeniser
from assay.errors import AssayError
from assay.lookup import NOT_APPLICABLE, named, shared, subjects
from assay.models.objectives import Without
from assay.models.workers import Variant
from assay.records import Finding, Record
from assay.stories import Conclusion, Drawing, Measure, Rule, Story
from assay.writing import count, percent

SELDOM = 5  # a word of fewer texts may tell a class by chance
WITHOUT, HONEST = "without", "λ=0"


STORY = Story(
    title="How little attention do telling words need?",
    question="How little attention can the deciding words get while the model stays right?",
    measures=(
        Measure("mass", "attention on the avoided words (share)", main=True),
        Measure("mass_gain", "the same, gain over λ = 0"),
        Measure("right", "texts on which it is right (share)", better="high", main=True),
        Measure("right_gain", "the same, gain over λ = 0", better="high"),
    ),
    drawings=(
        Drawing(
            "tradeoff",
            "deception",
            (
                "Accuracy against the attention left on the avoided words, a point for each λ, with 95 % "
                "intervals. The dashed line is a model that never sees these words. Names that would overlap "
                "are left out."
            ),
            {"x": "mass", "y": "right", "line": "without"},
        ),
    ),
    reading=(
        "Attention is trained to stay off some words, those that were named or those that tell most of the "
        "label in the training texts; λ is how strongly. Where accuracy holds at hardly any attention on "
        "them, the model reads them through other states, and its heatmap hides what it uses. Where a model "
        "without these words does as well, there is nothing to hide. Attention is counted in texts that hold "
        "such a word, accuracy in all. One seed for each λ."
    ),
    rule=Rule(
        "Fails when attention was surely moved off words that count while the accuracy stayed within 1 "
        "point, passes when no training did that. In between it gets a warning."
    ),
    about="model",
    subjects="model",
    kinds=TRAINED,
    against="λ=0",
)


@dataclass(frozen=True)
class Deception(RivalAudit):
    """The attention to some words (`mass`) and accuracy (`right`) of models trained to look away from them.

    The words are those given, with spaces or commas between them, or the `k` that tell most of the label in the
    training texts. Models learn the labels and −λ log(1 − mass), for each λ of `strengths`; λ=0 asks for nothing. The
    smallest mass of a model that is right within a point as often as that one says how little suffices: a low weight
    need not mean an unused word. A model that learnt and reads texts `without` the words shows how much they decide.
    """

    words: str = ""
    k: int = 10
    strengths: tuple[float, ...] = (0.01, 0.1, 1.0)
    story: ClassVar[Story] = STORY
    paper: str = "Pruthi et al. (2020), section 3"
    ids: tuple[int, ...] = field(default=(), compare=False, repr=False)
    avoided: tuple[str, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        check_strengths(self.strengths)
        if self.k < 1 or min(self.strengths) <= 0:
            raise AssayError("Deception is about at least one word, and its strengths are above 0.")

    @property
    def remark(self) -> str | None:
        """The words that attention is to avoid."""
        return f"The words to be avoided: {', '.join(self.avoided)}." if self.avoided else None

    def trained(self, resources: Resources) -> Deception:
        """The audit with its words and all other models at hand."""
        tokeniser, recipe = resources.trained.tokeniser, resources.made
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
        rivals = {HONEST: models.get("honest", resources.trained)}
        rivals |= {f"λ={each:g}": models[f"deceived-{each:g}"] for each in sorted(self.strengths)}
        rivals[WITHOUT] = models[WITHOUT]
        by_name = {name: Rival(model.network) for name, model in rivals.items()}
        return replace(self, ids=ids, avoided=words, rivals=by_name)

    def _telling(self, resources: Resources) -> tuple[int, ...]:
        assert resources.corpus is not None
        tokeniser = resources.trained.tokeniser
        rows, _ = tokenise(resources.corpus.train, tokeniser, tokeniser.options.longest)
        return telling(rows, len(tokeniser.vocabulary), len(resources.trained.classes), self.k)

    def conclude(self, record: Record) -> Conclusion:
        right, within = subjects(record, "deception", "right"), _kept(record)
        if not within:
            return Conclusion()
        best = min(within, key=lambda name: within[name].mean)
        answer, honest, least = _answer(right, within, best), within[HONEST], within[best]
        if _needless(right):
            why = "The model does as well without these words, so that there is nothing to hide."
            return Conclusion(answer, NOT_APPLICABLE, why)
        grade = "pass" if best == HONEST else "fail" if least.high < honest.low else "warn"
        told = f"At the same accuracy {shared(least)} of attention is left on words that had {percent(honest.mean)}"
        return Conclusion(answer, grade, f"{told} (n = {count(least.n)}).")

    def __call__(self, case: Case) -> Answer:
        there = np.isin(case.batch.ids.cpu().numpy(), self.ids) & case.mask
        views = {name: viewed(rival, case.batch) for name, rival in self.rivals.items() if name != WITHOUT}
        masses = {name: np.where(there.any(-1), (view.shown * there).sum(-1), np.nan) for name, view in views.items()}
        gains = {name: values - masses[HONEST] for name, values in masses.items() if name != HONEST}
        rights = {name: right(view.probabilities, case) for name, view in views.items()}
        if WITHOUT in self.rivals:
            left = viewed(self.rivals[WITHOUT], Without(self.ids).left(case.batch))
            rights[WITHOUT] = right(left.probabilities, case)
        measures = by_subject("mass", masses) | by_subject("mass_gain", gains) | by_subject("right", rights)
        return Answer(measures, {"deceived": list(views.values())[-1].shown})


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
    share = np.bincount([row.label for row in rows], minlength=classes) / len(rows)
    present = counts.sum(-1)
    absent = len(rows) - present
    # of both rows of the table, presence and absence, the differences from what is expected are the same
    apart = (counts - present[:, None] * share) ** 2 / np.maximum(share, 1 / len(rows))
    with np.errstate(divide="ignore", invalid="ignore"):
        chi = (apart * (1 / present + 1 / absent)[:, None]).sum(-1)
    chi[(present < SELDOM) | (absent == 0)] = -1.0
    chi[: len(SPECIAL)] = -1.0
    found = tuple(int(word) for word in np.argsort(-chi, kind="stable")[:k] if chi[word] > 0)
    if not found:
        raise AssayError("No word of the training texts tells anything of the label; name the words to avoid.")
    return found


KEPT = 0.01
"""An accuracy at most 1 point below that of the model which was not trained to deceive counts as kept."""


def _kept(record: Record) -> dict[str, Finding]:
    """The mean mass on the words for each λ whose accuracy is at most KEPT below that of λ = 0, and for λ = 0."""
    mass, right = (named(record, "deception", measure, "λ=") for measure in ("mass", "right"))
    if HONEST not in mass or HONEST not in right:
        return {}
    least = right[HONEST].mean - KEPT - 1e-9  # so that exactly 1 point is within 1 point
    return {name: mass[name] for name in mass if name in right and right[name].mean >= least}


def _needless(right: dict[str, Finding]) -> bool:
    """Whether a model that never sees the words does as well, so that avoiding them hides nothing."""
    return WITHOUT in right and right[WITHOUT].mean >= right[HONEST].mean - KEPT


def _answer(right: dict[str, Finding], within: dict[str, Finding], best: str) -> str:
    """The smallest mass on the avoided words at which accuracy holds, and the accuracy without these words."""
    honest = within[HONEST]
    rates = {name: percent(found.mean) for name, found in right.items()}
    told = (
        f"{shared(honest)} of the attention lies on the words to be avoided (n = {count(honest.n)} texts that hold one)"
    )
    if best == HONEST:
        told += f", and no λ lowered that with an accuracy within {100 * KEPT:g} point of {rates[HONEST]}."
    else:
        told += (
            f"; trained to stay off them with {best}, it is {shared(within[best])}, and the model is right on "
            f"{rates[best]} of texts where without that it is on {rates[HONEST]}."
        )
    if WITHOUT not in right:
        return told
    told += f" Without these words a model is right on {shared(right[WITHOUT])}"
    if _needless(right):
        return f"{told}: they are not needed, so that avoiding them hides nothing."
    return f"{told}." if best == HONEST else f"{told}: the words count, and attention need not show it."
