"""FRESH (Jain et al., 2020): words salient to a teacher, and a predictor trained on these alone."""

from __future__ import annotations

from assay.rationales.decoding import Decoding
from assay.rationales.games import Move, Stage
from assay.rationales.relaxations.bernoulli import Bernoulli
from assay.rationales.relaxations.saliency import Saliency
from assay.rationales.rules import Rules
from assay.rationales.schemes import Options, Scheme
from assay.rationales.stories import GAME
from assay.rationales.terms.answers import AnswerCrossEntropy
from assay.rationales.terms.imitation import Imitation
from assay.stories import with_story

# differs from Jain et al. (2020): not attention, which finds only half of what was planted for a recurrent teacher
SALIENCY = "lrp"

# differs from Jain et al. (2020): teacher, extractor and predictor share embeddings, which the teacher alone learns, so
# that whatever is done to an embedding is seen by all of them
SUPPORT = Move(("teacher", "embedding"), ((1.0, AnswerCrossEntropy("teacher", "all")),))
ANSWER = Move(("body",), ((1.0, AnswerCrossEntropy(stopped=True)),))


@with_story(
    "FRESH: words salient to a teacher, and a predictor trained on these alone", "Jain et al. (2020)", like=GAME
)
def fresh(options: Options, saliency: str = SALIENCY, rule: str = "top") -> Scheme:
    """A teacher is trained on all words; a new predictor is trained on the words most salient to it."""
    rules = Rules(options.units, Saliency(), Decoding(rule, options.rate), reading="delete", saliency=saliency)
    stages = Stage((SUPPORT,), share=0.5), Stage((ANSWER,), share=0.5, decoded=True)
    return Scheme(rules, stages, readers=("predictor", "teacher"))


@with_story(
    "FRESH: words salient to a teacher, and a predictor trained on these alone", "Jain et al. (2020)", like=GAME
)
def fresh_tagged(options: Options, saliency: str = SALIENCY, rule: str = "top") -> Scheme:
    """The same with an extractor between, trained to select what is salient to the teacher."""
    decoding = Decoding(rule, options.rate)
    rules = Rules(options.units, Bernoulli(), decoding, reading="delete")
    tag = Move(("selector",), ((1.0, Imitation(saliency, decoding)),))
    stages = Stage((SUPPORT,), share=0.4), Stage((tag,), share=0.3), Stage((ANSWER,), share=0.3, decoded=True)
    return Scheme(rules, stages, readers=("predictor", "selector", "teacher"))
