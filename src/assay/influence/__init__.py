"""Influence methods: which training examples a decision depends on, by the predicted change without each of them."""

from __future__ import annotations

from assay.influence.dual import DualGaussNewton
from assay.influence.fastif import FastIF
from assay.influence.functions import InfluenceFunctions
from assay.influence.kronecker import Kronecker
from assay.influence.neighbours import Neighbours, NeighbourShapley
from assay.influence.projected import ProjectedGaussNewton
from assay.influence.representer import Representer
from assay.influence.setting import Method
from assay.influence.similarity import GradientCosine, GradientDot
from assay.influence.tracin import TracIn, TracInProjected
from assay.influence.tracin_fast import TracInFast
from assay.influence.trak import Trak
from assay.influence.turnover import TurnoverDropout
from assay.influence.unrolled import Unrolled

METHODS: dict[str, Method] = {
    "unrolled": Unrolled(),
    "dual": DualGaussNewton(),
    "projected": ProjectedGaussNewton(),
    "ekfac": Kronecker(),
    "conjugate": InfluenceFunctions("cg"),
    "lissa": InfluenceFunctions("lissa"),
    "arnoldi": InfluenceFunctions("arnoldi"),
    "explicit": InfluenceFunctions("explicit"),
    "fastif": FastIF(),
    "trak": Trak(),
    "tracin": TracIn(),
    "tracin_fast": TracInFast(),
    "tracin_projected": TracInProjected(),
    "gradient_dot": GradientDot(),
    "gradient_cosine": GradientCosine(),
    "representer": Representer(),
    "turnover": TurnoverDropout(),
    "neighbours": Neighbours(),
    "neighbour_shapley": NeighbourShapley(),
}
