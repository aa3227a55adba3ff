"""What is asked where a plan names no questions: main measures of each audit, and which way is better."""

from __future__ import annotations

from dataclasses import dataclass

from assay.report.items import WORDS
from assay.report.measures import COLUMNS, label
from assay.report.words import TITLES
from assay.report.yardsticks import NULL


@dataclass(frozen=True)
class Main:
    """Measures of an audit that are worth a table each, and the subject that others are tested against."""

    measures: tuple[str, ...]
    against: str = NULL


MAIN = {
    "deciding": Main(("economy",)),
    "agreement": Main(("tau",)),
    "permutation": Main(("median_tvd",)),
    "adversary": Main(("jsd",)),
    "searched": Main(("found", "reached")),
    "layers": Main(("uniform",)),
    "single_weight": Main(("delta_js", "smaller")),
    "minimal_set": Main(("erased", "never", "too_many")),
    "truth": Main(("auprc",)),
    "erasure": Main(("comprehensiveness", "sufficiency", "flip", "morf")),
    "plausibility": Main(("token_f1", "iou_f1", "auprc")),
    "consistency": Main(("overlap", "sign")),
    "shortcut": Main(("shown",)),
    "sanity": Main(("similarity",)),
    "stability": Main(("steadiness",)),
    "roar": Main(("fall_gain",)),
    "dispersion": Main(("entropy",)),
    "sparsity": Main(("right", "tau_input", "tau_state"), "softmax"),
    "word_level": Main(("right", "median_tvd"), "base"),
    "frozen_uniform": Main(("right",), "uniform"),
    "seed_variance": Main(("jsd", "tvd")),
    "guide": Main(("right",), "learnt"),
    "trained_adversary": Main(("jsd", "tvd", "right"), "λ=0"),
    "deception": Main(("mass", "right"), "λ=0"),
}

RISES = {(each.audit, each.name): each.rises for each in COLUMNS} | {
    ("erasure", "comprehensiveness_normalised"): True,
    ("erasure", "sufficiency_normalised"): False,
    ("erasure", "log_odds"): True,
    ("erasure", "flipped"): True,
    ("erasure", "flip_mask"): False,
    ("erasure", "lerf"): True,
    ("deciding", "sufficient"): True,
    ("deciding", "necessary"): True,
    ("truth", "auprc_size"): True,
    ("truth", "precision"): True,
    ("plausibility", "average_precision"): True,
    ("minimal_set", "erased"): False,
    ("minimal_set", "erased_mass"): False,
    ("minimal_set", "never"): False,
    ("minimal_set", "too_many"): False,
    ("minimal_set", "optimal"): True,
    ("stability", "change"): False,
    ("stability", "seeds"): True,
}
GAINING = ("erasure", "roar")
"""In these audits a gain is one over chance, and more of it is better."""

ACCURACY = ("right", "right_gain", "accuracy")


def rises(audit: str, measure: str) -> bool | None:
    """Whether more of a measure is better; None where neither way is."""
    base = measure.partition("@")[0]
    if base in ACCURACY or (audit in GAINING and base.endswith("_gain")):
        return True
    return RISES.get((audit, base))


def title(audit: str, measure: str) -> str:
    """What a table is called where the plan does not say: the question of the audit, and the measure."""
    known = TITLES.get(audit, f"{audit.replace('_', ' ').capitalize()}:")
    return f"{WORDS.named(known)} {_raised(label(measure, audit))}"


def _raised(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}"
