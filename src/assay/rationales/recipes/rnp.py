"""RNP: the model of Lei et al. (2016) as usually trained since 2020, with straight-through masks."""

from __future__ import annotations

from assay.rationales.decoding import Decoding
from assay.rationales.games import Move, Stage
from assay.rationales.recipes.short import short
from assay.rationales.relaxations.gumbel import GumbelStraightThrough
from assay.rationales.rules import Rules
from assay.rationales.schemes import Options, Scheme
from assay.rationales.stories import GAME
from assay.rationales.terms.answers import AnswerCrossEntropy
from assay.stories import with_story


@with_story(
    "RNP: the model of Lei et al. as usually trained since 2020, with straight-through masks",
    "Lei et al. (2016)",
    like=GAME,
)
def rnp(options: Options) -> Scheme:
    """Both players minimise the cross-entropy, a batch's distance from the rate, and the breaks of sampled masks."""
    terms = ((1.0, AnswerCrossEntropy()), *short(options, "batch"))
    return Scheme(
        Rules(options.units, GumbelStraightThrough(), Decoding("top", options.rate), reading=options.reading),
        (Stage((Move(("selector", "predictor"), terms),)),),
    )
