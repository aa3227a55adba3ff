"""Influence methods: which training examples a decision depends on, by the predicted change without each of them."""

from __future__ import annotations

from assay.influence.dual import DualGaussNewton
from assay.influence.functions import FastIF, InfluenceFunctions
from assay.influence.kronecker import Kronecker
from assay.influence.landmarks import Landmarks
from assay.influence.last_layer import Representer, TracInFast
from assay.influence.neighbours import Neighbours, NeighbourShapley
from assay.influence.projected import ProjectedGaussNewton
from assay.influence.setting import Method
from assay.influence.similarity import GradientCosine, GradientDot
from assay.influence.tracin import TracIn, TracInIdeal, TracInProjected, Trak
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
    "tracin_ideal": TracInIdeal(),
    "gradient_dot": GradientDot(),
    "gradient_cosine": GradientCosine(),
    "representer": Representer(),
    "turnover": TurnoverDropout(),
    "neighbours": Neighbours(),
    "neighbour_shapley": NeighbourShapley(),
    "landmarks": Landmarks(),
}
