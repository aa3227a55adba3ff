"""From a corpus to a model that selects what it reads, and to what that selection is worth."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from assay.data.examples import Corpus
from assay.errors import AssayError, unknown
from assay.files import write_text
from assay.models.architecture import Architecture
from assay.models.huggingface.finetuning import FineTuning
from assay.models.options import Training
from assay.models.recipes import Recipe
from assay.models.store import Opened
from assay.rationales.training import OURS, PRETRAINED, Rationalising, pretrained, rationaliser
from assay.rationales.units import Units
from assay.run.selections import examined

SELECTING = {"width", "reading", "size", "continuity", "concepts"}
FILE, PAGE, MODEL = "rationales.json", "rationales.html", "model"


@dataclass(frozen=True)
class Rationalised:
    """A model that selects words, and what was measured of it as plain numbers."""

    model: Opened
    answer: dict[str, Any]

    @property
    def measures(self) -> dict[str, float]:
        """The mean of each measure over the test texts."""
        return {name: each["mean"] for name, each in self.answer["measures"].items()}

    def report(self, path: str | Path) -> Path:
        """Writes the page, and says where."""
        from assay.report.rationales import page

        page.write(self.answer, Path(path))
        return Path(path)

    def __str__(self) -> str:
        from assay.report.rationales.words import headline

        return headline(self.answer)


def rationalise(
    corpus: Corpus,
    recipe: str = "mcd",
    model: str | None = None,
    rate: float | None = None,
    units: str = "token",
    seed: int = 0,
    folder: str | Path | None = None,
    device: str = "cpu",
    limit: int | None = None,
    **options: Any,
) -> Rationalised:
    """A model that decides by the words that it selects, trained on the corpus, and what its selections are worth.

    `recipe` is a name of assay.rationales.recipes.RECIPES. Players are networks of ours, or where a `model` is named
    ("minilm", a folder, or a name on the hub) pretrained encoders. Without a `rate` the share of words is the one that
    people marked. Of the test texts `limit` are measured, drawn by the seed. Other options are those of Architecture
    and Training, and `width`, `reading`, `size`, `continuity` and `concepts` of the selection. With a folder, model and
    results are stored there, and an interrupted training goes on.
    """
    wanted = chosen(recipe, model, rate, units, seed, device, **options)
    place = None if folder is None else Path(folder)
    started = time.monotonic()
    made = rationaliser(corpus, wanted, None if place is None else place / MODEL, device)
    answer = examined(made, corpus, seed, limit) | {"seconds": round(time.monotonic() - started, 1)}
    if place is not None:
        write(answer, place)
    return Rationalised(made, answer)


def write(answer: dict[str, Any], folder: Path) -> None:
    """Writes the numbers and the page."""
    from assay.report.rationales import page

    write_text(folder / FILE, json.dumps(answer, ensure_ascii=False, allow_nan=False) + "\n")
    page.write(answer, folder / PAGE)


def chosen(
    recipe: str,
    model: str | None = None,
    rate: float | None = None,
    units: str = "token",
    seed: int = 0,
    device: str = "cpu",
    width: int | None = None,
    reading: str | None = None,
    size: float | None = None,
    continuity: float | None = None,
    concepts: int | None = None,
    **options: Any,
) -> Rationalising:
    """What is to be trained; options that are None are as usual."""
    given = {name: value for name, value in options.items() if value is not None}
    steps, parts = ({each.name for each in fields(kind)} for kind in (Training, Architecture))
    for name in given:
        if name not in steps | parts:
            raise unknown("option", name, steps | parts | SELECTING)
    usual = OURS.training if model is None else PRETRAINED
    changes: dict[str, Any] = {"seed": seed} | {name: given[name] for name in given if name in steps}
    if "epochs" in changes:
        changes.setdefault("patience", changes["epochs"])
    training = replace(usual, **changes)
    own = {name: given[name] for name in given if name in parts}
    base = _ours(own, training) if model is None else _encoder(model, own, training, device)
    stretch = Units(units) if width is None else Units(units, width)
    return Rationalising(recipe, base, rate, stretch, reading, size, continuity, concepts)


def _ours(parts: dict[str, Any], training: Training) -> Recipe:
    if parts.get("vectors") == "glove":
        parts.setdefault("embedding", 50)
    return replace(OURS, architecture=replace(OURS.architecture, **parts), training=training)


def _encoder(name: str, parts: dict[str, Any], training: Training, device: str) -> FineTuning:
    frozen = bool(parts.pop("frozen", False))
    if parts:
        lost = next(iter(parts)).replace("_", "-")
        raise AssayError(f"--{lost} is for networks that are trained from scratch; leave it out with {name}.")
    return pretrained(name.removeprefix("hf:"), training, device, frozen)
