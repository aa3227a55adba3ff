"""Relaxations: distributions of masks through which a selector can be trained."""

from __future__ import annotations

from assay.rationales.relaxations.bernoulli import Bernoulli
from assay.rationales.relaxations.drawing import Drawn as Drawn
from assay.rationales.relaxations.drawing import Relaxation as Relaxation
from assay.rationales.relaxations.excerpt import Excerpt, Window
from assay.rationales.relaxations.gumbel import GumbelStraightThrough
from assay.rationales.relaxations.hardconcrete import HardConcrete
from assay.rationales.relaxations.hardkuma import HardKuma
from assay.rationales.relaxations.relaxed import RelaxedBernoulli
from assay.rationales.relaxations.saliency import Saliency
from assay.rationales.relaxations.simplex import CappedSimplex
from assay.rationales.relaxations.straight import StraightThrough
from assay.rationales.relaxations.topk import TopKStraightThrough

RELAXATIONS: dict[str, type[Relaxation]] = {
    "bernoulli": Bernoulli,
    "gumbel": GumbelStraightThrough,
    "relaxed": RelaxedBernoulli,
    "hardkuma": HardKuma,
    "hardconcrete": HardConcrete,
    "simplex": CappedSimplex,
    "topk": TopKStraightThrough,
    "excerpt": Excerpt,
    "window": Window,
    "straight": StraightThrough,
    "saliency": Saliency,
}
