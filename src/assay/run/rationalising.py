"""From a corpus to a model that selects what it reads, and to what that selection is worth."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.data.examples import Corpus
from assay.files import write_text
from assay.models.store import Opened
from assay.rationales.trainers import (
    Rationalising,
    SelfExplanation,
    TransportRecipe,
    rationaliser,
    train_self_explaining,
    train_transport,
)
from assay.rationales.trainers import paired_corpus as pairs
from assay.run.selections import examined
from assay.run.wanted import chosen

FILE, PAGE, MODEL = "rationales.json", "rationales.html", "model"
TRAINERS: dict[type, Callable[[Corpus, Any, Path | None, str], Opened]] = {
    Rationalising: rationaliser,
    TransportRecipe: train_transport,
    SelfExplanation: train_self_explaining,
}


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
        """Writes the page, or its Markdown, PDF or JSON, as the name ends in, and says where."""
        from assay.rationales.selection_page import document
        from assay.report.save import save

        save(document(self.answer), Path(path))
        return Path(path)

    def __str__(self) -> str:
        from assay.rationales.selection_page import headline

        return headline(self.answer)


def rationalise(
    corpus: Corpus,
    recipe: str = "mcd",
    model: str | None = None,
    rate: float | None = None,
    units: str = "token",
    seed: int = 0,
    out: str | Path | None = None,
    device: str = "cpu",
    limit: int | None = None,
    **options: Any,
) -> Rationalised:
    """A model that decides by the words that it selects, trained on the corpus, and what its selections are worth.

    `recipe` is a name of assay.rationales.recipes.RECIPES, or of UNPLAYED beside it. Players are networks of ours, or
    where a `model` is named ("minilm", a folder, or a name on the hub) pretrained encoders. Without a `rate` the share
    of words is the one that people marked. Of the test texts `limit` are measured, drawn by the seed. Other options are
    those of Architecture and Training, and `width`, `reading`, `size`, `continuity`, `concepts`, `pairs` and `price` of
    the selection. With a folder `out`, model and results are stored there, and an interrupted training goes on.
    """
    wanted = chosen(recipe, model, rate, units, seed, device, **options)
    corpus = pairs(corpus) if isinstance(wanted, TransportRecipe) else corpus
    place = None if out is None else Path(out)
    started = time.monotonic()
    made = TRAINERS[type(wanted)](corpus, wanted, None if place is None else place / MODEL, device)
    answer = examined(made, corpus, seed, limit) | {"seconds": round(time.monotonic() - started, 1)}
    if place is not None:
        write(answer, place)
    return Rationalised(made, answer)


def write(answer: dict[str, Any], folder: Path) -> None:
    """Writes the numbers and the page."""
    from assay.rationales.selection_page import document
    from assay.report.save import save

    write_text(folder / FILE, json.dumps(answer, ensure_ascii=False, allow_nan=False) + "\n")
    save(document(answer), folder / PAGE)
