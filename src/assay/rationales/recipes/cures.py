"""Remedies for degeneration, in which a predictor adapts to arbitrary selections."""

from __future__ import annotations

from assay.rationales.decoding import Decoding
from assay.rationales.games import Move, Stage
from assay.rationales.recipes.short import short
from assay.rationales.relaxations.gumbel import GumbelStraightThrough
from assay.rationales.rules import Rules
from assay.rationales.schemes import Options, Scheme
from assay.rationales.stories import GAME
from assay.rationales.terms import Term
from assay.rationales.terms.answers import AnswerCrossEntropy
from assay.rationales.terms.divergences import FullTextDivergence
from assay.rationales.terms.norms import NegativeLogNorm
from assay.stories import with_story

# differs from Liu et al.: the size of each text counts, not that of a batch, in which texts of one class could be told
# by nothing at all being selected
REMEDY = "Remedy for degeneration, in which a predictor adapts to arbitrary selections"
BOTH = ("selector", "predictor")


@with_story(REMEDY, "Liu et al. (2022)", like=GAME)
def fr(options: Options) -> Scheme:
    """FR (Liu et al., 2022): selector and predictor share one encoder."""
    return Scheme(
        _rules(options), (Stage((Move(BOTH, ((1.0, AnswerCrossEntropy()), *short(options))),)),), readers=("predictor",)
    )


@with_story(REMEDY, "Liu et al. (2023)", like=GAME)
def dr(options: Options) -> Scheme:
    """DR (Liu et al., 2023): the predictor's learning rate falls with the share of words that it reads."""
    pace = dict.fromkeys(BOTH, 4.0)  # with the rate of others, a predictor so slow would hardly come to learn
    moves = (Move(BOTH, ((1.0, AnswerCrossEntropy()), *short(options))),)
    return Scheme(_rules(options), (Stage(moves, pace=pace, measured=True),))


@with_story(REMEDY, "Liu et al. (2023)", like=GAME)
def mcd(options: Options) -> Scheme:
    """MCD (Liu et al., 2023): the selection must give the predictor the same distribution as the whole text."""
    return _apart(options, (1.0, FullTextDivergence()))


@with_story(REMEDY, "Liu et al. (2024)", like=GAME)
def mrd(options: Options) -> Scheme:
    """MRD (Liu et al., 2024): the rest must give the predictor another distribution than the whole text."""
    # differs from Liu et al. (2024): the predictor also learns from the selection, by which it will be asked
    return _apart(options, (-1.0, FullTextDivergence(view="rest")), "rest")


@with_story(REMEDY, "Liu et al. (2025)", like=GAME)
def n2r(options: Options) -> Scheme:
    """N2R (Liu et al., 2025): the selection must give the predictor's hidden state a large norm."""
    # differs from Liu et al. (2025): the predictor also learns from all words, so that it knows more than was selected
    return _apart(options, (1.0, NegativeLogNorm()))


def _apart(options: Options, wanted: tuple[float, Term], *more: str) -> Scheme:
    """The predictor is trained on the selection, all words and `more` views; the selector minimises `wanted`."""
    views = ("selected", "all", *more)
    answers = Move(("predictor",), tuple((1.0, AnswerCrossEntropy(view=view, stopped=True)) for view in views))
    moves = answers, Move(("selector",), (wanted, *short(options)))
    return Scheme(_rules(options), (Stage(moves, pace={"selector": 2.5}),))


def _rules(options: Options) -> Rules:
    decoding = Decoding("top", options.rate)
    return Rules(options.units, GumbelStraightThrough(), decoding, reading=options.reading)
