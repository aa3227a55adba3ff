"""Information bottleneck (Paranjape et al., 2020): as little information about the text as the answer needs."""

from __future__ import annotations

from assay.rationales.decoding import Decoding
from assay.rationales.games import Move, Stage
from assay.rationales.relaxations.relaxed import RelaxedBernoulli
from assay.rationales.rules import Rules
from assay.rationales.schemes import Options, Scheme
from assay.rationales.stories import GAME
from assay.rationales.terms.answers import AnswerCrossEntropy
from assay.rationales.terms.priors import Prior
from assay.rationales.terms.sizes import Continuity
from assay.stories import with_story


@with_story(
    "Information bottleneck: as little information about the text as the answer needs",
    "Paranjape et al. (2020)",
    like=GAME,
)
def bottleneck(options: Options) -> Scheme:
    """Both players minimise the cross-entropy and the KL divergence from the prior, weighted by `size`."""
    # differs from the code of Paranjape et al. (2020): the logits are not squeezed, so a probability may pass one half
    weight = 1.0 if options.size is None else options.size
    terms = ((1.0, AnswerCrossEntropy()), (weight, Prior(options.rate)), (options.continuity or 0.0, Continuity()))
    return Scheme(
        Rules(options.units, RelaxedBernoulli(), Decoding("top", options.rate), reading=options.reading),
        (Stage((Move(("selector", "predictor"), terms),)),),
    )
