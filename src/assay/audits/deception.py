"""Attention trained away from given words, and the accuracy that is kept."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int

from assay.audits.cases import LACKING, Answer, Case, Numbers, Resources
from assay.audits.rivals import Rival, RivalAudit, check_strengths, made, right, viewed
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
    lacking: str = LACKING
    ids: tuple[int, ...] = field(default=(), compare=False, repr=False)
    avoided: tuple[str, ...] = field(default=(), compare=False, repr=False)
    rivals: Mapping[str, Rival] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_strengths(self.strengths)
        if self.k < 1 or min(self.strengths) <= 0:
            raise AssayError("Deception is about at least one word, and its strengths are above 0.")

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

    def conclude(self, record: Record) -> Conclusion:
        return Conclusion(_answer(record), *_grade(record))

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


KEPT = 0.01
"""An accuracy at most 1 point below that of the model which was not trained to deceive counts as kept."""


def _kept(record: Record) -> dict[str, Finding]:
    """The mean mass on the words for each λ whose accuracy is at most KEPT below that of λ = 0, and for λ = 0."""
    mass, right = (named(record, "deception", measure, "λ=") for measure in ("mass", "right"))
    if HONEST not in mass or HONEST not in right:
        return {}
    least = right[HONEST].mean - KEPT - 1e-9  # so that exactly 1 point is within 1 point
    return {name: mass[name] for name in mass if name in right and right[name].mean >= least}


def _answer(record: Record) -> str:
    """The smallest mass on the avoided words at which accuracy holds, and the accuracy without these words."""
    right, within = subjects(record, "deception", "right"), _kept(record)
    if not within:
        return ""
    best, honest = min(within, key=lambda name: within[name].mean), within[HONEST]
    honestly = _accuracy(right, HONEST)
    start = (
        f"{shared(honest)} of the attention lies on the words to be avoided (n = {count(honest.n)} texts that hold one)"
    )
    if best == HONEST:
        told = f"{start}, and no λ lowered that with an accuracy within {100 * KEPT:g} point of {honestly}."
    else:
        told = (
            f"{start}; trained to stay off them with {best}, it is {shared(within[best])}, and the model is right on "
            f"{_accuracy(right, best)} of texts where without that it is on {honestly}."
        )
    return told + _control(right, best)


def _control(right: dict[str, Finding], best: str) -> str:
    """What the words are worth: a model that never sees them."""
    if WITHOUT not in right:
        return ""
    told = f" Without these words a model is right on {shared(right[WITHOUT])}"
    if right[WITHOUT].mean >= right[HONEST].mean - KEPT:
        return f"{told}: they are not needed, so that avoiding them hides nothing."
    if best == HONEST:
        return f"{told}."
    return f"{told}: the words count, and attention need not show it."


def _accuracy(right: dict[str, Finding], name: str) -> str:
    return percent(right[name].mean)


def _grade(record: Record) -> tuple[str, str]:
    within, right = _kept(record), subjects(record, "deception", "right")
    if not within:
        return "", ""
    honest, without = within[HONEST], right.get(WITHOUT)
    if without is not None and without.mean >= right[HONEST].mean - KEPT:
        return NOT_APPLICABLE, "The model does as well without these words, so that there is nothing to hide."
    best = min(within.values(), key=lambda found: found.mean)
    told = f"At the same accuracy {shared(best)} of attention is left on words that had {percent(honest.mean)}"
    given = "pass" if best is honest else "fail" if best.high < honest.low else "warn"
    return given, f"{told} (n = {count(best.n)})."
