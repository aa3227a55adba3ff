"""Hierarchical explanations: trees of phrases with scores and interactions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from assay.errors import AssayError
from assay.explainers.choice import bare, chosen, separated
from assay.explainers.decomposition import ContextualDecomposition
from assay.explainers.hierarchies.agglomeration import Agglomerative
from assay.explainers.hierarchies.hedge import Hedge
from assay.explainers.hierarchies.occluding import Alone, Margin, Without
from assay.explainers.hierarchies.players import PhraseShapley
from assay.explainers.hierarchies.scorers import PhraseScorer, TreeBuilder
from assay.explainers.hierarchies.soc import SampledDecomposition, SamplingOcclusion
from assay.explainers.hierarchies.summing import SummedGradients

SCORERS: dict[str, PhraseScorer] = {
    "occlusion": Without(),
    "alone": Alone(),
    "margin": Margin(),
    "integrated_gradients": SummedGradients(),
    "shapley": PhraseShapley(),
    "cd": ContextualDecomposition(),
    "soc": SamplingOcclusion(),
    "scd": SampledDecomposition(),
}
"""What can score a phrase; the last two are of use after a `fit`, or without a window."""

TREES: dict[str, TreeBuilder] = {"hedge": Hedge(), "acd": Agglomerative()}
"""What can build a hierarchy, from the top or from the bottom; each has a field `scorer`."""

SAMPLED: dict[str, Agglomerative] = {
    "soc": Agglomerative(SamplingOcclusion()),
    "scd": Agglomerative(SampledDecomposition()),
}
"""The hierarchies of Jin et al. (2020), which are of use when their scorers have been fitted."""


def tree_builders(trees: str | None, scorer: str | None = None) -> dict[str, TreeBuilder]:
    """The tree builders of a comma-separated list, by name; all with that scorer."""
    if trees is None:
        if scorer is not None:
            raise AssayError("A scorer says what a phrase of a tree counts; name a tree as well, such as hedge.")
        return {}
    every: dict[str, TreeBuilder] = {**TREES, **SAMPLED}
    found: dict[str, TreeBuilder] = {name: chosen(name, every, "tree") for name in separated(trees)}
    if not found:
        raise AssayError(f"Name a tree; there are: {', '.join(every)}.")
    if scorer is None:
        return found
    if own := next((name for name in found if bare(name) in SAMPLED), None):
        raise AssayError(f"The tree {own!r} has a scorer of its own; name the tree acd to have another.")
    given = chosen(scorer, SCORERS, "scorer")
    return {f"{name} by {scorer}": replace(cast(Any, builder), scorer=given) for name, builder in found.items()}
