"""Decision flips under erased attention: rankings of items beside the exact smallest set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.audits.cases import Answer, BaseAudit, Case, Numbers, PerText, numpy, of_subject, without_pooling
from assay.audits.single_weight import drawn, rankings
from assay.audits.statements import lead
from assay.intervene.pooled_attention import Pooling, flips, leave_one_out, ranked, smallest
from assay.lookup import Extent, bounded, extents, items, known
from assay.records import Record
from assay.stories import Conclusion, Drawing, Grid, Measure, Rule, Story
from assay.types import PooledModel, over_tokens
from assay.writing import count, evidence, interval, listed, number, percent

OPTIMUM = "optimum"
RANKINGS = {
    OPTIMUM: "smallest set (exact)",
    "attention": "attention",
    "gradient": "gradient",
    "product": "gradient × attention",
    "leave_one_out": "leave one out",
    "random": "random order",
}
"""The rankings of the audit, and what they are called in figures and tables; those that need the same stand so."""

BOXES = {"called": RANKINGS, "exact": OPTIMUM, "never": "never"}
STORY = Story(
    title="How many {items} must go before the decision changes?",
    question=(
        "How many of the attended items must be erased before the decision changes, and how many would have been "
        "enough?"
    ),
    measures=(
        Measure("items", "attended items"),
        Measure(
            "erased",
            "items erased until the decision changes, all where it never does (share)",
            better="low",
            main=True,
        ),
        Measure(
            "erased_mass",
            "attention erased until the decision changes, all where it never does (share)",
            better="low",
        ),
        Measure("never", "texts whose decision never changes (share)", better="low", main=True),
        Measure(
            "too_many",
            "items erased beyond the smallest set, in texts whose decision some set changes",
            better="low",
            main=True,
        ),
        Measure("optimal", "texts in which it is as short as possible (share)", better="high"),
        Measure("wins", "texts in which the first needs fewer items (share)"),
        Measure("fraction", hidden=True),
        Measure("mass", hidden=True),
        Measure("excess", hidden=True),
    ),
    drawings=(
        Drawing(
            "boxes",
            "minimal_set",
            (
                "Share of the {items} erased, in the order of each ranking, until the decision first changes. "
                "All boxes hold the same texts: where a ranking never changes the decision everything is "
                "erased, and the text lies at the right end; how many these are stands beside the median. "
                "Box: the middle half of the texts; thick tick: median; thin line: to the last text within "
                "1.5 box lengths. On top is what erases least on average; the dashed line is the median of "
                "the smallest set."
            ),
            BOXES | {"measure": "erased", "older": "fraction", "title": "{items} erased until the decision changes"},
        ),
        Drawing(
            "boxes",
            "minimal_set_mass",
            (
                "The same as the share of all attention that lay on what was erased by then; all of it where "
                "the decision never changes."
            ),
            BOXES | {"measure": "erased_mass", "older": "mass", "title": "attention erased until it changes"},
        ),
        Drawing(
            "matrix",
            "minimal_set_wins",
            options={
                "measure": "wins",
                "title": "Fewer erasures",
                "reading": "the share of texts in which the ranking of the row changes the decision with fewer "
                "{items} than that of the column; what is missing to 1 between a pair are ties",
                "called": RANKINGS,
                "of": "rankings",
                "directed": True,
            },
        ),
    ),
    reading=(
        "Attention is set to zero in the order of each ranking, the highest first, until the model decides "
        "otherwise. The smallest set is not searched for but computed: no fewer {items} change the decision, "
        "so in no text a ranking can do better, and what it needs beyond are {items} that it puts too high. "
        "Gradient is the slope of the decision’s probability at the attention weights, not the explainer of "
        "that name. The share of attention that is erased on the way says how much of it can go without any "
        "effect on the decision. Every ranking is measured on the same texts. Where it never changes the "
        "decision, everything was erased and it did not help, so the text counts as 100 % and, where a "
        "smaller set does change the decision, as all {items} beyond that; the table tells how many these "
        "are. The order is that of the mean share, which is the area over the curve of decisions changed by "
        "the time that so many {items} are erased. The random order is drawn once for each text."
    ),
    rule=Rule(
        "Passes when going down the attention surely changes the decision sooner than a random order "
        "(two-sided sign test over texts, p ≤ 0.05), fails when it does not. This is a low bar."
    ),
    about="attention",
    terms=("smallest set",),
)


@dataclass(frozen=True)
class MinimalSet(BaseAudit):
    """The share of items, and of attention, erased down each ranking until the decision changes, beside the optimum.

    Erased weights are 0 and the others are renormalised; when nothing is left, the decoder reads the zero vector. The
    rankings are those of the paper (attention, the signed gradient of the decision's probability, their product,
    random) and leave_one_out: how much that probability drops when the item alone is erased. The random one is a single
    draw, which depends on the text and the seed alone; all else is exact, and the optimum is the true smallest set.

    Every ranking is measured on the same texts, those with several items, also where it never changes the decision:
    then all items went and it did not help. `erased` is the share of items that went, 1 in such a text, so its mean is
    the area over the curve of decisions changed by the time that a share of the items is erased; in survival analysis
    it is the mean restricted to 1. `erased_mass` is the share of attention on them, and `never` counts such texts.
    `too_many` items beyond the smallest set, `optimal` and `wins` are over all texts whose decision some set changes;
    a ranking that never does took all items there, is not optimal, and loses to any that does.
    """

    # differs from Serrano and Smith (2019): section 5.1 leaves out the texts whose decision a ranking never changes

    seed: int = 0
    reliability: ClassVar[str] = "exact"
    story: ClassVar[Story] = STORY
    paper: str = "Serrano and Smith (2019), section 5, figures 5 and 6"

    unfit = staticmethod(without_pooling)

    def conclude(self, record: Record) -> Conclusion:
        table = _table(record)
        return Conclusion(_answer(record), *_grade(record), tables=(table,) if table.rows else ())

    def __call__(self, case: Case) -> Answer:
        assert isinstance(case.model, PooledModel)
        pooling = Pooling.of(case.values, case.weights, case.items, case.empty)
        scores = rankings(pooling) | {"random": drawn(case, self.seed), "leave_one_out": leave_one_out(pooling)}
        down = flips(pooling, ranked(torch.stack([*scores.values()], 1), pooling.mask))
        best = smallest(pooling)
        found = Erased(
            [*scores, OPTIMUM],
            _beside(down.flipped, best.flipped) > 0,
            _beside(down.count, best.count),
            _beside(down.mass, best.mass),
            numpy(case.items.sum(-1)),
        )
        shown = over_tokens(case.model, best.erased.double(), case.batch)
        return Answer(found.measures(), {"smallest_set": numpy(shown)})


@dataclass(frozen=True)
class Erased:
    """What R rankings and, last, the optimum erase until the decision changes: all where it never does."""

    names: Sequence[str]
    flipped: Bool[np.ndarray, "B R"]
    count: Float[np.ndarray, "B R"]
    mass: Float[np.ndarray, "B R"]
    items: PerText

    def measures(self) -> Numbers:
        """Every measure; none of a text with a single item."""
        needed = np.where(self.flipped, self.count, np.inf)
        some = self.flipped[:, -1]
        measures = {"items": self.items}
        for place, name in enumerate(self.names):
            shares = {
                "erased": self.count[:, place] / np.maximum(self.items, 1),
                "erased_mass": self.mass[:, place],
                "never": np.where(self.flipped[:, place], 0.0, 1.0),
            }
            if name != OPTIMUM:
                shares["too_many"] = np.where(some, self.count[:, place] - self.count[:, -1], np.nan)
                shares["optimal"] = np.where(some, needed[:, place] <= needed[:, -1], np.nan)
            measures |= of_subject(name, shares)
        for one, other in permutations(range(len(self.names) - 1), 2):
            wins = np.where(some, needed[:, one] < needed[:, other], np.nan)
            measures[f"wins:{self.names[one]}~{self.names[other]}"] = wins
        return {name: np.where(self.items > 1, values, np.nan) for name, values in measures.items()}


def _beside(rankings: Tensor, optimum: Tensor) -> Float[np.ndarray, "B R"]:
    return numpy(torch.cat([rankings, optimum[:, None]], 1))


OLDER = {"erased": "fraction", "erased_mass": "mass"}
"""What older records hold of the texts whose decision a ranking changes, and of no others."""


def shares(record: Record, measure: str = "erased") -> dict[str, Extent]:
    """For each ranking the share of items, or of attention (`erased_mass`), that it erases of each text."""
    return extents(record, "minimal_set", RANKINGS, (measure, OLDER[measure], "never"))


def _answer(record: Record) -> str:
    """What the decision hangs on at least, the rankings by what they erase, and how often attention erases least."""
    found = shares(record)
    if OPTIMUM not in found or "attention" not in found:
        return ""
    noun = items(record)
    halves = {name: percent(float(np.median(extent.erased))) for name, extent in found.items()}
    told = (
        f"To change the decision one must erase at least {halves[OPTIMUM]} of the {noun.many} (median, exact); going "
        f"down the attention takes {halves['attention']}"
    )
    told += f", a random order {halves['random']}" if "random" in halves else ""
    told += f".{_everything(record, found[OPTIMUM])} {_order(found)}"
    optimal, excess = (known(record, "minimal_set", measure) for measure in ("optimal", "too_many"))
    if optimal is None or excess is None:
        return told
    ends = interval(100 * optimal.low, 100 * optimal.high, 1)
    return (
        f"{told} Attention is as short as possible in {percent(optimal.mean)} of the texts whose decision some set "
        f"changes (95 % interval {ends} %, n = {count(optimal.n)}) and takes {number(excess.mean, 1)} {noun.many} "
        f"more than needed on average ({evidence(excess.low, excess.high, excess.n)})."
    )


def _order(found: Mapping[str, Extent]) -> str:
    """The rankings by the mean share that they erase, with the texts that each never changes."""
    told, lost = [], False
    for name, extent in found.items():
        never = bool(extent.never.any())
        some = f" (never in {percent(float(extent.never.mean()))})" if never else ""
        told.append(f"{RANKINGS[name]} {percent(float(extent.erased.mean()))}{some}")
        lost = lost or never
    total = count(max(len(each.erased) for each in found.values()))
    counted = ", everything where the decision never changes" if lost else ""
    return f"Mean share erased, of all {total} texts{counted}: {listed(told)}."


def _everything(record: Record, optimum: Extent) -> str:
    """In how many texts nothing short of erasing everything changes the decision, if in any."""
    none, whole = int(optimum.never.sum()), int((optimum.erased == 1).sum())
    some = f"{count(whole)} of {count(len(optimum.never))} texts nothing short of all {items(record).many} does"
    return f" In {some}{f', in {count(none)} not even that' if none else ''}." if whole else ""


def _table(record: Record) -> Grid:
    """A row for each ranking, the one that erases least first, beside the smallest set."""
    noun = items(record)
    columns = (
        "ranking",
        f"{noun.many} erased, median",
        "mean",
        "never changes the decision",
        f"{noun.many} too many, mean",
        "95 % interval",
        "as short as possible",
    )
    rows = [(RANKINGS[name], *_compared(record, name, extent)) for name, extent in shares(record).items()]
    return Grid(columns, tuple(rows), first_number=1)


def _compared(record: Record, name: str, extent: Extent) -> tuple[str, ...]:
    """What a ranking erases, where it never changes the decision, and how it compares with the smallest set."""
    excess, optimal = (known(record, "minimal_set", measure, name) for measure in ("too_many", "optimal"))
    never = extent.never
    return (
        percent(float(np.median(extent.erased))),
        percent(float(extent.erased.mean())),
        f"{count(int(never.sum()))} of {count(len(never))}" if len(never) else "–",
        *(("–", "–") if excess is None else (number(excess.mean, 2), interval(excess.low, excess.high, 2))),
        "–" if optimal is None else percent(optimal.mean),
    )


def _grade(record: Record) -> tuple[str, str]:
    ahead, behind = (bounded(record, "minimal_set", "wins", pair) for pair in ("attention~random", "random~attention"))
    if ahead is None or behind is None:
        return "", ""
    why = (
        f"Attention needs fewer erasures than a random order in {percent(ahead.mean)} of texts, more in "
        f"{percent(behind.mean)} ({evidence(ahead.low, ahead.high, ahead.n)} for the first share)"
    )
    lost = [bounded(record, "minimal_set", "never", name) for name in ("attention", "random")]
    never = [percent(each.mean) for each in lost if each is not None]
    why += f"; it never changes the decision in {never[0]}, that order in {never[1]}." if len(never) == 2 else "."
    if ahead.mean == behind.mean == 0:
        return "warn", why
    return "pass" if lead(ahead, behind) > 0 else "fail", why
