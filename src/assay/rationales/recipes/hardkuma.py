"""HardKuma (Bastings et al., 2019): differentiable masks that are often exactly 0 or 1."""

from __future__ import annotations

from assay.rationales.decoding import Decoding
from assay.rationales.games import Move, Stage
from assay.rationales.relaxations.hardkuma import HardKuma
from assay.rationales.rules import Rules
from assay.rationales.schemes import Options, Scheme
from assay.rationales.stories import GAME
from assay.rationales.terms.answers import AnswerCrossEntropy
from assay.rationales.terms.sizes import Continuity, Size
from assay.stories import with_story


@with_story("HardKuma: differentiable masks that are often exactly 0 or 1", "Bastings et al. (2019)", like=GAME)
def hardkuma(options: Options) -> Scheme:
    """Both players minimise the cross-entropy and the distance of the expected share of words from the rate."""
    # differs from Bastings et al. (2019): a penalty of fixed weight draws to the rate from either side, since with a
    # multiplier that must settle first, a short training ends with all words or with none
    size = 2.0 if options.size is None else options.size
    breaks = options.continuity or 0.0, Continuity(of="chance")
    terms = (1.0, AnswerCrossEntropy()), (size, Size(options.rate, "batch", of="chance")), breaks
    return Scheme(
        Rules(options.units, HardKuma(), Decoding("top", options.rate), reading=options.reading),
        (Stage((Move(("selector", "predictor"), terms),)),),
    )
