"""Models of every kind that explainers meet: the plain ones, and those that explain themselves."""

from __future__ import annotations

import torch

from assay.models.textmodel import TextModel
from assay.rationales.learning import Options
from assay.rationales.players import assemble_players
from assay.rationales.rationaliser import Rationaliser, answering
from assay.rationales.recipes import RECIPES
from tests import builders

SELECTING = {"selecting-gru": ("lei", "gru"), "concepts-average": ("conrat", "average")}
"""A recipe and the encoder of its players."""

KINDS = (*builders.KINDS, *SELECTING)
MARKED = ("lstm", "transformer", "paired-lstm", "structured")
"""Those that are also read with markers: all others have them in the same way."""

PRECISE = ("lstm", "cnn", "transformer", "hierarchical-gru", "paired-lstm", "spans", "selecting-gru")
"""Those that are read in every precision."""


def kind(name: str, classes: int = 2, dtype: torch.dtype = torch.float64, markers: bool = False) -> TextModel:
    """A small model of one of the KINDS."""
    if name not in SELECTING:
        return builders.kind(name, classes, dtype, markers)
    return selecting(*SELECTING[name], classes, dtype)


def selecting(recipe: str, encoder: str, classes: int = 2, dtype: torch.dtype = torch.float64) -> Rationaliser:
    """A small model of one of the RECIPES, untrained."""
    scheme = RECIPES[recipe](Options(classes, 0.5))
    readers = {
        reader: builders.model(seed, classes, dtype, encoder=encoder) for seed, reader in enumerate(scheme.readers)
    }
    players = assemble_players(scheme.rules, readers, scheme.extras, classes).to(dtype)
    return answering(players, scheme.rules).eval()
