"""Audits: one published question a file."""

from __future__ import annotations

from assay.audits.adversary import Adversary
from assay.audits.agreement import Agreement
from assay.audits.cases import Audit
from assay.audits.consistency import Consistency
from assay.audits.erasure import Erasure
from assay.audits.minimal_set import MinimalSet
from assay.audits.permutation import Permutation
from assay.audits.plausibility import Plausibility
from assay.audits.roar import Roar
from assay.audits.sanity import Sanity
from assay.audits.shortcut import Shortcut
from assay.audits.single_weight import SingleWeight
from assay.audits.stability import Stability
from assay.audits.truth import Truth

AUDITS: dict[str, Audit] = {
    "agreement": Agreement(),
    "permutation": Permutation(),
    "adversary": Adversary(),
    "single_weight": SingleWeight(),
    "minimal_set": MinimalSet(),
    "truth": Truth(),
    "erasure": Erasure(),
    "plausibility": Plausibility(),
    "consistency": Consistency(),
    "shortcut": Shortcut(),
    "sanity": Sanity(),
    "stability": Stability(),
    "roar": Roar(),
}

RETRAINING = ("sanity", "stability", "roar")
USUAL_AUDITS = tuple(name for name in AUDITS if name not in RETRAINING)
"""What is asked where nothing else is said: the others train models anew, or explain many of them."""
