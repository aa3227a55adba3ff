"""By what an explainer is judged, and the limits between pass, warn and fail with their reasons."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute

from assay.lookup import RANDOM
from assay.records import CHANCE, Finding, Record
from assay.report.likely import ECONOMY, known_reasons, likely, unlike

Grade = Literal["pass", "warn", "fail", "reference", "not applicable"]
REFERENCE = "leave_one_out"
AGREES = ("agreement", "tau")
"""The audit and the measure of how alike a ranking is to that of the reference; no verdict is read off it."""

SAME = 0.999
"""From this τ on an explainer is the reference itself: for two classes, occlusion is leave-one-out with a sign."""

NEAR_CHANCE = 0.05
"""An accuracy less than 5 points above that of always naming the largest class is near chance."""

CHANCE_AUC = 0.5
"""The AUC of a model that knows nothing; one less than 5 points above it is near chance too."""

AUC_INFORMED = 0.65
"""From this AUC on a model knows something even where its accuracy does not show it, as with rare classes."""

FEW = 30
"""From fewer texts no explainer is graded."""


@dataclass(frozen=True)
class Yardstick:
    """One measure of truth to the model, with the limits from which it passes and below which it fails."""

    audit: str
    measure: str
    symbol: str
    passes: float
    fails: float
    against: str
    how: str  # the grades are given
    reason: str


_INTERVALS = (
    "An explainer passes when the whole 95 % interval of its {symbol} lies at or above {passes:g}. It fails when the "
    "whole interval lies below {fails:g}, or when it does not lie above what random scores reach. In between it gets a "
    "warning. With fewer than 30 texts nothing is graded."
)
TRUTH = Yardstick(
    "truth",
    "auprc",
    "AUPRC",
    0.8,
    0.5,
    "the words that are known to decide",
    _INTERVALS.format(symbol="AUPRC", passes=0.8, fails=0.5),
    "Where the deciding words are known, an explainer has to find them. Reading down its ranking, an AUPRC "
    "of 0.8 means that at each deciding word on average four in five of the words read so far are deciding "
    "ones; at 0.5 it is every second one.",
)


def _deciding() -> Yardstick:
    known = known_reasons()
    rule, models = known["explainer"], known["models"]
    passes, fails, judged = rule["passes"], rule["fails"], rule["held_out"]
    return Yardstick(
        *ECONOMY,
        "probability",
        passes,
        fails,
        "the words that decide",
        f"An explainer passes from a probability of {passes:.2f} on, fails below {fails:.2f} or where it is not surely "
        "more economical than random rankings, and gets a warning in between. With a model that is unlike those of "
        "the bank a pass takes the whole interval. With fewer than 30 texts nothing is graded.",
        f"The probability is read off {models} models whose reasons are known: how often an explainer with such an "
        "economy (how few of its highest words it takes to keep the decision, and to lose it, while words drawn from "
        "other texts stand in all other places) had found the words that decide there. On families of models that the "
        f"fit had not seen {100 * judged['wrong']:.1f} of 100 passes were wrong, {100 * judged['failed']:.1f} of 100 "
        f"explainers that had found the words failed, and {100 * judged['warned']:.0f} of 100 got a warning "
        f"(AUROC {judged['auroc']:.3f}).",
    )


DECIDING = _deciding()
CAPTION = (
    "Each explainer on the scale by which it is judged: mean and 95 % interval. The dashed line is the null: what "
    "scores without any knowledge reach."
)
"""Of the figure of the verdict."""


def yardstick(record: Record) -> Yardstick:
    """Known evidence where the corpus has it, else how likely an explainer finds the words that decide."""
    return TRUTH if any(f.audit == "truth" and f.measure == "auprc" for f in record.findings) else DECIDING


@dataclass(frozen=True)
class Scale:
    """A yardstick laid to a record: the number of each explainer that has one, and what random scores reach.

    `measured` holds the findings behind the numbers; `unlike` says in what the model is unlike those that the
    yardstick was made from.
    """

    rule: Yardstick
    effects: dict[str, Finding]
    measured: dict[str, Finding]
    null: float
    null_measured: float
    null_high: float  # the upper end of the interval of what is measured
    unlike: tuple[str, ...] = ()

    def grade(self, name: str) -> Grade:
        """The grade of an explainer: not applicable where there are too few texts, or chance does as well as any."""
        found, effect = self.measured[name], self.effects[name]
        if found.n < FEW or (self.hopeless and found.low <= self.null_high):
            return "not applicable"
        if found.low <= self.null_high:
            return "fail"
        if self.rule is not DECIDING:
            return surely(effect, self.rule.passes, self.rule.fails)
        sure = effect.low if self.unlike else effect.mean
        return "fail" if effect.mean < self.rule.fails else "pass" if sure >= self.rule.passes else "warn"

    @property
    def hopeless(self) -> bool:
        """Whether random scores would not fail: then texts are so short that a ranking says nothing."""
        return self.rule is DECIDING and self.null >= self.rule.fails


def scale(record: Record, rule: Yardstick | None = None) -> Scale:
    """The record's yardstick with all numbers on it; the null is the random explainer's, or else chance."""
    rule = rule or yardstick(record)
    measured = {
        finding.subject: finding
        for finding in record.findings
        if (finding.audit, finding.measure, finding.group) == (rule.audit, rule.measure, "all")
        and finding.n > 0
        and not math.isnan(finding.mean)
    }
    chance = measured.pop(CHANCE, None)
    null = measured.get(RANDOM, chance)
    if rule is not DECIDING:
        reached = _random_ranking(record) if null is None else null.mean
        return Scale(rule, measured, measured, reached, reached, reached if null is None else null.high)
    reasons = tuple(unlike(record)) if measured else ()
    effects = {name: likely(found, reasons) for name, found in measured.items()}
    if null is None:
        return Scale(rule, effects, measured, 0.0, 0.0, 0.0, reasons)
    return Scale(rule, effects, measured, likely(null).mean, null.mean, null.high, reasons)


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


def surely(finding: Finding, passes: float, fails: float) -> Grade:
    """Passes when the whole interval lies at or above a limit, fails when it lies below another, warns in between."""
    if finding.high < fails:
        return "fail"
    return "pass" if finding.low >= passes else "warn"
