"""The four tests of attention of Wiegreffe and Pinter (2019): each in a sentence or two, and what they say together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from assay.audits.equal_predictions import FAR
from assay.audits.permutation import SMALL
from assay.audits.statements import NOTICED
from assay.lookup import difference, named, points, spread, subjects
from assay.metrics.information import MAX_JSD
from assay.records import Finding, Record
from assay.stories import Conclusion, Drawing
from assay.writing import count, listed, number, percent

MATTERS = 0.03
"""A gain of learnt attention that surely stays below 3 points counts as hardly any.

A judgement, for no limit is published: it is three texts in a hundred. The gain and its interval stand beside it.
"""

STILL = SMALL
"""Without models of other seeds, predictions that move by less than this count as the same."""

APART = FAR
"""Without models of other seeds, attention further away than half of the largest divergence is another one."""

MANY_SEEDS = 8
"""From so many seeds on their cloud may serve as the null, as in Wiegreffe and Pinter (2019)."""

WITH = {
    "imported": "with attention of the audited model",
    "learnt": "with its own attention",
    "uniform": "with uniform weights",
    "adversarial": "with attention of an adversary",
}

LEARNT, IMPORTED = ("frozen_uniform", "learnt"), ("guide", "imported")
"""The audits and the models whose gain is looked at."""

Worth = Literal["hardly", "surely", "unclear"]
WORTHS: dict[Worth, tuple[str, str, str]] = {
    "hardly": (
        "fail",
        "on this task attention hardly matters, so no test of it says much",
        "hardly: the task cannot tell",
    ),
    "surely": (
        "pass",
        "on this task attention matters, so that it can be tested",
        "yes: attention can be tested here",
    ),
    "unclear": (
        "warn",
        "whether attention matters on this task these texts cannot tell",
        "not clear from these texts",
    ),
}
"""By what learnt attention is worth: the grade, what follows, and the answer in a table."""


def gain(record: Record, audit: str, subject: str) -> Finding | None:
    """How much more often a model is right, or None where this was not asked."""
    return subjects(record, audit, "right_gain").get(subject)


def worth(record: Record) -> Worth | None:
    """Whether learnt attention is better than uniform attention at all; None where this was not asked."""
    found = gain(record, *LEARNT)
    if found is None:
        return None
    return "hardly" if found.high < MATTERS else "surely" if found.low > 0 else "unclear"


def uniform(record: Record) -> Conclusion:
    """How much accuracy learnt attention is worth, and what follows for all other tests."""
    found, given = gain(record, *LEARNT), worth(record)
    if found is None or given is None:
        return Conclusion()
    grade, follows, _ = WORTHS[given]
    gained = points(found)
    right = subjects(record, "frozen_uniform", "right")
    answer = ""
    if {"learnt", "uniform"} <= set(right):
        inside = gained.replace("(", "[").replace(")", "]")  # it stands in brackets
        answer = (
            f"With attention frozen to uniform the model is right on {percent(right['uniform'].mean)} of texts, with "
            f"learnt attention on {percent(right['learnt'].mean)} (gain {inside}): {follows}."
        )
    return Conclusion(answer, grade, f"Learnt attention gains {gained}.")


@dataclass(frozen=True)
class Cloud:
    """How far models of other seeds lie from the audited one: attention (JSD) and predictions (TVD), seed by seed."""

    jsd: list[float]
    tvd: list[float]

    @property
    def small(self) -> bool:
        """Whether there are too few seeds to serve as a null."""
        return len(self.jsd) < MANY_SEEDS


def cloud(record: Record) -> Cloud | None:
    """The models of other seeds, from either audit that trains them; None where neither was run."""
    for audit in ("trained_adversary", "seed_variance"):
        jsd, tvd = (named(record, audit, measure, "seed ") for measure in ("jsd", "tvd"))
        if both := [name for name in jsd if name in tvd]:
            return Cloud([jsd[name].mean for name in both], [tvd[name].mean for name in both])
    return None


def seeds(record: Record) -> Conclusion:
    """How far attention and predictions lie apart when nothing but the seed differs."""
    found = {measure: named(record, "seed_variance", measure, "seed") for measure in ("jsd", "tvd", "same", "right")}
    whole = {measure: each.pop("seeds", None) for measure, each in found.items()}
    jsd, tvd, same = whole["jsd"], whole["tvd"], whole["same"]
    if jsd is None or tvd is None:
        return Conclusion()
    each, rights = ([f.mean for f in found[measure].values()] for measure in ("jsd", "right"))
    many = "one other seed" if len(each) == 1 else f"{len(each)} other seeds"
    told = (
        f"Where nothing but the seed differs, attention lies at a JSD of {spread(jsd)} and predictions at a "
        f"TVD of {spread(tvd)} from the audited model (n = {count(tvd.n)}, means over {many})"
    )
    told += f"; seed by seed the JSD is {_range(each)}, where {MAX_JSD:.2f} is the most." if len(each) > 1 else "."
    if same is not None:
        told += f" The decision is the same in {percent(same.mean)} of texts."
    if rights:
        told += f" The seeds are right on {_range(rights, 100)} % of them."
    return Conclusion(f"{told} This is the null for the trained adversary: what lies no further away shows nothing.")


def guide(record: Record) -> Conclusion:
    """The four guides from the best to the worst, and whether the audited attention helps another model."""
    answer, found = _guides(record), gain(record, *IMPORTED)
    if found is None:
        return Conclusion(answer)
    good = found.low > 0
    if answer:
        verb = "helps" if good else "is surely worse" if found.high < 0 else "does not clearly help"
        beyond = _beyond_adversary(record)
        over = f", and {points(beyond)} over that of the adversary" if beyond else ""
        answer += f" Attention of the audited model {verb}: {points(found)} over its own{over}."
    grade = "pass" if good and misleads(record) is not False else "fail" if found.high < 0 else "warn"
    return Conclusion(
        answer, grade, f"The attention of the audited model gains another one {points(found)} over its own."
    )


def _guides(record: Record) -> str:
    right = subjects(record, "guide", "right")
    ordered = sorted((name for name in right if name in WITH), key=lambda name: -right[name].mean)
    if len(right) < 2 or not ordered:
        return ""
    places = listed([f"{percent(right[name].mean)} {WITH[name]}" for name in ordered])
    return f"A model that reads each word alone is right on {places} (n = {count(right[ordered[0]].n)})."


def helps(record: Record) -> bool | None:
    """Whether the imported attention surely helps a model without context; None where this was not asked."""
    found = gain(record, *IMPORTED)
    return None if found is None else found.low > 0


def misleads(record: Record) -> bool | None:
    """Whether the adversary's attention surely serves that model less well than the imported one; None if not asked."""
    found = _beyond_adversary(record)
    return None if found is None else found.low > 0


def _beyond_adversary(record: Record) -> Finding | None:
    return difference(record, "guide", "right", "imported", "adversarial")


@dataclass(frozen=True)
class Reached:
    """The furthest attention that an adversary learnt at no more cost than another seed has, and whether it is beyond.

    `name` is None where every λ moved the predictions more.
    """

    name: str | None
    jsd: Finding | None
    tvd: Finding | None
    beyond: bool
    null: Cloud | None


def reached(record: Record) -> Reached | None:
    """How far attention was trained away while predictions held; None where no adversary was trained."""
    jsd, tvd = (named(record, "trained_adversary", measure, "λ=") for measure in ("jsd", "tvd"))
    names, null = [name for name in jsd if name in tvd], cloud(record)
    if not names:
        return None
    still, apart = (STILL, APART) if null is None else (max(null.tvd), max(null.jsd))
    near = [name for name in names if tvd[name].mean <= still]
    if not near:
        return Reached(None, None, None, False, null)
    best = max(near, key=lambda name: jsd[name].mean)
    return Reached(best, jsd[best], tvd[best], jsd[best].low > apart + NOTICED, null)


def adversary(record: Record) -> Conclusion:
    """How far attention can be trained away at which cost, compared with the seeds."""
    found = reached(record)
    if found is None:
        return Conclusion()
    few = found.null is None or found.null.small
    null = _null(found.null)
    if found.name is None or found.jsd is None or found.tvd is None:
        tvd = named(record, "trained_adversary", "tvd", "λ=")
        least = min(tvd, key=lambda name: tvd[name].mean)
        told = f"No adversary kept the predictions: the closest ({least}) is at a TVD of {spread(tvd[least])}. {null}"
        return Conclusion(told, "warn" if few else "pass", "No adversary kept the predictions.")
    right = subjects(record, "trained_adversary", "right").get(found.name)
    cost = f"; it is right on {percent(right.mean)} of texts, the audited model on {_own(record)}" if right else ""
    told = (
        f"An adversary ({found.name}) was trained to attend at a JSD of {spread(found.jsd)} from the audited model, "
        f"where {MAX_JSD:.2f} is the most, with predictions at a TVD of {spread(found.tvd)} (n = "
        f"{count(found.tvd.n)}){cost}. {null}"
    )
    if found.null is not None:
        sure = "" if found.beyond else "not surely "
        told += f" So attention was {sure}trained further away than a seed puts it."
    near = found.null is not None and found.jsd.high <= max(found.null.jsd)
    grade = "fail" if found.beyond else "pass" if near and not few else "warn"
    why = f"Attention was trained {spread(found.jsd)} away (JSD; n = {count(found.jsd.n)}) while predictions held."
    return Conclusion(told, grade, why)


def _null(null: Cloud | None) -> str:
    if null is None:
        return f"Without models of other seeds a TVD up to {STILL:g} was held to be no change."
    few = " They are few for a null." if null.small else ""
    return (
        f"Seeds alone ({len(null.jsd)}) reach a JSD of {number(max(null.jsd), 2)} and a TVD of "
        f"{number(max(null.tvd), 2)}.{few}"
    )


def _own(record: Record) -> str:
    """The accuracy of the audited model on the audited texts."""
    labels, predicted = (record.examples[name].to_numpy() for name in ("label", "predicted"))
    return percent(float((labels == predicted).mean())) if len(labels) else "–"


def _range(values: list[float], scale: int = 1) -> str:
    """From the least to the most, or one number where they read the same; shares as percentages with scale 100."""
    low, high = (number(scale * value, 2 if scale == 1 else 1) for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


FEWEST = 2
"""Fewer of the four tests than this are not put together."""

DISTANCES = Drawing(
    "distances",
    "tvd_jsd",
    (
        "Distance of attention against the change of the predictions, means over texts; the cross is "
        "the audited model, bars are 95 % intervals. Adversaries further up than the seeds, and not "
        "further right, moved attention at no cost. Names that would overlap are left out."
    ),
    {"path": "trained_adversary", "clouds": ["trained_adversary", "seed_variance"]},
)
"""The figure of the block; the sections of the audits then go without."""

LIMITS = (
    "Each model was trained once: intervals are over texts, and another run may give other models. That a test is "
    "passed does not show that attention is the reason for a decision; that it fails shows that it need not be."
)

READING = (
    "First comes whether attention is needed at all: where uniform weights do as well, the task cannot tell. Then the "
    "adversary is held against models of other seeds, which differ for no reason: only what lies beyond them, at no "
    "more change of the predictions, shows that attention can be swapped. Last, the same attention has to prove its "
    f"worth in a model that cannot read context. A gain that surely stays below {100 * MATTERS:g} points counts as "
    "hardly any."
)


@dataclass(frozen=True)
class Test:
    """One of the four: what it asks, its number with interval, and what that says."""

    name: str
    question: str
    found: str
    says: str


def together(record: Record) -> dict[str, Any] | None:
    """The tests that gave a number, together; None where there are fewer than two of them."""
    rows = [row for make in ROWS if (row := make(record)) is not None]
    if len(rows) < FEWEST:
        return None
    return {
        "tests": [asdict(row) for row in rows],
        "closing": closing(record),
        "limits": LIMITS,
        "reading": READING,
        "figure": DISTANCES.name,
    }


def closing(record: Record) -> str:
    """What follows: first whether the task can tell at all, then the adversary beside the seeds, then the guide."""
    given = worth(record)
    if given == "hardly":
        return (
            f"Uniform attention does as well here (learnt attention gains less than {100 * MATTERS:g} points), so this "
            "task cannot tell whether attention explains: whatever the other tests give, they are about something that "
            "the model hardly needs."
        )
    found, helped, misled = reached(record), helps(record), misleads(record)
    told = ["attention does better than uniform weights"] if given == "surely" else []
    if found is not None:
        told.append(_moved(found.beyond, found.name is not None, "the limits" if found.null is None else "other seeds"))
    if helped is not None:
        told.append(f"it {'helps' if helped else 'does not clearly help'} a model that cannot read context")
    if misled is not None:
        told.append(f"the adversary’s attention serves that model {'less well' if misled else 'about as well'}")
    sentence = listed(told)
    if sentence.startswith("it "):
        sentence = sentence.replace("it", "attention", 1)
    doubt = "Whether attention matters at all on this task is not clear. " if given == "unclear" else ""
    clauses = f"{sentence[0].upper()}{sentence[1:]}. " if told else ""
    return f"{doubt}{clauses}{_sum(None if found is None else found.beyond, helped, misled)}"


def _moved(beyond: bool, kept: bool, null: str) -> str:
    if beyond:
        return f"it was trained further away than {null} reach, with predictions that move no more"
    if kept:
        return f"it was not trained surely further away than {null} reach while predictions held"
    return f"no adversary kept predictions as close as {null} do"


def _sum(beyond: bool | None, helped: bool | None, misled: bool | None) -> str:
    """The last sentence, by whether the adversary went beyond the seeds and whether the words mean something."""
    if beyond is None and helped is None:
        return "Neither an adversary nor a guide was put to the test, so nothing follows about what attention explains."
    good = None if helped is None else helped and misled is not False
    return {
        (True, True): (
            "So it marks words that matter beyond this model, and yet it is not the only attention that goes with "
            "these predictions: a heatmap is one account among several."
        ),
        (True, False): "Adversary and guide both speak against reading this attention as the reason for a decision.",
        (True, None): "That speaks against reading this attention as the reason for a decision.",
        (False, True): "Adversary and guide both speak for an attention that is bound to what the model does.",
        (False, False): "So it was not swapped at will, but the guide does not single it out: the tests do not agree.",
        (False, None): (
            "So nothing shows that it could be swapped at will; whether it means anything the guide would tell."
        ),
        (None, True): (
            "That speaks for an attention that marks words which matter; how freely it could be changed was not asked."
        ),
        (None, False): "So the guide does not single this attention out.",
    }[beyond, good]


def _uniform(record: Record) -> Test | None:
    found, given = gain(record, *LEARNT), worth(record)
    if found is None or given is None:
        return None
    question = "Is learnt attention better than uniform weights?"
    return Test("uniform attention", question, f"gain {points(found)}", WORTHS[given][2])


def _seeds(record: Record) -> Test | None:
    found, moved = (subjects(record, "seed_variance", measure).get("seeds") for measure in ("jsd", "tvd"))
    if found is None:
        return None
    told = f"JSD {spread(found)}{f', TVD {spread(moved)}' if moved else ''}"
    return Test("other seeds", "How far apart does the seed alone put attention?", told, "the null for the adversary")


def _guide(record: Record) -> Test | None:
    found = gain(record, *IMPORTED)
    if found is None:
        return None
    says = "it does not clearly help"
    if helps(record):
        less, as_much = ", and that of the adversary less", ", but that of the adversary about as much"
        says = "it helps" + {None: "", True: less, False: as_much}[misleads(record)]
    return Test("guide", "Does this attention help a model that cannot read context?", f"gain {points(found)}", says)


def _adversary(record: Record) -> Test | None:
    found = reached(record)
    if found is None:
        return None
    told, says = "–", "no: each λ moves predictions more than that"
    if found.jsd is not None and found.tvd is not None:
        told = f"JSD {spread(found.jsd)} at TVD {number(found.tvd.mean, 2)}, {found.name}"
        beside = "the seeds" if found.null else "the limit"
        says = f"yes: further than {beside}" if found.beyond else f"not surely further than {beside}"
    return Test("trained adversary", "Can attention be trained away while predictions stay?", told, says)


ROWS: tuple[Callable[[Record], Test | None], ...] = (_uniform, _seeds, _adversary, _guide)
"""In the order of the argument."""
