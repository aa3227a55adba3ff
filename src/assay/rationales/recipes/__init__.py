"""Recipes: published methods that train selections, each a few lines of data over one training loop."""

from __future__ import annotations

from collections.abc import Callable

from assay.rationales.concepts.selfexplain_recipe import SelfExplanation
from assay.rationales.recipes.bottleneck import bottleneck
from assay.rationales.recipes.budget import spectra
from assay.rationales.recipes.classwise import car
from assay.rationales.recipes.concepts import conrat, educe
from assay.rationales.recipes.cures import dr, fr, mcd, mrd, n2r
from assay.rationales.recipes.diffmask import diffmask
from assay.rationales.recipes.fresh import fresh, fresh_tagged
from assay.rationales.recipes.hardkuma import hardkuma
from assay.rationales.recipes.lei import lei
from assay.rationales.recipes.matching import dmr
from assay.rationales.recipes.rnp import rnp
from assay.rationales.recipes.threeplayer import introspective, three_player
from assay.rationales.schemes import Options, Scheme
from assay.rationales.transport_recipe import TransportRecipe

RECIPES: dict[str, Callable[[Options], Scheme]] = {
    "lei": lei,
    "fresh": fresh,
    "fresh_tagged": fresh_tagged,
    "diffmask": diffmask,
    "three_player": three_player,
    "introspective": introspective,
    "car": car,
    "dmr": dmr,
    "bottleneck": bottleneck,
    "spectra": spectra,
    "hardkuma": hardkuma,
    "rnp": rnp,
    "fr": fr,
    "dr": dr,
    "mcd": mcd,
    "mrd": mrd,
    "n2r": n2r,
    "educe": educe,
    "conrat": conrat,
}

UNPLAYED = {"transport": TransportRecipe, "selfexplain": SelfExplanation}
"""Recipes for which no game is played: what is learnt is one network."""
