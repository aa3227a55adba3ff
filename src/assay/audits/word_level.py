"""Models trained with word-level objectives, and the information that their hidden states have of their words."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.audits.cases import Answer, Case, Numbers, PerText, Resources, mean_defined, numpy, of_subject
from assay.audits.equal_predictions import Adversary
from assay.audits.marked_words import Truth
from assay.audits.permutation import Permutation
from assay.audits.rivals import RivalAudit, right
from assay.audits.statements import NOTICED, TRAINED
from assay.data.batches import Tokenised, tokenise
from assay.errors import AssayError, unknown
from assay.lookup import difference, subjects
from assay.metrics.information import Decoder, Words
from assay.models.config import Training
from assay.models.network import Network
from assay.models.objectives import REGULARISERS
from assay.models.recipes import Recipe
from assay.models.textmodel import groups
from assay.models.workers import Variant
from assay.records import Finding, Record
from assay.stories import Conclusion, Drawing, Grid, Measure, Story
from assay.types import Batch
from assay.writing import count, interval, listed, number, percent


@dataclass(frozen=True)
class Decoded:
    """A network with a decoder of words from hidden states, and a control fitted to shuffled words."""

    network: Network
    decoder: Decoder
    shuffled: Decoder

    def bits(self, batch: Batch) -> tuple[PerText, PerText]:
        """The mean information of each text's hidden states about their words, in bits, by both decoders."""
        states, mask = numpy(word_states(self.network, batch)), batch.mask.cpu().numpy()
        words = batch.ids.cpu().numpy()[mask]
        found = np.full((2, *mask.shape), np.nan)
        for each, decoder in zip(found, (self.decoder, self.shuffled), strict=True):
            each[mask] = decoder.pointwise(states[mask], words)
        information, shuffled = (mean_defined(each.T) for each in found)
        return information, shuffled


@torch.no_grad()
def word_states(network: Network, batch: Batch) -> Float[Tensor, "B T M"]:
    """Hidden state per word, as input to the attention layer."""
    x = network.embed(batch)
    encodings = network.encodings(x, batch, network.states(x, batch))
    return network.beside(encodings, x, batch.mask)


@dataclass(frozen=True)
class Decoding:
    """Fits decoders on training texts, for the audited texts."""

    texts: Sequence[Tokenised]
    audited: Sequence[Tokenised]
    words: Words
    seed: int

    @classmethod
    def of(cls, resources: Resources, words: Words, tokens: int, seed: int) -> Decoding:
        """With about so many tokens of random training texts."""
        assert resources.corpus is not None
        train, tokeniser = resources.corpus.train, resources.model.tokeniser
        length = sum(len(row.ids) for row in resources.rows) / len(resources.rows)
        drawn = random.Random(seed).sample(range(len(train)), min(len(train), math.ceil(tokens / length)))
        texts, _ = tokenise([train[place] for place in drawn], tokeniser, tokeniser.options.longest)
        return cls(texts, resources.rows, words, seed)

    def __call__(self, network: Network) -> Decoded:
        """The network with its decoders."""
        network.eval()
        found = [(numpy(word_states(network, batch)[batch.mask]), batch) for _, batch in groups(network, self.texts)]
        states = np.concatenate([part for part, _ in found])
        words = np.concatenate([batch.ids[batch.mask].cpu().numpy() for _, batch in found])
        states, words = states[words >= network.ordinary], words[words >= network.ordinary]
        mixed = np.random.default_rng(self.seed).permutation(words)
        return Decoded(network, *(self._rated(self.words.fit(states, each)) for each in (words, mixed)))

    def _rated(self, decoder: Decoder) -> Decoder:
        """The decoder with the word frequencies of the audited texts, each text weighted equally.

        So the mean over texts is a bound on the information of a word drawn from a text drawn.
        """
        rows = [row.ids.cpu().numpy() for row in self.audited]
        counts = [decoder.known(words).sum() for words in rows]
        weights = [np.full(len(words), 1 / max(count, 1)) for words, count in zip(rows, counts, strict=True)]
        return decoder.rated(np.concatenate(rows), np.concatenate(weights))


BASE, CONCAT = "base", "concat"
STRENGTHS = (*REGULARISERS, "mlm")
GAINS = ("right", "median_tvd", "auprc")
SHUFFLED = "information_shuffled"


BESIDE = {
    "called": {name: name for name in (BASE, CONCAT, "tying", "mlm", "conicity", "diversity")},
    "null": BASE,
}
"""The models of a figure, in their order, and the one that others are held against."""

STORY = Story(
    title="Does attention say more when states stay close to their words?",
    question="Does attention tell more when every state has to stay true to its word?",
    measures=(
        Measure("right", "texts on which it is right (share)", better="high", main=True),
        Measure("right_gain", "the same, gain over the base model", better="high"),
        Measure("information", "information of a state on its word, at least (bits)"),
        Measure(
            "information_shuffled",
            "the same with words shuffled: about 0, or the estimate is wrong",
        ),
        Measure("median_tvd", "median output change when attention is shuffled (TVD)", main=True),
        Measure("median_tvd_gain", "the same, gain over the base model"),
        Measure("jsd", "furthest attention (JSD)", at=" where the output may move by {value}"),
        Measure("auprc", "AUPRC of attention"),
        Measure("auprc_gain", "the same, gain over the base model"),
    ),
    drawings=(
        Drawing(
            "thresholds",
            "word_level",
            (
                "How far another attention can lie (JSD) when the output may move so much (TVD). Lower is "
                "better: then another attention costs more."
            ),
            {
                "measure": "jsd",
                "title": "furthest attention (JSD)",
                "by": "allowed change of the output (TVD)",
                "first": "base",
            },
        ),
        Drawing(
            "models",
            "word_level_right",
            "Accuracy of each model, with 95 % intervals. The dashed line is the base model.",
            {
                "measure": "right",
                "title": "texts on which it is right",
                **BESIDE,
                "shares": True,
            },
        ),
        Drawing(
            "models",
            "word_level_information",
            "How much a state tells of its own word, with 95 % intervals. The dashed line is the base model.",
            {
                "measure": "information",
                "title": "information on the word, at least (bits)",
                **BESIDE,
            },
        ),
        Drawing(
            "models",
            "word_level_shuffled",
            (
                "Median change of the prediction when attention is shuffled, with 95 % intervals. The dashed "
                "line is the base model."
            ),
            {
                "measure": "median_tvd",
                "title": "change when shuffled (TVD)",
                **BESIDE,
            },
        ),
    ),
    reading=(
        "Each variant is trained like the base model with one thing added that keeps a state close to its "
        "word. It is worth its cost where the task score holds, a state tells more of its word, and shuffling "
        "or replacing attention changes more. Information is a lower bound, among frequent words; with words "
        "shuffled it should be about 0. The base model need not be the audited one: its states may have been "
        "given the size of embeddings. One seed for each variant."
    ),
    ungraded="It compares models, each trained once; no limit between them can be defended.",
    about="model",
    subjects="model",
    kinds=TRAINED,
    against="base",
    terms=("TVD", "JSD", "AUPRC", "information"),
)


@dataclass(frozen=True)
class WordLevel(RivalAudit):
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
    story: ClassVar[Story] = STORY
    paper: str = "Tutek and Šnajder (2020), word-level objectives; Mohankumar et al. (2020)"

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

    def refused(self, resources: Resources) -> str | None:
        """Why states of this recipe cannot have the size of embeddings, or None."""
        parts = resources.made.architecture
        if parts.encoder == "none":
            return "the model has no encoder, so its states are the words themselves"
        step = 8 if parts.encoder in ("cnn", "transformer") else 2
        if "tying" not in self.variants or parts.embedding % step == 0:
            return None
        return f"states of the {parts.encoder} encoder can be as large as embeddings only if {step} divides their size"

    def trained(self, resources: Resources) -> WordLevel:
        """The audit with all models and the decoders of their states."""
        recipes = self.recipes(resources.made)
        own = recipes[BASE] == resources.made
        wanted = {f"word_level-{name}": Variant(made) for name, made in recipes.items() if not (own and name == BASE)}
        models = {f"word_level-{BASE}": resources.trained, **resources.train_all(wanted)}
        decoding = Decoding.of(resources, Words(self.words), self.tokens, self.seed)
        return replace(self, rivals={name: decoding(models[f"word_level-{name}"].network) for name in recipes})

    def conclude(self, record: Record) -> Conclusion:
        table = _table(record)
        return Conclusion(_answer(record), tables=(table,) if table.rows else ())

    def __call__(self, case: Case) -> Answer:
        found = {name: self._measured(replace(case, model=each.network), each) for name, each in self.rivals.items()}
        measures: Numbers = {}
        for name, numbers in found.items():
            measures |= of_subject(name, numbers)
            if name != BASE:
                gained = [measure for measure in GAINS if measure in numbers]
                gains = {f"{measure}_gain": numbers[measure] - found[BASE][measure] for measure in gained}
                measures |= of_subject(name, gains)
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

    def _measured(self, case: Case, model: Decoded) -> Numbers:
        """All numbers of one model; the case is that model's."""
        information, shuffled = model.bits(case.batch)
        measures = {
            "right": right(numpy(case.probabilities), case),
            "information": information,
            SHUFFLED: shuffled,
            "median_tvd": Permutation()(case).measures["median_tvd"],
        }
        for epsilon in self.epsilons[:: 1 if case.values.shape[-1] <= 3 else 2]:
            measures[f"jsd@{epsilon:g}"] = Adversary(epsilon, k=1)(case).measures["jsd"]
        shown = replace(case, scores={"attention": case.shown(case.weights)})
        if Truth().unfit(shown) is None:
            measures["auprc"] = Truth()(shown).measures["auprc:attention"]
        return measures


TITLES = {
    BASE: "base",
    "concat": "concat: words beside states",
    "tying": "tying: states drawn to words",
    "mlm": "mlm: states tell masked words",
    "conicity": "conicity",
    "diversity": "diversity",
}
"""What a variant is called where there is room."""


def _gain(record: Record, measure: str, variant: str) -> Finding | None:
    """How much more of a measure a variant has than the base model: as the audit found it, else text by text."""
    found = subjects(record, "word_level", f"{measure}_gain").get(variant)
    return found if found is not None else difference(record, "word_level", measure, variant, BASE)


def _variants(record: Record) -> list[str]:
    """The variants that were trained, without the base model."""
    return [name for name in subjects(record, "word_level", "right") if name != BASE]


def _answer(record: Record) -> str:
    """Which variants keep the task score, which states know more of their words, where shuffling matters more."""
    right, names = subjects(record, "word_level", "right"), _variants(record)
    if BASE not in right or not names:
        return ""
    told = _score(_gains(record, "right"))
    for measure, start in (
        ("information", "States tell more bits of their words (at least)"),
        ("median_tvd", "Shuffling attention moves predictions more (TVD)"),
        ("auprc", "Attention finds the deciding words better (AUPRC)"),
    ):
        told += _raised(_gains(record, measure), start)
    told += (
        f" The base model is right on {percent(right[BASE].mean)} of texts (n = {count(right[BASE].n)}); in brackets "
    )
    told += "stand 95 % intervals. One model was trained for each, so that part of a difference may be its seed."
    return told.strip()


def _gains(record: Record, measure: str) -> dict[str, Finding]:
    found = {name: _gain(record, measure, name) for name in _variants(record)}
    return {name: gain for name, gain in found.items() if gain is not None}


def _score(gains: dict[str, Finding]) -> str:
    lost = {name: found for name, found in gains.items() if found.high < 0}
    held = [name for name in gains if name not in lost]
    told = [f"not surely lower with {listed(held)}"] if held else []
    told += [f"lower with {_amounts(lost, -100, 1)} points"] if lost else []
    return f"The task score is {' and '.join(told)}." if gains else ""


def _raised(gains: dict[str, Finding], start: str) -> str:
    more = {name: found for name, found in gains.items() if found.low > NOTICED}
    less = {name: found for name, found in gains.items() if found.high < -NOTICED}
    if not gains:
        return ""
    told = f" {start} with {_amounts(more, 1) if more else 'none of them'}"
    return f"{told}; it is the other way round with {_amounts(less, -1)}." if less else f"{told}."


def _amounts(gains: dict[str, Finding], scale: int, places: int = 2) -> str:
    return listed([f"{name} by {_with_ends(found, scale, places)}" for name, found in gains.items()])


def _with_ends(found: Finding, scale: int, places: int) -> str:
    """A mean with its interval in brackets; a negative scale turns both round."""
    low, high = sorted((scale * found.low, scale * found.high))
    return f"{number(scale * found.mean, places)} ({interval(low, high, places)})"


def _table(record: Record) -> Grid:
    """A row for each model: accuracy, information with its floor, what shuffling does, and AUPRC where there is one."""
    measures = {"right": "right", "information": "information (bits)", "median_tvd": "median TVD", "auprc": "AUPRC"}
    found = {measure: subjects(record, "word_level", measure) for measure in (*measures, SHUFFLED)}
    shown = {measure: head for measure, head in measures.items() if found[measure]}
    columns = ["model"]
    rows = {name: [TITLES.get(name, name)] for name in found["right"]}
    for measure, head in shown.items():
        share = measure == "right"
        columns += [head, "gain over base"]
        for name, row in rows.items():
            mean, gain = found[measure].get(name), None if name == BASE else _gain(record, measure, name)
            row.append("–" if mean is None else percent(mean.mean) if share else number(mean.mean, 2))
            row.append("–" if gain is None else _with_ends(gain, 100, 1) if share else _with_ends(gain, 1, 2))
            if measure == "information":
                floor = found[SHUFFLED].get(name)
                row.append("–" if floor is None else number(floor.mean, 2))
        columns += ["words shuffled"] if measure == "information" else []
    return Grid(tuple(columns), tuple(map(tuple, rows.values())), first_number=1)
