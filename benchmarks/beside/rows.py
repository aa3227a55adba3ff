"""What is compared with what: one row for each explainer, measure and method that a peer has too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import spearmanr

from benchmarks.beside.turns import Found, Scores

PEERS, FERRET = ".venv-peers/bin/python", ".venv-ferret/bin/python"


@dataclass(frozen=True)
class Row:
    """A question and two ways to answer it; `floor` is what any way has to read of a text, forward and backward.

    Where both mean the `same` number, their largest difference is told, else how alike they rank.
    """

    method: str
    peer: str
    ours: str
    theirs: str
    floor: str
    texts: int = 4
    same: bool = True
    python: str = PEERS

    @property
    def begins(self) -> str:
        """How its line begins: what tells it from the others."""
        return f"| {self.method} | {self.peer} |"


@dataclass(frozen=True)
class Pair:
    """Both sides of a row: milliseconds and what came out."""

    row: Row
    milliseconds: tuple[float, float]
    found: tuple[Found, Found]

    @property
    def agreement(self) -> str:
        mine, other = (side.scores for side in self.found)
        if len(mine[0]) != len(other[0]) or len(mine[0]) == 1:
            return "–"
        if not self.row.same:
            return f"ρ {likeness(mine, other):.2f}"
        return f"{distance(mine, other):.0e}".replace("0e+00", "0")

    def line(self) -> str:
        """The row of the table."""
        ours, theirs = self.milliseconds
        read = " / ".join(_number(side.forward / self.row.texts) for side in self.found)
        cells = (
            self.row.floor,
            read,
            _number(ours),
            _number(theirs),
            ratio(ours, theirs),
            " / ".join(f"{side.megabytes:.0f}" for side in self.found),
            self.agreement,
        )
        return f"{self.row.begins} {' | '.join(cells)} |"


def distance(mine: Scores, other: Scores) -> float:
    """The largest difference, in parts of the largest score."""
    one, two = np.array(mine), np.array(other)
    return float(np.abs(one - two).max() / np.abs(one).max())


def likeness(mine: Scores, other: Scores) -> float:
    """Spearman's correlation, the mean over texts."""
    pairs = zip(mine, other, strict=True)
    return float(np.mean([spearmanr(one, two).statistic for one, two in pairs]))


def ratio(ours: float, theirs: float) -> str:
    """The peer's time over ours; a few percent are noise."""
    found = theirs / ours
    return f"{found:.2f}×" if found < 1.5 else f"{found:.1f}×" if found < 10 else f"{found:.0f}×"


def _number(value: float) -> str:
    if np.isnan(value) or value == 0:
        return "–"
    return f"{value:,.0f}" if value >= 99.5 else f"{value:.3g}"


HEAD = (
    "| | peer | floor | read, ours / peer | ours, ms | peer, ms | peer / ours | peak MB, ours / peer | difference |",
    "|---|---|---|---|---|---|---|---|---|",
)
GRADIENT, PATH, EACH, MANY = "1 + 1 back", "50 + 50 back", "31", 16

USUAL: Sequence[Row] = (
    Row("gradient", "captum", "ours:gradient", "with_captum:gradient", GRADIENT, MANY),
    Row("gradient", "ferret", "ours:gradient", "with_ferret:gradient", GRADIENT, MANY, False, FERRET),
    Row("gradient of the next word, GPT-2", "inseq", "nextword:gradient", "nextword:inseq_gradient", GRADIENT),
    Row("integrated gradients", "captum", "ours:integrated_usual", "with_captum:integrated_usual", "–", 2, False),
    Row(
        "integrated gradients, baseline of padding",
        *("ferret", "ours:integrated_pad_usual", "with_ferret:integrated", "–", 2, False, FERRET),
    ),
    Row("each word left out or masked", "captum", "ours:occlusion", "with_captum:ablation_usual", EACH, same=False),
    Row("LIME, 256", "captum", "ours:lime", "with_captum:lime_usual", "256", 2, False),
    Row("LIME, 256", "lime", "ours:lime", "with_lime:lime", "256", 2, False),
    Row("LIME, 1,024", "ferret", "ours:lime_most", "with_ferret:lime", "1,024", 1, False, FERRET),
    Row("KernelSHAP, 256", "captum", "ours:kernel_shap", "with_captum:kernel_shap_usual", "256", 2, False),
    Row("Shapley values, 16 orders", "captum", "ours:shapley", "with_captum:shapley_usual", "466", 1, False),
    Row("partition SHAP, 500 reads", "shap", "ours:owen", "with_shap:usual", "500", 1, False),
    Row("partition SHAP, 500 reads", "ferret", "ours:owen", "with_ferret:shap", "500", 1, False, FERRET),
)
ALIKE: Sequence[Row] = (
    Row("input × gradient", "captum", "ours:input_x_gradient", "with_captum:input_x_gradient", GRADIENT, MANY),
    Row("integrated gradients, 49 and 50 nodes", "captum", "ours:integrated", "with_captum:integrated", PATH, 2),
    Row(
        "integrated gradients, 49 and 50 nodes, baseline of padding",
        *("ferret", "ours:integrated_pad", "with_ferret:integrated", PATH, 1, False, FERRET),
    ),
    Row(
        "integrated gradients of the next word, other baselines",
        *("inseq", "nextword:integrated", "nextword:inseq_integrated", PATH, 2, False),
    ),
    Row("SmoothGrad, 16", "captum", "ours:smoothgrad", "with_captum:smoothgrad", "16 + 16 back", same=False),
    Row("DeepLIFT, 64 texts, a small network", "captum", "lifting:ours", "lifting:captum", "65 + 64 back", 1),
    Row("each word masked", "captum", "ours:occlusion_mask", "with_captum:ablation", EACH),
    Row("LIME, 256, blanks", "captum", "ours:lime_zero", "with_captum:lime", "256", 2, False),
    Row("LIME, 256, masks", "lime", "ours:lime_mask", "with_lime:lime", "256", 2, False),
    Row("LIME, 1,024, masks", "ferret", "ours:lime_many", "with_ferret:lime", "1,024", 1, False, FERRET),
    Row("KernelSHAP, 256, blanks", "captum", "ours:kernel_shap_zero", "with_captum:kernel_shap", "256", 2, False),
    Row("Shapley values, 16 orders, blanks", "captum", "ours:shapley_zero", "with_captum:shapley", "466", 1, False),
    Row("partition SHAP, all reads, one tree, blanks", "shap", "ours:owen_zero", "with_shap:partition", "620", 1),
    Row("partition SHAP, 500 reads, masks", "shap", "ours:owen_mask", "with_shap:usual", "500", 1, False),
    Row("partition SHAP, 500 reads, masks", "ferret", "ours:owen_mask", "with_ferret:shap", "500", 1, False, FERRET),
)
JUDGED: Sequence[Row] = (
    Row(
        "six explanations judged: comprehensiveness, sufficiency, τ with leave-one-out",
        *("ferret", "ours:judged", "with_ferret:judged", "some 140", 1),
        python=FERRET,
    ),
    Row(
        "the audit of erasure as it comes: also areas, flips, log-odds, chance",
        *("ferret", "ours:erased", "with_ferret:judged", "–", 1),
        python=FERRET,
    ),
    Row("words masked one after the other", "quantus", "ours:flipped", "with_quantus:flipping", "30"),
    Row("networks drawn anew, as it comes", "quantus", "ours:redrawn", "with_quantus:randomisation", "–"),
    Row("gradient under 10 moved embeddings", "captum", "ours:nudged", "with_captum:sensitivity", "11 + 11 back", MANY),
)
INFLUENCE: Sequence[Row] = (
    Row("gradient dot product", "dattri", "influences:dot", "influences:dattri_dot", "1,050 + 1,050 back", 1, False),
    Row("TRAK of one model", "dattri", "influences:trak", "influences:dattri_trak", "1,050 + 1,050 back", 1, False),
    Row("EK-FAC", "kronfluence", "influences:kronecker", "influences:kronfluence", "1,050 + 1,050 back", 1, False),
)
ROWS = (*USUAL, *ALIKE, *JUDGED, *INFLUENCE)
