"""Does sparser attention point to fewer words that matter, or agree better with what matters?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Float

from assay.audits import dispersion
from assay.audits.cases import Answer, Case, numpy
from assay.audits.resources import LACKING, Resources, Variant
from assay.audits.rivals import made, right, unfit_for_rivals
from assay.errors import AssayError
from assay.metrics.agreement import kendall
from assay.metrics.entropy import normalised_entropy
from assay.models.architecture import Architecture
from assay.models.network import Network

Numbers = dict[str, Float[np.ndarray, " B"]]
DENSE = "softmax"
KNOWN: dict[float, str] = {1.0: DENSE, 2.0: "sparsemax"}  # entmax by other names
TRENDS = {"trend_entropy": "entropy_gradient", "trend_input": "tau_input", "trend_state": "tau_state"}


@dataclass(frozen=True)
class Sparsity:
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
    paper: str = "Meister et al. (2021), table 2 and figures 1 to 3"
    lacking: str | None = LACKING
    models: Mapping[str, Network] = field(default_factory=dict, compare=False, repr=False)

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

    def kind(self, classes: int) -> str:
        return "sample"

    def unfit(self, case: Case) -> str | None:
        return unfit_for_rivals(case, self.lacking)

    def prepared(self, resources: Resources) -> Sparsity:
        """The audit with a model for each projection."""
        if (reason := resources.lacks()) is not None:
            return replace(self, lacking=reason)
        recipe = made(resources)
        if self.inner and recipe.architecture.encoder != "transformer":
            return replace(self, lacking="only a transformer has attention within its encoder")
        wanted = {name: self._projected(recipe.architecture, name) for name in (DENSE, *self.graded)}
        others = {
            f"sparsity-{name}": Variant(replace(recipe, architecture=each))
            for name, each in wanted.items()
            if each != recipe.architecture
        }
        trained = resources.train_all(others)
        models = {name: trained.get(f"sparsity-{name}", resources.trained).network for name in wanted}
        return replace(self, models=models, lacking=None)

    def __call__(self, case: Case) -> Answer:
        found = {
            name: measured(case if model is case.model else replace(case, model=model, scores={}))
            for name, model in self.models.items()
        }
        measures = {f"{measure}:{name}": values for name, each in found.items() for measure, values in each.items()}
        return Answer(measures | {trend: self._trend(found, measure) for trend, measure in TRENDS.items()})

    def _projected(self, architecture: Architecture, name: str) -> Architecture:
        inner = name if self.inner else architecture.inner
        return replace(architecture, projection=name, inner=inner)

    def _trend(self, found: Mapping[str, Numbers], measure: str) -> Float[np.ndarray, " B"]:
        """τ-b over the models that have the number."""
        values = np.stack([found[name][measure] for name in self.graded], axis=1)
        strengths = np.broadcast_to(list(self.graded.values()), values.shape)
        defined = np.isfinite(values)
        return kendall(strengths, np.where(defined, values, 0.0), defined).tau


def measured(case: Case) -> Numbers:
    """How good a model is, how sparse its attention, how spread what matters to it, and how alike the two are."""
    words, states = dispersion.of_words(case), dispersion.of_states(case)
    mask, real = case.batch.mask.cpu().numpy(), case.items.cpu().numpy()
    return {
        "right": right(numpy(case.probabilities), case),
        "support": ((states["attention"] > 0) & real).sum(-1) / np.maximum(real.sum(-1), 1),
        "entropy_attention": normalised_entropy(states["attention"], real),
        "entropy_gradient": normalised_entropy(words["gradient"], mask),
        "entropy_loo": normalised_entropy(words["leave_one_out"], mask),
        "entropy_states": dispersion.of_words_for_states(case)["entropy"],
        "tau_input": kendall(dispersion.attention_to_words(case), words["gradient"], mask).tau,
        "tau_state": kendall(states["attention"], states["state_gradient"], real).tau,
    }
