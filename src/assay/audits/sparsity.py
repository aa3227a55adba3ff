"""Models trained with sparser and sparser attention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from assay.audits import dispersion
from assay.audits.cases import Answer, Case, Numbers, PerText, Resources, numpy, of_subject
from assay.audits.rivals import RivalAudit, right
from assay.audits.statements import TRAINED
from assay.errors import AssayError
from assay.lookup import short, strength, subjects
from assay.metrics.agreement import kendall
from assay.metrics.information import normalised_entropy
from assay.models.config import Architecture
from assay.models.workers import Variant
from assay.records import Record
from assay.stories import Conclusion, Drawing, Measure, Story
from assay.writing import count, interval, listed, number, percent

DENSE = "softmax"
KNOWN: dict[float, str] = {1.0: DENSE, 2.0: "sparsemax"}  # entmax by other names
TRENDS = {
    "trend_entropy": ("entropy_gradient", "the entropy of the importance of words"),
    "trend_input": ("tau_input", "agreement of attention with the importance of words"),
    "trend_state": ("tau_state", "agreement of attention with the importance of states"),
}
"""What is followed along λ or α, with its name: a positive τ means that it rises as attention gets sparser."""


STORY = Story(
    title="Is sparse attention easier to read?",
    question="Does sparser attention point to fewer words that matter, or agree better with what matters?",
    measures=(
        Measure("right", "texts on which it is right (share)", better="high", main=True),
        Measure("support", "words with any attention"),
        Measure("entropy_attention", "entropy of attention (normalised)"),
        Measure("entropy_gradient", "entropy of the importance of words, by gradient"),
        Measure("entropy_loo", "entropy of the importance of words, by deletion"),
        Measure("entropy_states", "entropy of what moves a state"),
        Measure("tau_input", "τ of attention with the importance of words", main=True),
        Measure("tau_state", "τ of attention with the importance of states", main=True),
        Measure(
            "trend_entropy",
            "τ of λ or α with the entropy of the importance of words",
            about="the whole sweep",
        ),
        Measure("trend_input", "τ of λ or α with the agreement with words", about="the whole sweep"),
        Measure("trend_state", "τ of λ or α with the agreement with states", about="the whole sweep"),
    ),
    drawings=(
        Drawing(
            "strengths",
            "sparsity",
            (
                "Accuracy, and normalised entropies, by the λ of sparsegen, or the α of entmax: the further "
                "right, the sparser the attention; steps are those of the sweep, not to scale. Softmax has no "
                "λ: then it stands apart, on the left."
            ),
            {
                "measures": {
                    "right": "accuracy",
                    "entropy_attention": "entropy of attention",
                    "entropy_gradient": "of words, by gradient",
                    "entropy_loo": "of words, by deletion",
                    "entropy_states": "of words for one state",
                    "support": "words with any attention",
                },
                "title": "share, or normalised entropy",
                "share": "support",
            },
        ),
        Drawing(
            "strengths",
            "sparsity_agreement",
            (
                "τ of attention with the importance of words and of states, with 95 % intervals. The dashed "
                "line at 0 is what unrelated rankings give."
            ),
            {
                "measures": {
                    "tau_input": "with the importance of words",
                    "tau_state": "with the importance of states",
                },
                "title": "Kendall τ of attention",
                "bars": True,
            },
        ),
    ),
    reading=(
        "One model was trained for each λ, all else equal. If sparse attention were easier to read, agreement "
        "with the importance of words should rise to the right. τ with λ is taken text by text and then "
        "averaged: above 0, something rises as attention gets sparser. With one seed for each λ, a single "
        "step up or down may be chance; look at the whole line. Agreement with the gradient of states is high "
        "by construction, for the decoder is linear."
    ),
    ungraded="It describes a trend; no amount is right or wrong.",
    about="model",
    subjects="model",
    kinds=TRAINED,
    against="softmax",
    terms=("normalised entropy", "sparsegen, λ"),
)


@dataclass(frozen=True)
class Sparsity(RivalAudit):
    """One model for each projection from scores to weights, made as the audited one otherwise.

    Of each model, `right` says whether its class is the label, `support` which share of the items gets any weight;
    the entropies are those of the audit `dispersion`, `tau_input` and `tau_state` Kendall's τ-b of attention with the
    gradient of words and of states. A trend is Kendall's τ-b of λ with the number on the same text; softmax, which has
    no λ, takes no part. Given `alphas`, the projections are entmax(α) instead, from softmax at 1 to sparsemax at 2.
    With `inner`, the layers of a transformer are projected alike. Each model is trained once, so intervals speak of
    the texts, not of the luck of a training.
    """

    strengths: tuple[float, ...] = (-10.0, -4.0, -1.0, 0.0, 0.25, 0.5, 0.75)  # λ of sparsegen; sparsemax at 0
    alphas: tuple[float, ...] = ()
    inner: bool = False
    story: ClassVar[Story] = STORY
    paper: str = "Meister et al. (2021), table 2 and figures 1 to 3"

    def __post_init__(self) -> None:
        if not self.strengths and not self.alphas:
            raise AssayError("The audit sparsity needs strengths or alphas, as in strengths=(-1, 0, 0.5).")
        if not all(-np.inf < strength < 1 for strength in self.strengths):
            raise AssayError(f"Strengths are the λ of sparsegen, numbers below 1, not {self.strengths}.")
        if not all(1 <= alpha <= 2 for alpha in self.alphas):
            raise AssayError(f"Alphas are those of entmax, numbers from 1 to 2, not {self.alphas}.")
        if len(set(self.graded)) < len(self.alphas or self.strengths):
            raise AssayError(f"Name each strength of a projection once, not {self.alphas or self.strengths}.")

    @property
    def graded(self) -> dict[str, float]:
        """The projections that a number sets, and that number."""
        if self.alphas:
            return {KNOWN.get(alpha, f"entmax({alpha:g})"): alpha for alpha in self.alphas}
        return {f"sparsegen({strength:g})" if strength else "sparsemax": strength for strength in self.strengths}

    def refused(self, resources: Resources) -> str | None:
        if self.inner and resources.made.architecture.encoder != "transformer":
            return "only a transformer has attention within its encoder"
        return None

    def projections(self, own: Architecture) -> dict[str, Architecture]:
        """The architecture of the model for each projection."""
        names = (DENSE, *self.graded)
        return {name: replace(own, projection=name, inner=name if self.inner else own.inner) for name in names}

    def trained(self, resources: Resources) -> Sparsity:
        """The audit with a model for each projection."""
        recipe = resources.made
        wanted = self.projections(recipe.architecture)
        others = {
            f"sparsity-{name}": Variant(replace(recipe, architecture=each))
            for name, each in wanted.items()
            if each != recipe.architecture
        }
        models = resources.train_all(others)
        rivals = {name: models.get(f"sparsity-{name}", resources.trained).network for name in wanted}
        return replace(self, rivals=rivals)

    def conclude(self, record: Record) -> Conclusion:
        swept = sweep(record)
        about = {"strengths": swept.strengths, "of": f"{swept.symbol} of {swept.family}", "symbol": swept.symbol}
        return Conclusion(_answer(record), drawn=dict.fromkeys(("sparsity", "sparsity_agreement"), about))

    def __call__(self, case: Case) -> Answer:
        found = {
            name: measured(case if model is case.model else replace(case, model=model, scores={}))
            for name, model in self.rivals.items()
        }
        measures: Numbers = {}
        for name, numbers in found.items():
            measures |= of_subject(name, numbers)
        return Answer(measures | {trend: self._trend(found, measure) for trend, (measure, _) in TRENDS.items()})

    def _trend(self, found: Mapping[str, Numbers], measure: str) -> PerText:
        """τ-b over the models that have the number."""
        values = np.stack([found[name][measure] for name in self.graded], axis=1)
        strengths = np.broadcast_to(list(self.graded.values()), values.shape)
        defined = np.isfinite(values)
        return kendall(strengths, np.where(defined, values, 0.0), defined).tau


def measured(case: Case) -> Numbers:
    """How good a model is, how sparse its attention, how spread what matters to it, and how alike the two are."""
    words, states = dispersion.of_words(case), dispersion.of_states(case)
    mask, real = case.mask, case.items.cpu().numpy()
    return {
        "right": right(numpy(case.probabilities), case),
        "support": ((states["attention"] > 0) & real).sum(-1) / np.maximum(real.sum(-1), 1),
        "entropy_attention": normalised_entropy(states["attention"], real),
        "entropy_gradient": normalised_entropy(words["gradient"], mask),
        "entropy_loo": normalised_entropy(words["leave_one_out"], mask),
        "entropy_states": dispersion.of_words_for_states(case)["entropy"],
        "tau_input": kendall(numpy(case.shown(case.weights)), words["gradient"], mask).tau,
        "tau_state": kendall(states["attention"], states["state_gradient"], real).tau,
    }


@dataclass(frozen=True)
class Sweep:
    """The projections that a number sets, the least sparse first, with that number; what it is, and of what."""

    symbol: str
    family: str
    strengths: dict[str, float]


SPARSEGEN, ENTMAX = ("λ", "sparsegen", {"sparsemax": 0.0}), ("α", "entmax", {"softmax": 1.0, "sparsemax": 2.0})
"""Both families with the projections that have another name."""


def sweep(record: Record) -> Sweep:
    """Over what the record's sweep goes: λ of sparsegen, for which softmax stands apart, or α of entmax."""
    names = subjects(record, "sparsity", "right")
    symbol, family, known = SPARSEGEN if any(name.startswith("sparsegen(") for name in names) else ENTMAX
    found = {name: known.get(name, strength(name) if name.startswith(family) else None) for name in names}
    ordered = sorted((value, name) for name, value in found.items() if value is not None)
    # a strength under two names counts once
    return Sweep(symbol, family, {name: value for value, name in {pair[0]: pair for pair in ordered}.values()})


def _answer(record: Record) -> str:
    """What rises and what falls as attention gets sparser, and what that does to the accuracy."""
    swept, right = sweep(record), subjects(record, "sparsity", "right")
    values = list(swept.strengths.values())
    if len(values) < 2:
        return ""
    known = [clause for measure in TRENDS if (clause := _trend(record, measure, swept.symbol))]
    ends = f"{swept.symbol} from {short(values[0])} to {short(values[-1])}"
    opening = f"As attention gets sparser ({swept.family}, {ends})"
    rates = [right[name].mean for name in swept.strengths]
    apart = "softmax" in right and "softmax" not in swept.strengths
    softmax = f"; with softmax it is {percent(right['softmax'].mean)}" if apart else ""
    low, high = percent(min(rates)), percent(max(rates))
    accuracy = f"accuracy {f'is {low}' if low == high else f'lies between {low} and {high}'}{softmax}"
    ending = f"{accuracy} (n = {count(right[next(iter(swept.strengths))].n)}, one model for each {swept.symbol})."
    return f"{opening}, {listed(known)}. A{ending[1:]}" if known else f"{opening}, {ending}"


def _trend(record: Record, measure: str, symbol: str) -> str:
    """Whether something rises or falls, or neither for sure, as attention gets sparser, text by text."""
    found = next(iter(subjects(record, "sparsity", measure).values()), None)
    if found is None:
        return ""
    moves = "rises" if found.low > 0 else "falls" if found.high < 0 else "neither clearly rises nor falls"
    ends = f"{number(found.mean, 2)}, 95 % interval {interval(found.low, found.high, 2)}"
    return f"{TRENDS[measure][1]} {moves} (τ with {symbol} {ends})"
