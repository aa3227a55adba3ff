"""Audits of explanations, by name."""

from __future__ import annotations

from assay.audits.attention_tests import FrozenUniform, Guide, SeedVariance, TrainedAdversary
from assay.audits.cases import Audit
from assay.audits.deception import Deception
from assay.audits.deciding import Deciding
from assay.audits.dispersion import Dispersion
from assay.audits.equal_predictions import Adversary, Searched
from assay.audits.marked_words import Plausibility, Shortcut, Truth
from assay.audits.minimal_set import MinimalSet
from assay.audits.pairwise import Agreement, Consistency
from assay.audits.permutation import Permutation
from assay.audits.roar import Roar
from assay.audits.sanity import Sanity
from assay.audits.single_weight import SingleWeight
from assay.audits.sparsity import Sparsity
from assay.audits.stability import Stability
from assay.audits.stack import LayerByLayer
from assay.audits.word_erasure import Erasure
from assay.audits.word_level import WordLevel

CHEAP: dict[str, Audit] = {
    "deciding": Deciding(),
    "agreement": Agreement(),
    "permutation": Permutation(),
    "adversary": Adversary(),
    "layers": LayerByLayer(),
    "single_weight": SingleWeight(),
    "minimal_set": MinimalSet(),
    "truth": Truth(),
    "erasure": Erasure(),
    "plausibility": Plausibility(),
    "consistency": Consistency(),
    "shortcut": Shortcut(),
}
COSTLY: dict[str, Audit] = {
    "sanity": Sanity(),
    "stability": Stability(),
    "searched": Searched(),
    "roar": Roar(),
    "dispersion": Dispersion(),
    "sparsity": Sparsity(),
    "word_level": WordLevel(),
    "frozen_uniform": FrozenUniform(),
    "seed_variance": SeedVariance(),
    "guide": Guide(),
    "trained_adversary": TrainedAdversary(),
    "deception": Deception(),
}
"""Those that train models anew, explain many of them, or follow every state back."""

AUDITS = CHEAP | COSTLY
USUAL_AUDITS = tuple(CHEAP)
"""What is asked where nothing else is said."""

FOUR_TESTS = ("frozen_uniform", "seed_variance", "guide", "trained_adversary")
"""The tests of attention of Wiegreffe and Pinter (2019)."""
