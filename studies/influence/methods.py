"""What ranks training examples by suspicion: signals without gradients, and the methods of influence, by name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from assay.influence.mislabelled import SIGNALS, Signal

GIGABYTE = 2**30
MEMORY = {"cpu": 2 * GIGABYTE, "cuda": 64 * GIGABYTE}

METHODS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "gradient_dot": ("similarity", "GradientDot", {}),
    "tracin": ("tracin", "TracIn", {"checkpoints": 4}),
    "tracin_fast": ("tracin_fast", "TracInFast", {"checkpoints": 4}),
    "representer": ("representer", "Representer", {}),
    "trak": ("trak", "Trak", {"size": 2048}),
    "kronecker": ("kronecker", "Kronecker", {}),
    "projected": ("projected", "ProjectedGaussNewton", {}),
    "dual": ("dual", "DualGaussNewton", {"metric": "plain", "leverage": True}),
}
"""The module of each method, its class, and options; a module is loaded when its method is wanted."""


def method(name: str, device: str = "cpu") -> Any:
    """The method of that name."""
    module, kind, options = METHODS[name]
    if name == "dual":
        options = options | {"memory": MEMORY.get(device.partition(":")[0], MEMORY["cpu"])}
    return getattr(import_module(f"assay.influence.{module}"), kind)(**options)


def signals(names: tuple[str, ...], device: str) -> dict[str, Callable[[], Signal]]:
    """How each signal of these names is made."""
    return {
        name: (lambda name=name: SIGNALS[name]) if name in SIGNALS else (lambda name=name: method(name, device).own)
        for name in names
    }


NAMES = (*SIGNALS, *METHODS)
