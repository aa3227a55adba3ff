"""CAR (Chang et al., 2019): for each class the words that support it, also where it is not the true one."""

from __future__ import annotations

from assay.rationales.decoding import Decoding
from assay.rationales.epoch_selection import LatestAccurate
from assay.rationales.games import Move, Stage
from assay.rationales.relaxations.straight import StraightThrough
from assay.rationales.rules import Rules
from assay.rationales.schemes import Options, Scheme
from assay.rationales.stories import GAME
from assay.rationales.terms import Term
from assay.rationales.terms.answers import AnswerCrossEntropy
from assay.rationales.terms.classwise import AllMasksCrossEntropy, Convincing, Sizes
from assay.rationales.terms.sizes import Continuity
from assay.stories import with_story


@with_story(
    "CAR: for each class the words that support it, also where it is not the true one", "Chang et al. (2019)", like=GAME
)
def car(options: Options) -> Scheme:
    """The predictor, told whose mask it reads, minimises cross-entropy; mask t maximises the probability of class t."""
    # differs from Chang et al. (2019): any number of classes, one network selects for all of them, the predictor begins
    # with whole texts, and where no label may be known, masks depend on the guess of a guide who reads all
    size = 5.0 if options.size is None else options.size
    continuity = 0.5 if options.continuity is None else options.continuity
    convince: tuple[tuple[float, Term], ...] = (
        (1.0, Convincing()),
        (size, Sizes(options.rate)),
        (continuity, Continuity()),
    )
    rules = Rules(
        options.units,
        StraightThrough(),
        Decoding("top", options.rate),
        masks=options.classes,
        reading=options.reading,
        condition="label",
        classwise=True,
    )
    guide = Move(("guide",), ((1.0, AnswerCrossEntropy("guide", "all")),))
    tell = Move(("predictor", "paths"), ((1.0, AllMasksCrossEntropy()),))
    begin = Stage((guide, Move(("predictor",), ((1.0, AnswerCrossEntropy(view="all")),))), share=0.2)
    game = Stage((guide, tell, Move(("selector",), convince)), share=0.8)
    return Scheme(rules, (begin, game), ("predictor", "selector", "guide"), ("paths",), LatestAccurate())
