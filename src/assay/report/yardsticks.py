"""By what an explainer is judged, and the limits between pass, warn and fail with their reasons."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute

from assay.metrics.divergence import MAX_JSD
from assay.records import Finding, Record

Grade = Literal["pass", "warn", "fail", "reference", "not applicable"]
REFERENCE = "leave_one_out"
NULL = "random"

SAME = 0.999
"""From this τ on an explainer is the reference itself: for two classes, occlusion is leave-one-out with a sign."""

SHUFFLE_SMALL = 0.05
"""Below this mean of median TVDs shuffling hardly matters: predictions move by less than 5 points."""

JSD_FAR = MAX_JSD / 2
"""Beyond half of the largest possible divergence (0.69), two attention maps tell different stories."""

LEAD_SURE = 0.05
"""Attention leads a random order of erasing where a two-sided sign test over texts has at most this p-value.

The null is the limit: no share of wins or of shortest sets is published as enough, but a ranking that a random order
matches says nothing about what decides.
"""

NEAR_CHANCE = 0.05
"""An accuracy less than 5 points above that of always naming the largest class is near chance."""

CHANCE_AUC = 0.5
"""The AUC of a model that knows nothing; one less than 5 points above it is near chance too."""

AUC_INFORMED = 0.65
"""From this AUC on a model knows something even where its accuracy does not show it, as with rare classes."""

FEW = 30
"""Below this many examples an interval is itself uncertain."""


@dataclass(frozen=True)
class Yardstick:
    """One measure of truth to the model, with the limits from which it passes and below which it fails."""

    audit: str
    measure: str
    symbol: str
    passes: float
    fails: float
    against: str
    reason: str


AGREEMENT = Yardstick(
    "agreement",
    "tau",
    "τ",
    0.6,
    0.4,
    "what happens when words are deleted",
    "A Kendall τ of 0.6 means that of two words the same one is put first about 80 times in 100, 0.4 about "
    "70 times, chance 50 times. In Table 2 of Jain and Wallace (2019) attention over single words (their "
    "Average encoder) reaches 0.65 to 0.84 with gradients on all corpora but two; over a BiLSTM it stays "
    "below 0.5 on all of them.",
)
TRUTH = Yardstick(
    "truth",
    "auprc",
    "AUPRC",
    0.8,
    0.5,
    "the words that are known to decide",
    "Where the deciding words are known, an explainer has to find them. Reading down its ranking, an AUPRC "
    "of 0.8 means that at each deciding word on average four in five of the words read so far are deciding "
    "ones; at 0.5 it is every second one.",
)


def yardstick(record: Record) -> Yardstick:
    """Known evidence where the corpus has it, else agreement with leave-one-out: truth beats agreement."""
    return TRUTH if any(f.audit == "truth" and f.measure == "auprc" for f in record.findings) else AGREEMENT


@dataclass(frozen=True)
class Scale:
    """A yardstick laid to a record: the finding of each explainer that has one, and what random scores reach."""

    rule: Yardstick
    effects: dict[str, Finding]
    null: float
    null_high: float


def scale(record: Record) -> Scale:
    """The record's yardstick with all numbers on it; the null is the random explainer's, or else chance."""
    rule, effects = yardstick(record), {}
    for finding in record.findings:
        name = _judged(finding, rule)
        if name is not None and finding.n > 0 and not math.isnan(finding.mean):
            effects[name] = finding
    if NULL in effects:
        return Scale(rule, effects, effects[NULL].mean, effects[NULL].high)
    chance = _random_ranking(record) if rule is TRUTH else 0.0
    return Scale(rule, effects, chance, chance)


def _judged(finding: Finding, rule: Yardstick) -> str | None:
    """The explainer that a finding decides about, or None."""
    if (finding.audit, finding.measure, finding.group) != (rule.audit, rule.measure, "all"):
        return None
    one, _, other = finding.subject.partition("~")
    if rule is TRUTH or other == REFERENCE:
        return one
    return other if one == REFERENCE else None


def _random_ranking(record: Record) -> float:
    """The mean over texts of a random ranking's expected average precision.

    With n tokens of which r decide it is (H + (r - 1) / (n - 1) * (n - H)) / n, with H = 1 + 1/2 + ... + 1/n.
    """
    truths = record.examples["truth"].combine_chunks()
    owner = pa.compute.list_parent_indices(truths).to_numpy()
    flags = truths.flatten().to_numpy(zero_copy_only=False).astype(float)
    tokens, deciding = np.bincount(owner), np.bincount(owner, weights=flags)
    tokens, deciding = tokens[deciding > 0], deciding[deciding > 0]
    if len(tokens) == 0:
        return 0.0
    harmonic = np.cumsum(1 / np.arange(1, tokens.max() + 1))[tokens - 1]
    others = (deciding - 1) / np.maximum(tokens - 1, 1)
    return float(np.mean((harmonic + others * (tokens - harmonic)) / tokens))


def grade(finding: Finding, null_high: float, rule: Yardstick) -> Grade:
    """Fails when surely weak or not beyond the null, passes when surely strong, warns in between."""
    return "fail" if finding.low <= null_high else surely(finding, rule.passes, rule.fails)


def surely(finding: Finding, passes: float, fails: float) -> Grade:
    """Passes when the whole interval lies at or above a limit, fails when it lies below another, warns in between."""
    if finding.high < fails:
        return "fail"
    return "pass" if finding.low >= passes else "warn"
