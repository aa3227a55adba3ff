"""Three-player game (Yu et al., 2019): a critic reads the rest, and must not be able to answer."""

from __future__ import annotations

from assay.rationales.decoding import Decoding
from assay.rationales.epoch_selection import CriticGap
from assay.rationales.games import Move, Stage
from assay.rationales.recipes.short import short
from assay.rationales.relaxations.bernoulli import Bernoulli
from assay.rationales.rules import Rules
from assay.rationales.schemes import Options, Scheme
from assay.rationales.stories import GAME
from assay.rationales.terms import Term
from assay.rationales.terms.answers import AnswerCrossEntropy
from assay.rationales.terms.complement import CriticMargin
from assay.stories import with_story

CRITICISE = Move(("critic",), ((1.0, AnswerCrossEntropy("critic", "rest", stopped=True)),))


@with_story("Three-player game: a critic reads the rest, and must not be able to answer", "Yu et al. (2019)", like=GAME)
def three_player(options: Options) -> Scheme:
    """Predictor and critic each minimise their cross-entropy; the selector widens the gap between them."""
    answer = Move(("predictor",), ((1.0, AnswerCrossEntropy(stopped=True)),))
    rules = Rules(options.units, Bernoulli(), Decoding("top", options.rate), reading=options.reading)
    stage = Stage((answer, CRITICISE, _select(options)))
    return Scheme(rules, (stage,), ("predictor", "selector", "critic"), epoch_score=CriticGap())


@with_story("Three-player game: a critic reads the rest, and must not be able to answer", "Yu et al. (2019)", like=GAME)
def introspective(options: Options) -> Scheme:
    """The same with masks conditioned on the guess of a guide, who reads all words."""
    guide = Move(("guide",), ((1.0, AnswerCrossEntropy("guide", "all")),))
    answer = Move(
        ("predictor",), ((0.5, AnswerCrossEntropy(stopped=True)), (0.5, AnswerCrossEntropy(stopped=True, guessed=True)))
    )
    decoding = Decoding("top", options.rate)
    rules = Rules(options.units, Bernoulli(), decoding, reading=options.reading, condition="guess")
    stage = Stage((guide, answer, CRITICISE, _select(options)))
    return Scheme(rules, (stage,), ("predictor", "selector", "critic", "guide"), epoch_score=CriticGap())


def _select(options: Options) -> Move:
    # differs from the code of Yu et al. (2019): costs are cross-entropies, not errors, their running mean is the
    # baseline, and nothing is explored beside what is drawn
    terms: tuple[tuple[float, Term], ...] = (
        (1.0, AnswerCrossEntropy()),
        (3.0, CriticMargin()),
        *short(options),
    )
    return Move(("selector",), terms)
