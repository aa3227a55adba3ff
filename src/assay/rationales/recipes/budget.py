"""Guerreiro and Martins (2021), SPECTRA: the best mask within a budget, without chance."""

from __future__ import annotations

from assay.rationales.decoding import Decoding
from assay.rationales.games import Move, Stage
from assay.rationales.relaxations.simplex import CappedSimplex
from assay.rationales.rules import Rules
from assay.rationales.schemes import Options, Scheme
from assay.rationales.terms.answers import AnswerCrossEntropy


def spectra(options: Options) -> Scheme:
    """Both players lower the cost of the answer alone; the budget is kept by the mask itself."""
    return Scheme(
        Rules(options.units, CappedSimplex(options.rate), Decoding("top", options.rate), reading=options.reading),
        (Stage((Move(("selector", "predictor"), ((1.0, AnswerCrossEntropy()),)),)),),
    )
