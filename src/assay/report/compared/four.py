"""The four tests of attention of Wiegreffe and Pinter (2019), each in a sentence or two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from assay.metrics.divergence import MAX_JSD
from assay.records import Finding, Record
from assay.report.compared.found import difference, named, points, spread, subjects
from assay.report.compared.limits import APART, MANY_SEEDS, MATTERS, NOTICED, STILL
from assay.writing import count, listed, number, percent

GUIDES = {"imported": "audited model", "learnt": "its own", "uniform": "uniform", "adversarial": "adversary"}
"""Whose attention guides a model which cannot read context, as figures say it."""

WITH = {
    "imported": "with attention of the audited model",
    "learnt": "with its own attention",
    "uniform": "with uniform weights",
    "adversarial": "with attention of an adversary",
}

Worth = Literal["hardly", "surely", "unclear"]


def worth(record: Record) -> Worth | None:
    """Whether learnt attention is better than uniform attention at all; None where this was not asked."""
    gain = subjects(record, "frozen_uniform", "right_gain").get("learnt")
    if gain is None:
        return None
    return "hardly" if gain.high < MATTERS else "surely" if gain.low > 0 else "unclear"


def uniform(record: Record) -> str | None:
    """How much accuracy learnt attention is worth, and what follows for all other tests."""
    right, gain = subjects(record, "frozen_uniform", "right"), subjects(record, "frozen_uniform", "right_gain")
    if not {"learnt", "uniform"} <= set(right) or "learnt" not in gain:
        return None
    ending = {
        "hardly": "on this task attention hardly matters, so no test of it says much",
        "surely": "on this task attention matters, so that it can be tested",
        "unclear": "whether attention matters on this task these texts cannot tell",
    }[worth(record) or "unclear"]
    return (
        f"With attention frozen to uniform the model is right on {percent(right['uniform'].mean)} of texts, with "
        f"learnt attention on {percent(right['learnt'].mean)} (gain {_inside(points(gain['learnt']))}): {ending}."
    )


@dataclass(frozen=True)
class Cloud:
    """How far models of other seeds lie from the audited one: attention (JSD) and predictions (TVD), seed by seed."""

    jsd: dict[str, Finding]
    tvd: dict[str, Finding]

    @property
    def furthest(self) -> float:
        return max(f.mean for f in self.jsd.values())

    @property
    def most_moved(self) -> float:
        return max(f.mean for f in self.tvd.values())

    @property
    def small(self) -> bool:
        """Whether there are too few seeds to serve as a null."""
        return len(self.jsd) < MANY_SEEDS


def cloud(record: Record) -> Cloud | None:
    """The models of other seeds, from either audit that trains them; None where neither was run."""
    for audit in ("trained_adversary", "seed_variance"):
        jsd, tvd = (named(record, audit, measure, "seed ") for measure in ("jsd", "tvd"))
        both = [name for name in jsd if name in tvd]
        if both:
            return Cloud({name: jsd[name] for name in both}, {name: tvd[name] for name in both})
    return None


def seeds(record: Record) -> str | None:
    """How far attention and predictions lie apart when nothing but the seed differs."""
    jsd, tvd, same, right = (
        named(record, "seed_variance", measure, "seed") for measure in ("jsd", "tvd", "same", "right")
    )
    if "seeds" not in jsd or "seeds" not in tvd:
        return None
    each = [f.mean for name, f in jsd.items() if name != "seeds"]
    rights = [f.mean for name, f in right.items() if name != "seeds"]
    told = (
        f"Where nothing but the seed differs, attention lies at a JSD of {spread(jsd['seeds'])} and predictions at a "
        f"TVD of {spread(tvd['seeds'])} from the audited model (n = {count(tvd['seeds'].n)}, means over "
        f"{_counted(len(each))})"
    )
    told += f"; seed by seed the JSD is {_range(each)}, where {MAX_JSD:.2f} is the most." if len(each) > 1 else "."
    told += f" The decision is the same in {percent(same['seeds'].mean)} of texts." if "seeds" in same else ""
    told += f" The seeds are right on {_range(rights, 100)} % of them." if rights else ""
    return f"{told} This is the null for the trained adversary: what lies no further away shows nothing."


def guide(record: Record) -> str | None:
    """The four guides from the best to the worst, and whether the audited attention helps another model."""
    right, gain = subjects(record, "guide", "right"), subjects(record, "guide", "right_gain")
    if len(right) < 2:
        return None
    ordered = sorted((name for name in right if name in GUIDES), key=lambda name: -right[name].mean)
    if not ordered:
        return None
    places = listed([f"{percent(right[name].mean)} {WITH[name]}" for name in ordered])
    told = f"A model that reads each word alone is right on {places} (n = {count(right[ordered[0]].n)})."
    if "imported" not in gain:
        return told
    verb = "helps" if helps(record) else "is surely worse" if gain["imported"].high < 0 else "does not clearly help"
    told += f" Attention of the audited model {verb}: {points(gain['imported'])} over its own"
    beyond = difference(record, "guide", "right", "imported", "adversarial")
    return f"{told}{f', and {points(beyond)} over that of the adversary' if beyond else ''}."


def helps(record: Record) -> bool | None:
    """Whether the imported attention surely helps a model without context; None where this was not asked."""
    gain = subjects(record, "guide", "right_gain").get("imported")
    return None if gain is None else gain.low > 0


def misleads(record: Record) -> bool | None:
    """Whether the adversary's attention surely serves that model less well than the imported one; None if not asked."""
    found = difference(record, "guide", "right", "imported", "adversarial")
    return None if found is None else found.low > 0


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
    still, apart = (STILL, APART) if null is None else (null.most_moved, null.furthest)
    near = [name for name in names if tvd[name].mean <= still]
    if not near:
        return Reached(None, None, None, False, null)
    best = max(near, key=lambda name: jsd[name].mean)
    return Reached(best, jsd[best], tvd[best], jsd[best].low > apart + NOTICED, null)


def adversary(record: Record) -> str | None:
    """How far attention can be trained away at which cost, compared with the seeds."""
    found = reached(record)
    if found is None:
        return None
    null = _null(found.null)
    if found.name is None or found.jsd is None or found.tvd is None:
        tvd = named(record, "trained_adversary", "tvd", "λ=")
        least = min(tvd, key=lambda name: tvd[name].mean)
        return f"No adversary kept the predictions: the closest ({least}) is at a TVD of {spread(tvd[least])}. {null}"
    right = subjects(record, "trained_adversary", "right").get(found.name)
    cost = f"; it is right on {percent(right.mean)} of texts, the audited model on {_own(record)}" if right else ""
    told = (
        f"An adversary ({found.name}) was trained to attend at a JSD of {spread(found.jsd)} from the audited model, "
        f"where {MAX_JSD:.2f} is the most, with predictions at a TVD of {spread(found.tvd)} (n = "
        f"{count(found.tvd.n)}){cost}. {null}"
    )
    if found.null is None:
        return told
    return f"{told} So attention was {'' if found.beyond else 'not surely '}trained further away than a seed puts it."


def _null(null: Cloud | None) -> str:
    if null is None:
        return f"Without models of other seeds a TVD up to {STILL:g} was held to be no change."
    few = " They are few for a null." if null.small else ""
    return (
        f"Seeds alone ({len(null.jsd)}) reach a JSD of {number(null.furthest, 2)} and a TVD of "
        f"{number(null.most_moved, 2)}.{few}"
    )


def _own(record: Record) -> str:
    """The accuracy of the audited model on the audited texts."""
    labels, predicted = (record.examples[name].to_numpy() for name in ("label", "predicted"))
    return percent(float((labels == predicted).mean())) if len(labels) else "–"


def _counted(number_of: int) -> str:
    return "one other seed" if number_of == 1 else f"{number_of} other seeds"


def _range(values: list[float], scale: int = 1) -> str:
    """From the least to the most, or one number where they read the same; shares as percentages with scale 100."""
    low, high = (number(scale * value, 2 if scale == 1 else 1) for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _inside(text: str) -> str:
    """A clause that stands in brackets, with its own brackets made square."""
    return text.replace("(", "[").replace(")", "]")
