"""How time grows with the corpus: a whole audit of more and more texts, and influence of more and more of them."""

from __future__ import annotations

from collections.abc import Callable

from assay.influence.dual import DualGaussNewton
from assay.influence.kronecker import Kronecker
from assay.influence.last_layer import TracInFast
from assay.influence.projected import ProjectedGaussNewton
from assay.influence.setting import Method, Setting
from assay.influence.similarity import GradientDot
from assay.influence.tracin import Trak
from benchmarks.growth import Series, measured
from benchmarks.influence import ARCHITECTURES, Sizes, setting_of
from benchmarks.memory import audited

AUDITED, LEARNT, QUERIES = (64, 128, 256, 512), (250, 500, 1000, 2000), 20
METHODS: dict[str, tuple[Method, str]] = {
    "gradient dot product": (GradientDot(), "N + Q, with as many back"),
    "TracIn, last layer": (TracInFast(), "N + Q for each checkpoint, and the training"),
    "EK-FAC": (Kronecker(), "N + Q, with as many back"),
    "TRAK": (Trak(), "N + Q, with as many back"),
    "projected Gauss–Newton": (ProjectedGaussNewton(damping=1e-3), "N + Q, with as many back"),
    "dual Gauss–Newton": (DualGaussNewton(damping=1e-3), "N + Q, with as many back, and N² products of gradients"),
}


def series() -> dict[str, tuple[Series, str]]:
    """The time of each for growing corpora, and what has to be read."""
    whole = "a whole audit of N texts"
    found = {whole: (measured({size: audited(size) for size in AUDITED}, longest=60), "N times that of a text")}
    settings = {size: _setting(size) for size in LEARNT}
    for name, (method, floor) in METHODS.items():
        found[name] = measured({size: _run(method, setting) for size, setting in settings.items()}, longest=60), floor
    return found


def _setting(size: int) -> Setting:
    return setting_of(ARCHITECTURES["lstm"], Sizes(train=size, queries=QUERIES, epochs=1))[0]


def _run(method: Method, setting: Setting) -> Callable[[], object]:
    return lambda: method(setting)
