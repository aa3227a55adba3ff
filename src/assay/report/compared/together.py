"""The four tests of attention on one page: a table, and what they say together, after Wiegreffe and Pinter (2019)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from assay.records import Record
from assay.report.compared.found import points, spread, subjects
from assay.report.compared.four import cloud, helps, misleads, reached, worth
from assay.report.compared.limits import MATTERS
from assay.report.verdicts import near_chance
from assay.writing import listed, number

TESTS = ("frozen_uniform", "seed_variance", "guide", "trained_adversary")
FEWEST = 2
"""Fewer of the four tests than this are not put together."""

FIGURE = "tvd_jsd"
"""The figure of the block; the section of its audit then goes without."""

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


@dataclass(frozen=True)
class Together:
    """The block of a page: a row for each test that was run, and the closing sentences."""

    tests: tuple[Test, ...]
    closing: str
    limits: str
    reading: str


def together(record: Record) -> Together | None:
    """The tests that gave a number, together; None where there are fewer than two of them."""
    rows = [row for make in ROWS if (row := make(record)) is not None]
    return Together(tuple(rows), closing(record), LIMITS, READING) if len(rows) >= FEWEST else None


def closing(record: Record) -> str:
    """What follows: first whether the task can tell at all, then the adversary beside the seeds, then the guide."""
    weak = "The audited model is itself hardly better than chance, so none of this says much. "
    return f"{weak if near_chance(record) else ''}{_argued(record)}"


def _argued(record: Record) -> str:
    if worth(record) == "hardly":
        return (
            f"Uniform attention does as well here (learnt attention gains less than {100 * MATTERS:g} points), so this "
            "task cannot tell whether attention explains: whatever the other tests give, they are about something that "
            "the model hardly needs."
        )
    doubt = "Whether attention matters at all on this task is not clear. " if worth(record) == "unclear" else ""
    found = reached(record)
    beyond, kept = (None, None) if found is None else (found.beyond, found.name is not None)
    return f"{doubt}{_clauses(record, beyond, kept)}{_sum(beyond, helps(record), misleads(record))}".strip()


def _clauses(record: Record, beyond: bool | None, kept: bool | None) -> str:
    told = ["attention does better than uniform weights"] if worth(record) == "surely" else []
    if beyond is not None:
        told.append(_moved(beyond, kept is True, "other seeds" if cloud(record) is not None else "the limits"))
    helped, misled = helps(record), misleads(record)
    if helped is not None:
        told.append(f"it {'helps' if helped else 'does not clearly help'} a model that cannot read context")
    if misled is not None:
        told.append(f"the adversary’s attention serves that model {'less well' if misled else 'about as well'}")
    sentence = listed(told).replace("it ", "attention ", 1) if told and told[0].startswith("it ") else listed(told)
    return f"{sentence[0].upper()}{sentence[1:]}. " if told else ""


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
    gain = subjects(record, "frozen_uniform", "right_gain").get("learnt")
    if gain is None:
        return None
    says = {
        "hardly": "hardly: the task cannot tell",
        "surely": "yes: attention can be tested here",
        "unclear": "not clear from these texts",
    }[worth(record) or "unclear"]
    return Test("uniform attention", "Is learnt attention better than uniform weights?", f"gain {points(gain)}", says)


def _seeds(record: Record) -> Test | None:
    found = subjects(record, "seed_variance", "jsd").get("seeds")
    if found is None:
        return None
    moved = subjects(record, "seed_variance", "tvd").get("seeds")
    told = f"JSD {spread(found)}{f', TVD {spread(moved)}' if moved else ''}"
    return Test("other seeds", "How far apart does the seed alone put attention?", told, "the null for the adversary")


def _guide(record: Record) -> Test | None:
    gain = subjects(record, "guide", "right_gain").get("imported")
    if gain is None:
        return None
    says = {
        (True, True): "it helps, and that of the adversary less",
        (True, False): "it helps, but that of the adversary about as much",
        (True, None): "it helps",
    }.get((bool(helps(record)), misleads(record)), "it does not clearly help")
    return Test("guide", "Does this attention help a model that cannot read context?", f"gain {points(gain)}", says)


def _adversary(record: Record) -> Test | None:
    found = reached(record)
    if found is None:
        return None
    question = "Can attention be trained away while predictions stay?"
    if found.jsd is None or found.tvd is None:
        return Test("trained adversary", question, "–", "no: each λ moves predictions more than that")
    told = f"JSD {spread(found.jsd)} at TVD {number(found.tvd.mean, 2)}, {found.name}"
    beside = "the seeds" if found.null else "the limit"
    says = f"yes: further than {beside}" if found.beyond else f"not surely further than {beside}"
    return Test("trained adversary", question, told, says)


ROWS: tuple[Callable[[Record], Test | None], ...] = (_uniform, _seeds, _adversary, _guide)
"""In the order of the argument."""
