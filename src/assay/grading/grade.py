"""Grades of explainers: yardsticks with their limits, how likely the deciding words are found, and the verdicts."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute
from jaxtyping import Float
from scipy.special import expit, logit, ndtri

from assay.lookup import RANDOM, over_all, side_by_side, texts
from assay.records import CHANCE, Finding, Record
from assay.writing import count, listed, number

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
ECONOMY = ("deciding", "economy")
"""The audit and the measure that trust is read off."""

TRUST = (
    "Trust is a share of texts with known reasons: of those in which an explanation measured like this one, in how "
    "many its highest words were those that decide."
)
POINTS = ndtri((np.arange(15) + 0.5) / 15)
"""Points of a normal distribution, all as probable, that stand for the error of a mean over texts."""

WIDER = 2.0
Z = float(ndtri(0.975))


@cache
def known_reasons() -> dict[str, Any]:
    """The table that `python -m studies.verdict` writes: coefficients, limits, their errors, what the bank holds."""
    stored: dict[str, Any] = json.loads(files("assay.grading").joinpath("known_reasons.json").read_text("utf-8"))
    return stored


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


TRUTH = Yardstick(
    "truth",
    "auprc",
    "AUPRC",
    0.8,
    0.5,
    "the words that are known to decide",
    "An explainer passes when the whole 95 % interval of its AUPRC lies at or above 0.8. It fails when the whole "
    "interval lies below 0.5, or when it does not lie above what random scores reach. In between it gets a warning. "
    "With fewer than 30 texts nothing is graded.",
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
    measured = {f.subject: f for f in over_all(record, rule.audit, rule.measure) if not math.isnan(f.mean)}
    chance = measured.pop(CHANCE, None)
    null = measured.get(RANDOM, chance)
    if rule is not DECIDING:
        reached = _random_ranking(record) if null is None else null.mean
        return Scale(rule, measured, measured, reached, reached, reached if null is None else null.high)
    reasons = tuple(unlike(record)) if measured else ()
    effects = {name: likely(found, reasons) for name, found in measured.items()}
    nulls = (0.0, 0.0, 0.0) if null is None else (likely(null).mean, null.mean, null.high)
    return Scale(rule, effects, measured, *nulls, reasons)


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


def likely(found: Finding, unlike: Sequence[str] = ()) -> Finding:
    """The finding of a mean economy as the probability that the explainer finds the words that decide, with interval.

    The interval holds the error of the mean over texts and what other families of models in the bank would have given;
    of a model `unlike` the bank it reaches `WIDER` times as far from the estimate, in log-odds.
    """
    rule = known_reasons()["explainer"]
    error = (found.high - found.low) / (2 * Z) if math.isfinite(found.high - found.low) else 0.0
    economies = np.clip(found.mean + error * POINTS, 0, 1)
    drawn = np.array(rule["draws"])
    low, high = np.quantile(_probability(drawn, economies), (0.025, 0.975))
    mean = float(_probability(np.array([rule["coefficients"]]), np.array([found.mean]))[0, 0])
    low, high = min(float(low), mean), max(float(high), mean)
    if unlike:
        low, high = (float(expit(logit(mean) + WIDER * (logit(end) - logit(mean)))) for end in (low, high))
    return replace(found, mean=mean, low=low, high=high)


def _probability(given: Float[np.ndarray, "D 2"], economies: Float[np.ndarray, " E"]) -> Float[np.ndarray, "D E"]:
    return np.asarray(expit(given[:, :1] + given[:, 1:] * economies))


def of_text(economy: float) -> float:
    """The probability that the highest words of a single text hold what decides there.

    It is read off the text's own economy, with words of the model's vocabulary in place of those of other texts.
    """
    start, slope = known_reasons()["alone"]["coefficients"]
    return float(expit(start + slope * economy))


def trusted(trust: float) -> str:
    """How far a heatmap can be trusted, as it stands beside one."""
    return f"trust {number(trust, 2)}"


def trusts(record: Record) -> dict[int, dict[str, float]]:
    """How far each heatmap can be trusted, by text and explainer; of those that the audit of deciding words has read.

    It is read off the economy in the text and the explainer's mean over texts.
    """
    audit, measure = ECONOMY
    means = {f.subject: f.mean for f in over_all(record, audit, measure) if f.subject != CHANCE}
    start, own, whole = known_reasons()["text"]["coefficients"]
    economies = side_by_side(record, audit, [f"{measure}:{name}" for name in means])
    sure = expit(start + own * economies + whole * np.array(list(means.values())))
    told = {}
    for example, row in zip(texts(record, audit).tolist(), sure.tolist(), strict=True):
        told[example] = {name: value for name, value in zip(means, row, strict=True) if math.isfinite(value)}
    return {example: numbers for example, numbers in told.items() if numbers}


def unlike(record: Record) -> list[str]:
    """In what the audited model is unlike every model of the bank, as parts of a sentence."""
    bank, model = known_reasons()["bank"], record.summary.get("model", {})
    lengths = record.examples["starts"].combine_chunks().value_lengths().to_numpy() if len(record.examples) else []
    words = float(np.mean(lengths)) if len(lengths) else None
    classes, accuracy = float(len(record.summary["corpus"]["classes"])), (model.get("test") or {}).get("accuracy")
    found = [
        *_outside("its texts have {} words on average", words, bank["words"], 0),
        *_outside("it tells {} classes apart", classes, bank["classes"], 0),
        *_outside("its accuracy is {}", accuracy, bank["accuracy"], 2),
    ]
    network = kind(model)
    if network not in bank["networks"]:
        found.append(f"it is another kind of network ({network or 'not known'})")
    return found


def kind(model: dict[str, Any]) -> str:
    """What sort of network a summary tells of: its encoder where it is one of ours over words, else its shape."""
    recipe = (model.get("history") or {}).get("recipe") or {}
    encoder, shape = (recipe.get("architecture") or {}).get("encoder"), model.get("shape", "")
    return str(encoder if encoder and shape == "flat" else shape)


def _outside(words: str, value: float | None, ends: Sequence[int | float], digits: int) -> list[str]:
    low, high = ends
    if value is None or low <= value <= high:
        return []
    told = count(round(value)) if not digits else number(value, digits)
    return [f"{words.format(told)}, in the bank {number(float(low), digits)} to {number(float(high), digits)}"]


def told(reasons: Sequence[str]) -> str:
    """A sentence on a model that is unlike the bank."""
    return f"This model is unlike those of the bank ({listed(list(reasons))}): intervals are widened."


ATTENTION = "attention"
GRADED = ("pass", "warn", "fail")


@dataclass(frozen=True)
class Verdict:
    """One explainer's grade, the number behind it with its 95 % interval, the null to beat, a sentence."""

    name: str
    grade: Grade
    measure: str
    effect: float | None
    low: float | None
    high: float | None
    n: int
    null: float | None
    sentence: str
    more: tuple[str, ...] = ()  # what each audit of attention says


def verdicts(record: Record) -> list[Verdict]:
    """One verdict for each explainer of the record, the largest number first, then those that have none."""
    laid = scale(record)
    found = [_verdict(record, name, laid) for name in record.summary["explainers"]]
    return sorted(found, key=lambda v: (v.effect is None, v.name == RANDOM, -(v.effect or 0.0)))


def ranked(record: Record) -> list[Verdict]:
    """The verdicts on all explainers that are graded, the largest number first."""
    return [v for v in verdicts(record) if v.grade in GRADED]


def leading(record: Record) -> str | None:
    """The explainer that cards are about: attention where it was run, else the one with the largest number, if any."""
    if ATTENTION in record.summary["explainers"]:
        return ATTENTION
    return next((v.name for v in ranked(record)), None)


def standing(record: Record) -> Grade:
    """Whether any heatmap may be shown: the grade of the best, a warning at most where the model is near chance."""
    best = next(iter(ranked(record)), None)
    if best is None:
        return "not applicable"
    return "warn" if best.grade == "pass" and near_chance(record) else best.grade


def near_chance(record: Record) -> bool:
    """Whether the model is near chance: by its accuracy, unless its AUC shows that it knows more, or by its AUC."""
    accuracy, largest, auc = ability(record)
    if accuracy is None:
        return False
    by_accuracy = accuracy < largest + NEAR_CHANCE and (auc is None or auc < AUC_INFORMED)
    return by_accuracy or (auc is not None and auc < CHANCE_AUC + NEAR_CHANCE)


def ability(record: Record) -> tuple[float | None, float, float | None]:
    """The model's accuracy, that of always naming the largest class, and its AUC; None where it is not known."""
    test = record.summary.get("model", {}).get("test") or {}
    labels = record.examples["label"].to_numpy()
    if len(labels) == 0:
        return None, 0.0, None
    return test.get("accuracy"), float(np.bincount(labels).max() / len(labels)), test.get("auc")


def _verdict(record: Record, name: str, laid: Scale) -> Verdict:
    rule, found = laid.rule, laid.effects.get(name)
    more = _of_attention(record) if name == ATTENTION else ()
    grade: Grade = "not applicable" if found is None else "reference" if name == RANDOM else laid.grade(name)
    if found is None or grade == "not applicable":
        sentence = _why_not(record, rule) if found is None else too_few(found) or HOPELESS
        return Verdict(name, grade, rule.measure, None, None, None, 0, None, sentence, more)
    numbers = (rule.measure, found.mean, found.low, found.high, found.n)
    if grade == "reference":
        sentence = "Scores drawn at random: what an explainer that knows nothing reaches. The others must beat it."
        return Verdict(name, grade, *numbers, None, sentence)
    return Verdict(name, grade, *numbers, laid.null, _sentence(grade, found, laid), more)


def _of_attention(record: Record) -> tuple[str, ...]:
    """What each audit of attention says, for those that were run."""
    every = ((record.stories[name].about, said.answer) for name, said in record.conclusions.items())
    return tuple(answer for about, answer in every if about == "attention" and answer)


HOPELESS = "Nothing can be said: in texts like these random rankings do as well."


def too_few(found: Finding) -> str | None:
    """Why a finding is too small for a grade, or None."""
    usable = "1 text is" if found.n == 1 else f"{count(found.n)} texts are"
    return None if found.n >= FEW else f"Too few texts: {usable} usable, and a grade takes {FEW}."


def _why_not(record: Record, rule: Yardstick) -> str:
    audit = record.summary["audits"].get(rule.audit)
    if audit is None:
        return f"Not graded: the audit “{rule.audit}” was not run."
    if not audit.get("applies", True):
        return f"Not graded: {audit.get('why') or 'the audit does not apply to this model.'}"
    return "Nothing can be said: no text has a number."


def _sentence(given: Grade, found: Finding, laid: Scale) -> str:
    rule = laid.rule
    if laid.measured[found.subject].low <= laid.null_high:
        return f"Does not clearly beat scores drawn at random when compared with {rule.against}."
    if rule is TRUTH:
        words = {"pass": "Finds most of", "warn": "Finds some of", "fail": "Misses many of"}[given]
        return f"{words} {rule.against}: average precision {found.mean:.2f} of 1."
    words = {"pass": "Finds", "warn": "May find", "fail": "Hardly finds"}[given]
    return f"{words} {rule.against}: {likelihood(found.mean)} explainers that measured like this had found them."


def likelihood(probability: float) -> str:
    """A probability as how many of 100, to be followed by what they are."""
    hundredths = round(100 * probability)
    return f"{'more than 99' if hundredths == 100 else 'fewer than 1' if hundredths == 0 else hundredths} of 100"
