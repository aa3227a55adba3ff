"""What ranks training examples by suspicion: signals without gradients, and the methods of influence, by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from assay.influence.dual import DualGaussNewton
from assay.influence.kronecker import Kronecker
from assay.influence.last_layer import Representer, TracInFast
from assay.influence.mislabelled import SIGNALS
from assay.influence.projected import ProjectedGaussNewton
from assay.influence.similarity import GradientDot
from assay.influence.tracin import TracIn, Trak

GIGABYTE = 2**30
MEMORY = {"cpu": 2 * GIGABYTE, "cuda": 64 * GIGABYTE}

DUAL = DualGaussNewton(metric="plain", leverage=True)
METHODS: dict[str, Any] = {
    "gradient_dot": GradientDot(),
    "tracin": TracIn(checkpoints=4),
    "tracin_fast": TracInFast(checkpoints=4),
    "representer": Representer(),
    "trak": Trak(size=2048),
    "kronecker": Kronecker(),
    "projected": ProjectedGaussNewton(),
    "dual": DUAL,
}
NAMES = (*SIGNALS, *METHODS)


def method(name: str, device: str = "cpu") -> Any:
    """The method of that name."""
    return replace(DUAL, memory=MEMORY[device.partition(":")[0]]) if name == "dual" else METHODS[name]
