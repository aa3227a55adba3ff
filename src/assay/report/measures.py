"""What each measure of an audit is called, which way is better, and what it says in one line."""

from __future__ import annotations

from dataclasses import dataclass

from assay.records import CHANCE
from assay.report.compared import labels
from assay.report.yardsticks import NULL

MOST = 15
"""More explainers than this are not drawn in one figure of dots; the table below it holds all."""

BASELINES = (CHANCE, NULL)

ARROWS = {True: "↑", False: "↓"}


@dataclass(frozen=True)
class Measure:
    """A column of the leaderboard; `faithful` ones ask what the model used, and decide the order."""

    audit: str
    name: str
    head: str
    short: str  # for a terminal
    rises: bool  # whether more is better
    meaning: str
    faithful: bool = True

    @property
    def title(self) -> str:
        """Its name in a sentence."""
        return self.head.replace("\u00ad", "")

    @property
    def arrow(self) -> str:
        return ARROWS[self.rises]


COLUMNS = (
    Measure(
        "truth", "auprc", "AUPRC", "AUPRC", True, "how well the ranking finds the words that decide by construction"
    ),
    Measure(
        "deciding",
        "economy",
        "economy",
        "economy",
        True,
        "how few of its highest words it takes to keep the decision, and to lose it, beside the ranking that takes the "
        "fewest, while words of other texts stand in all other places",
    ),
    Measure(
        "erasure",
        "comprehensiveness",
        "compre\u00adhensiveness",
        "compreh.",
        True,
        "how far the probability of the predicted class falls without the highest words",
    ),
    Measure(
        "erasure",
        "sufficiency",
        "sufficiency",
        "suffic.",
        False,
        "how far that probability falls when the highest words alone are left",
    ),
    Measure(
        "erasure",
        "flip",
        "flip",
        "flip",
        False,
        "share of words to delete until the decision first changes, all where it never does",
    ),
    Measure("erasure", "morf", "MoRF", "MoRF", False, "area under the probability while the highest words go first"),
    Measure("roar", "fall_gain", "ROAR", "ROAR", True, "accuracy that a retrained model loses beyond random removal"),
    Measure("shortcut", "shown", "shortcut", "shortcut", True, "how well it shows the planted token that was used"),
    Measure(
        "sanity",
        "similarity",
        "sanity",
        "sanity",
        False,
        "τ between explanations of the model and of randomised ones: one that looks at no model has 1",
        faithful=False,
    ),
    Measure(
        "stability",
        "steadiness",
        "steadiness",
        "steady",
        True,
        "τ between explanations before and after tiny changes of the input",
        faithful=False,
    ),
    Measure(
        "plausibility",
        "token_f1",
        "human token F1",
        "human F1",
        True,
        "overlap with the words that people marked",
        faithful=False,
    ),
    Measure(
        "plausibility",
        "iou_f1",
        "human IOU F1",
        "human IOU",
        True,
        "overlap with the passages that people marked",
        faithful=False,
    ),
    Measure(
        "plausibility",
        "auprc",
        "human AUPRC",
        "human AUC",
        True,
        "how well the ranking finds the words that people marked",
        faithful=False,
    ),
)
"""In the order of a table; a terminal shows as many from the left as fit."""

PARTIAL = {"minimal_set": ("fraction", "mass", "excess")}
"""Means of older records over texts that depend on the subject: no two compare, so that no page shows them."""

LABELS = {
    "tau": "Kendall τ",
    "significant": "texts whose τ differs from 0 at p ≤ 0.05 (share)",
    "median_tvd": "median output change (TVD)",
    "max_attention": "largest attention weight",
    "jsd": "furthest equal-prediction attention (JSD)",
    "jsd_upper": "certified upper bound (JSD)",
    "jsd_of_k": "mean of several such attentions (JSD)",
    "tvd": "its output change (TVD)",
    "uniform": "output change with equal weights (TVD)",
    "uniform_flips": "texts then decided otherwise (share)",
    "permuted": "median output change with shuffled weights (TVD)",
    "permuted_flips": "shuffles then decided otherwise (share)",
    "economy": "economy of the highest words",
    "sufficient": "fewest words that keep the decision, as a share of its own",
    "necessary": "fewest words that the decision is lost without, as a share of its own",
    "auprc": "AUPRC",
    "auprc_size": "AUPRC by absolute score",
    "precision": "precision at the number of deciding words",
    "token_f1": "token F1",
    "token_precision": "token precision",
    "token_recall": "token recall",
    "iou_f1": "IOU F1",
    "iou_precision": "IOU precision",
    "iou_recall": "IOU recall",
    "average_precision": "average precision",
    "log_odds": "log-odds",
    "flip": "words deleted until the decision changes, all where it never does (share)",
    "flip_mask": "words masked until the decision changes, all where it never does (share)",
    "flipped": "texts whose decision changes at all (share)",
    "morf": "area, highest words first (MoRF)",
    "lerf": "area, lowest words first (LeRF)",
    "overlap": "overlap of the top words",
    "sign": "same sign (share of words)",
    "similarity": "τ with explanations of randomised models",
    "similarity_labels": "τ with explanations of a model of random labels",
    "steadiness": "τ after tiny changes of the input",
    "change": "relative change of the scores",
    "seeds": "τ between models of other seeds",
    "moved": "change of the prediction itself",
    "fall_gain": "accuracy lost beyond random removal",
    "used": "texts in which the model uses the shortcut (share)",
    "shown": "how well the shortcut is shown",
    "delta_js": "how much more the top item moves the output (ΔJS)",
    "delta_weight": "gap between their attention weights (Δα)",
    "smaller": "texts in which it moves the output less (share)",
    "both": "either item alone changes the decision (share)",
    "top_only": "only the top item changes the decision (share)",
    "other_only": "only the other item changes the decision (share)",
    "neither": "neither changes the decision (share)",
    "erased": "items erased until the decision changes, all where it never does (share)",
    "erased_mass": "attention erased until the decision changes, all where it never does (share)",
    "never": "texts whose decision never changes (share)",
    "too_many": "items erased beyond the smallest set, in texts whose decision some set changes",
    "optimal": "texts in which it is as short as possible (share)",
    "wins": "texts in which the first needs fewer items (share)",
    "items": "attended items",
}

OWN = {
    "gap": "what the scores leave unexplained (share of the output)",
    "nodes": "gradients along the path",
    "remaining": "share of words that is left",
    "results": "shortest results",
    "swaps": "words swapped until the decision changes, in texts where it does",
    "flipped": "texts whose decision changes (share)",
    "fit": "fit of the surrogate (R²)",
    "exact": "texts without sampling (share)",
    "standard_error": "standard error of a score",
    "precision": "precision of the rule",
    "lower_bound": "lower bound of that precision",
    "size": "words in the rule",
    "coverage": "coverage of the rule",
    "conserved": "relevance that is conserved (share)",
}
"""What explainers report of their own scores."""


def label(measure: str, audit: str = "") -> str:
    """A measure's name for a table: `comprehensiveness@0.1` and the like are put together from their parts."""
    if (own := labels.label(audit, measure)) is not None:
        return own
    base, _, share = measure.partition("@")
    stem, gained = base.removesuffix("_gain"), base.endswith("_gain") and base not in LABELS
    if base.startswith("similarity_") and base not in LABELS:
        part = base.removeprefix("similarity_")
        words = f"τ after randomising from the output down to {'' if part.startswith('layer ') else 'the '}{part}"
    else:
        words = LABELS.get(stem if gained else base, (stem if gained else base).replace("_", " "))
    return words + (f" at {100 * float(share):g} %" if share else "") + (", gain over chance" if gained else "")
