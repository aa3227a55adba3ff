"""From what a person asks for to what is to be trained."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields, replace
from typing import Any

from assay.errors import AssayError, unknown
from assay.models.config import Architecture, Training
from assay.models.hf_finetuning import FineTuning
from assay.models.recipes import Recipe
from assay.plugins import member
from assay.rationales.recipes import RECIPES
from assay.rationales.trainers import (
    BASE,
    OURS,
    PRETRAINED,
    UNPLAYED,
    Rationalising,
    SelfExplanation,
    TransportRecipe,
    pretrained,
)
from assay.rationales.units import Units

Wanted = Rationalising | TransportRecipe | SelfExplanation

GAME = ("rate", "units", "width", "reading", "size", "continuity", "concepts")
FITTING = {"transport": ("pairs", "price"), "selfexplain": ("rate", "width", "concepts")}
"""What can be asked of a selection: in a game, and in recipes without one."""

SELECTING = {name for names in (GAME, *FITTING.values()) for name in names}
WORD_BY_WORD = ("encoder", "embedding", "hidden", "alignment_size", "vectors", "frozen")
"""What can be asked of a network that aligns words."""


def chosen(
    recipe: str,
    model: str | None = None,
    rate: float | None = None,
    units: str = "token",
    seed: int = 0,
    device: str = "cpu",
    **options: Any,
) -> Wanted:
    """What is to be trained; options that are None are as usual."""
    member(recipe, {**RECIPES, **UNPLAYED}, "recipe")
    asked = {"rate": rate, "units": None if units == "token" else units} | options
    given = {name: value for name, value in asked.items() if value is not None}
    steps, parts = ({each.name for each in fields(kind)} for kind in (Training, Architecture))
    for name in given:
        if name not in steps | parts | SELECTING:
            raise unknown("option", name, steps | parts | SELECTING)
    selecting, own, trained = (
        {name: given[name] for name in given if name in names} for names in (SELECTING, parts, steps)
    )
    _check_fitting(recipe, selecting, FITTING.get(recipe, GAME))
    if recipe == "transport":
        _check_fitting(recipe, own, WORD_BY_WORD)
        if model is not None:
            raise AssayError("The recipe 'transport' aligns words that a network of ours encodes; leave --model out.")
    usual = BASE if recipe == "transport" else OURS
    training = _training(usual.training if model is None else PRETRAINED, seed, trained)
    if model is None:
        return _wanted(recipe, _ours(usual, own, training), selecting)
    return _wanted(recipe, _encoder(model, own, training, device), selecting)


def _wanted(recipe: str, base: Recipe | FineTuning, asked: dict[str, Any]) -> Wanted:
    """The recipe with what was asked of the selection, where that is not as usual."""
    if recipe == "transport":
        assert isinstance(base, Recipe)
        named = {"most": asked.get("pairs"), "price": asked.get("price")}
        changes = {name: value for name, value in named.items() if value is not None}
        return TransportRecipe(replace(TransportRecipe().transport, **changes), base)
    if recipe == "selfexplain":
        named = {"width": asked.get("width"), "stored": asked.get("concepts"), "rate": asked.get("rate")}
        return SelfExplanation(base=base, **{name: value for name, value in named.items() if value is not None})
    stretch = {name: asked.pop(word) for name, word in (("kind", "units"), ("width", "width")) if word in asked}
    return Rationalising(recipe, base, units=Units(**stretch), **asked)


def _check_fitting(recipe: str, asked: Collection[str], fitting: Collection[str]) -> None:
    lost = next((name for name in asked if name not in fitting), None)
    if lost is not None:
        takes = " and ".join(f"--{name}" for name in fitting if name in SELECTING)
        takes = f"which takes {takes.replace(' and ', ', ', takes.count(' and ') - 1)}; " if takes else ""
        raise AssayError(f"--{lost.replace('_', '-')} does not fit the recipe {recipe!r}, {takes}leave it out.")


def _training(usual: Training, seed: int, asked: dict[str, Any]) -> Training:
    changes: dict[str, Any] = {"seed": seed} | asked
    if "epochs" in changes:
        changes.setdefault("patience", changes["epochs"])
    return replace(usual, **changes)


def _ours(usual: Recipe, parts: dict[str, Any], training: Training) -> Recipe:
    if parts.get("vectors") == "glove":
        parts.setdefault("embedding", 50)
    return replace(usual, architecture=replace(usual.architecture, **parts), training=training)


def _encoder(name: str, parts: dict[str, Any], training: Training, device: str) -> FineTuning:
    frozen = bool(parts.pop("frozen", False))
    if parts:
        lost = next(iter(parts)).replace("_", "-")
        raise AssayError(f"--{lost} is for networks that are trained from scratch; leave it out with {name}.")
    return pretrained(name.removeprefix("hf:"), training, device, frozen)
