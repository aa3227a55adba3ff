"""A grade for each audit by a rule that is stated, where one can be defended; the others are measured only."""

from __future__ import annotations

import re
from dataclasses import dataclass

from assay.records import Record
from assay.report import stacks
from assay.report.answers import ANSWERS
from assay.report.compared.limits import KEPT, MATTERS
from assay.report.graders import GRADERS, MEASURED, NOT_APPLICABLE
from assay.report.items import items
from assay.report.tables import MARKS
from assay.report.words import TITLES
from assay.report.yardsticks import AGREEMENT, DECIDING, JSD_FAR, LEAD_SURE, REFERENCE, SHUFFLE_SMALL, TRUTH, yardstick

CARD_MARKS = MARKS | {MEASURED: "·"}

_BETWEEN = "In between it gets a warning."
_GAIN = (
    "Passes when the 95 % interval of the gain over random words lies above 0, fails when nothing of it does. "
    f"{_BETWEEN}"
)
RULES = {
    "deciding": DECIDING.how,
    "agreement": f"Passes when the 95 % interval of its τ with {REFERENCE} lies at or above {AGREEMENT.passes:g}, "
    f"fails when it lies below {AGREEMENT.fails:g} or not above what random scores reach. {_BETWEEN}",
    "permutation": "Fails when shuffling surely moves predictions by less than "
    f"{SHUFFLE_SMALL:g} (TVD), passes when it surely moves them by more. {_BETWEEN}",
    "adversary": "Fails when another attention with the same prediction surely lies further away than a divergence of "
    f"{JSD_FAR:.2f}, half of the most there can be. Passes when it is certain that none does; what only a search did "
    "not find is no such certainty. In between it gets a warning.",
    "truth": f"Passes when the 95 % interval of its AUPRC lies at or above {TRUTH.passes:g}, fails when it lies below "
    f"{TRUTH.fails:g} or not above what random scores reach. {_BETWEEN}",
    "erasure": f"{_GAIN} The measure is comprehensiveness.",
    "roar": _GAIN,
    "sanity": f"Passes when explanations of randomised models surely agree only weakly with its own (τ below "
    f"{AGREEMENT.fails:g}), fails when they surely agree well (τ from {AGREEMENT.passes:g} on): then it hardly "
    f"depends on the model. {_BETWEEN}",
    "stability": f"Passes when rankings before and after tiny changes surely agree well (τ from {AGREEMENT.passes:g} "
    f"on), fails when they surely do not (τ below {AGREEMENT.fails:g}). {_BETWEEN}",
    "shortcut": "Passes when the 95 % interval of its precision at the planted words lies at or above "
    f"{TRUTH.passes:g}, fails when it lies below {TRUTH.fails:g} or not above what random scores reach. {_BETWEEN}",
    "single_weight": "Passes when surely more decisions hang on the most attended one alone than on a random other one "
    f"alone, fails when surely fewer do (two-sided sign test over texts, p ≤ {LEAD_SURE:g}). {_BETWEEN}",
    "minimal_set": "Passes when going down the attention surely changes the decision sooner than a random order "
    f"(two-sided sign test over texts, p ≤ {LEAD_SURE:g}), fails when it does not. This is a low bar.",
    "frozen_uniform": "Passes when learnt attention is surely better than uniform weights, fails when its gain surely "
    f"stays below {100 * MATTERS:g} points: then no test of attention says much on this task. {_BETWEEN}",
    "guide": "Passes when this attention surely helps a model without context, and more than that of an adversary if "
    f"there was one; fails when it surely harms. {_BETWEEN}",
    "trained_adversary": "Fails when attention was trained surely further away than other seeds lie, at no more change "
    "of the predictions. Passes when it surely was not, or no adversary kept the predictions; with few seeds that is a "
    "warning only.",
    "deception": "Fails when attention was surely moved off words that count while the accuracy stayed within "
    f"{100 * KEPT:g} point, passes when no training did that. {_BETWEEN}",
}
"""When a card passes, warns or fails; audits that are not here are measured only."""

UNGRADED = {
    "searched": "It tells how far a search can be trusted; it is no test of an explanation.",
    "layers": "It tells which layers matter; no amount is right or wrong.",
    "consistency": "Two explanations may differ and each be right in part; no limit between them can be defended.",
    "plausibility": "It tells what people find convincing, not whether an explanation is true to the model.",
    "dispersion": "It describes the model’s states; no amount is right or wrong.",
    "sparsity": "It describes a trend; no amount is right or wrong.",
    "word_level": "It compares models, each trained once; no limit between them can be defended.",
    "seed_variance": "It is the null for the trained adversary, not a test by itself.",
}


OF_MODEL = (
    *("permutation", "adversary", "searched", "layers", "single_weight", "minimal_set", "dispersion", "sparsity"),
    *("word_level", "frozen_uniform", "seed_variance", "guide", "trained_adversary", "deception"),
)
"""Audits that ask about the model and its attention, whatever a heatmap shows."""


def speaks(record: Record, name: str) -> str:
    """What a card is about, and whether it decides what may be shown."""
    if name == yardstick(record).audit:
        return "The verdict is read off this card."
    about = "the model and its attention" if name in OF_MODEL else "the explanations"
    return f"This card speaks of {about}; it does not decide what may be shown."


NOTHING = "No text gave a number."
SENTENCE = re.compile(r"(?<=[.])\s+(?=[A-Z“])")


@dataclass(frozen=True)
class Card:
    """One audit of a run: the question as its title, its grade with the reason, and the answer in a sentence or two."""

    name: str
    title: str
    grade: str  # pass, warn, fail, not applicable, or measured where no rule can be defended
    why: str
    answer: str

    @property
    def told(self) -> bool:
        """Whether the audit gave a result."""
        return self.grade != NOT_APPLICABLE and (self.grade != MEASURED or self.answer not in ("", NOTHING))

    @property
    def result(self) -> str:
        """What was graded in a sentence, or else the whole answer."""
        told = self.answer if self.grade == MEASURED and self.answer else self.why
        return f"{told[:1].upper()}{told[1:]}{'' if told.endswith('.') else '.'}"

    @property
    def brief(self) -> str:
        """The first sentence of the result."""
        first = SENTENCE.split(self.result, maxsplit=1)[0]
        return first if first.endswith(".") else f"{first}."


def cards(record: Record) -> list[Card]:
    """One card for each audit, in the record's order."""
    return [card(record, name) for name in record.summary["audits"]]


def card(record: Record, name: str) -> Card:
    """The card of one audit; one without words of its own gets its name as the title."""
    titles = TITLES | (stacks.TITLES if stacks.stacked(record) else {})
    title = items(record).named(titles[name]) if name in titles else name.replace("_", " ").capitalize()
    answer = ANSWERS[name](record) if name in ANSWERS else ""
    return Card(name, title, *grade(record, name), NOTHING if answer is None else answer)


def grade(record: Record, name: str) -> tuple[str, str]:
    """The grade of one audit (pass, warn, fail, not applicable, measured) and the reason in a sentence."""
    about = record.summary["audits"].get(name)
    if about is None:
        return NOT_APPLICABLE, "The audit was not run."
    if not about.get("applies", True):
        return NOT_APPLICABLE, about.get("why") or "It does not apply to this model."
    if not any(f.audit == name and f.n > 0 for f in record.findings):
        return NOT_APPLICABLE, NOTHING
    if name not in GRADERS:
        return MEASURED, f"Not graded. {UNGRADED.get(name, 'No rule is stated for this audit.')}"
    return GRADERS[name](record) or (MEASURED, "Not graded: what the rule asks for was not measured.")
