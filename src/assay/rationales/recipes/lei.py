"""Lei et al. (2016): a selector and a predictor trained together, by REINFORCE."""

from __future__ import annotations

from assay.rationales.decoding import Decoding
from assay.rationales.games import Move, Stage
from assay.rationales.recipes.short import short
from assay.rationales.relaxations.bernoulli import Bernoulli
from assay.rationales.rules import Rules
from assay.rationales.schemes import Options, Scheme
from assay.rationales.stories import GAME
from assay.rationales.terms.answers import AnswerCrossEntropy
from assay.stories import with_story


@with_story("A selector and a predictor trained together, by REINFORCE", "Lei et al. (2016)", like=GAME)
def lei(options: Options) -> Scheme:
    """Both players minimise the cross-entropy, the size of the sampled masks and their breaks."""
    # differs from Lei et al. (2016): a running mean of costs is the baseline, and the size is drawn to a rate
    terms = ((1.0, AnswerCrossEntropy()), *short(options))
    return Scheme(
        Rules(options.units, Bernoulli(), Decoding("top", options.rate), reading=options.reading),
        (Stage((Move(("selector", "predictor"), terms),)),),
    )
