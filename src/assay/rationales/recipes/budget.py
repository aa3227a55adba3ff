"""SPECTRA (Guerreiro and Martins, 2021): the best mask within a budget, deterministic."""

from __future__ import annotations

from assay.rationales.decoding import Decoding
from assay.rationales.games import Move, Stage
from assay.rationales.relaxations.simplex import CappedSimplex
from assay.rationales.rules import Rules
from assay.rationales.schemes import Options, Scheme
from assay.rationales.stories import GAME
from assay.rationales.terms.answers import AnswerCrossEntropy
from assay.stories import with_story


@with_story("SPECTRA: the best mask within a budget, deterministic", "Guerreiro and Martins (2021)", like=GAME)
def spectra(options: Options) -> Scheme:
    """Both players minimise the cross-entropy alone; the mask itself keeps the budget."""
    return Scheme(
        Rules(options.units, CappedSimplex(options.rate), Decoding("top", options.rate), reading=options.reading),
        (Stage((Move(("selector", "predictor"), ((1.0, AnswerCrossEntropy()),)),)),),
    )
