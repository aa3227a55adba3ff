"""DMR (Huang et al., 2021): distribution matching between selections and whole texts."""

from __future__ import annotations

from assay.rationales.decoding import Decoding
from assay.rationales.games import Move, Stage
from assay.rationales.recipes.fresh import SUPPORT
from assay.rationales.recipes.short import short
from assay.rationales.relaxations.gumbel import GumbelStraightThrough
from assay.rationales.rules import Rules
from assay.rationales.schemes import Options, Scheme
from assay.rationales.stories import GAME
from assay.rationales.terms import Term
from assay.rationales.terms.answers import AnswerCrossEntropy
from assay.rationales.terms.distillation import Distillation
from assay.rationales.terms.moments import Moments
from assay.stories import with_story


@with_story("DMR: distribution matching between selections and whole texts", "Huang et al. (2021)", like=GAME)
def dmr(options: Options) -> Scheme:
    """A teacher is trained on all words; selector and predictor match its outputs and moments of its hidden states."""
    terms: tuple[tuple[float, Term], ...] = (
        (1.0, AnswerCrossEntropy()),
        (1.0, Distillation()),
        (1.0, Moments()),
        *short(options, "batch"),
    )
    # differs from Huang et al. (2021): the predictor begins with whole texts, too, and then learns slowly; else it soon
    # takes the words of one class for it, and their absence for the other
    begin = Move(("body",), ((1.0, AnswerCrossEntropy(view="all")),))
    match = Move(("selector", "body"), terms)
    stages = Stage((SUPPORT, begin), share=0.3), Stage((match,), share=0.7, pace={"body": 0.1})
    rules = Rules(options.units, GumbelStraightThrough(), Decoding("top", options.rate), reading=options.reading)
    return Scheme(rules, stages, ("predictor", "selector", "teacher"))
