"""Sufficiency and necessity of the highest words, while the others are redrawn from other texts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.audits.cases import (
    Answer,
    BaseAudit,
    Case,
    ItemValues,
    PerText,
    Resources,
    Scores,
    by_subject,
    mean_defined,
    numpy,
)
from assay.audits.statements import best
from assay.audits.word_erasure import PerRanking, Ranks, distinct, ranked, shuffled
from assay.data.batches import collate
from assay.errors import AssayError
from assay.explainers.baselines import mixed, text_numbers
from assay.explainers.integrated import IntegratedGradients
from assay.explainers.needs import unfit
from assay.explainers.occlusion import leave_one_out
from assay.metrics.erasure import REACHED, economy, shortest
from assay.models.erasure import Pool, redrawn_probabilities
from assay.records import CHANCE, Record
from assay.stories import Conclusion, Drawing, Measure, Rule, Story
from assay.types import Batch, Explainer

SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
"""How many of the highest words are kept or drawn anew: nobody reads further down a ranking."""

Words = Int[Tensor, "B D T"]
"""The number of a word of the pool, for each draw and position."""

TRIED = 6  # times as many texts are looked at, at most, as are read
AT_ONCE = 1000  # texts whose numbers are made together
FIRST_SHUFFLE = 1 << 33  # seeds of random rankings start here, far from those of explainers and of other audits
DECIDES = 0.25
"""The words of a text must make its decision so much more probable than words drawn from other texts do."""


STORY = Story(
    title="Do the words that are shown decide, whatever the others are?",
    question="Do the words that an explanation names decide, whatever the other words are?",
    measures=(
        Measure(
            "economy",
            "economy of the highest words",
            better="high",
            column="economy",
            place=1,
            help=(
                "how few of its highest words it takes to keep the decision, and to lose it, beside the "
                "ranking that takes the fewest, while words of other texts stand in all other places"
            ),
            main=True,
        ),
        Measure(
            "sufficient",
            "fewest words that keep the decision, as a share of its own",
            better="high",
        ),
        Measure(
            "necessary",
            "fewest words that the decision is lost without, as a share of its own",
            better="high",
        ),
    ),
    drawings=(
        Drawing(
            "dots",
            "deciding",
            (
                "How few words each explainer takes to keep the decision, and to lose it, beside the ranking "
                "that takes the fewest, with 95 % intervals. The dashed line is where random rankings are."
            ),
            {
                "measures": {"sufficient": "to keep the decision", "necessary": "to lose it"},
                "title": "fewest words, as a share of its own",
                "drawn": "best",
            },
        ),
    ),
    reading=(
        "Words give way to words drawn from other audited texts, so that texts stay of the kind that the "
        "model knows and the decision is not held by what is left out. A good ranking takes few of its "
        "highest words: with them alone the decision stays, and with them drawn anew it goes. 1 means as few "
        "as the better one of leave-one-out and integrated gradients takes, or fewer; 0.5 twice as many. Only "
        "texts count in which the words decide: against words drawn for all of them they raise the "
        "probability of the decision by a quarter at least. The mean of both, the economy, is what the "
        "verdict is read off."
    ),
    rule=Rule(
        "An explainer passes from a probability of 0.77 on, fails below 0.36 or where it is not surely "
        "more economical than random rankings, and gets a warning in between. With a model that is unlike "
        "those of the bank a pass takes the whole interval. With fewer than 30 texts nothing is graded.",
        measure="economy",
        sentence="Economy of {name}: {found}; {likelihood} such explainers had found the words.",
    ),
    terms=("economy", "trust"),
)


@dataclass(frozen=True)
class Deciding(BaseAudit):
    """How few of its highest words a ranking needs for the decision, beside the ranking that needs the fewest.

    Words give way to words of the other audited texts, so that texts stay of the kind that the model knows, and the
    decision is not held by what is left out. A set of words is *sufficient* where it alone, all other words drawn anew,
    gives `REACHED` of what the whole text adds to the probability of the predicted class; it is *necessary* where
    that much is lost when its words alone are drawn anew. `sufficient` and `necessary` are the fewest highest words
    that leave-one-out or integrated gradients need, as a share of what this ranking needs, at most 1; `economy` is
    their mean. Numbers are means over `draws`, of the first `texts` texts in the order of the seed in which the words
    decide at all, of `TRIED` times as many at most; nan in the others. `shuffles` random rankings show what chance
    reaches.
    """

    texts: int = 48
    draws: int = 8
    shuffles: int = 3
    seed: int = 0
    pool: Pool | None = field(default=None, repr=False, compare=False)
    chosen: Int[Tensor, " N"] | None = field(default=None, repr=False, compare=False)  # numbers of the drawn texts
    story: ClassVar[Story] = STORY
    paper: str = "this tool; resampling of words: Hase et al. (2021), section 3"

    def __post_init__(self) -> None:
        if min(self.texts, self.draws, self.shuffles) < 1:
            raise AssayError("Texts, draws and shuffles of deciding are whole numbers from 1.")

    def prepared(self, resources: Resources) -> Deciding:
        """With the words to draw from, and the texts that are read."""
        starts, classes = range(0, len(resources.rows), AT_ONCE), len(resources.model.classes)
        numbers = torch.cat(
            [text_numbers(collate(resources.rows[start : start + AT_ONCE], classes)) for start in starts]
        )
        order = mixed(numbers + mixed(torch.tensor(self.seed + 1))).argsort()
        pool = Pool.of(resources.rows).to(resources.model.device)
        chosen: list[int] = []
        for start in range(0, min(len(order), TRIED * self.texts), self.texts):
            tried = order[start : start + self.texts].tolist()
            batch = collate([resources.rows[place] for place in tried], classes).to(resources.model.device)
            words = drawn(batch, pool, self.draws, self.seed)
            whole, empty = _ends(Case(resources.model.network, batch, {}), pool, words)
            chosen += np.array(tried)[whole - empty >= DECIDES].tolist()
            if len(chosen) >= self.texts:
                break
        return replace(self, pool=pool, chosen=numbers[chosen[: self.texts]])

    def conclude(self, record: Record) -> Conclusion:
        return Conclusion(best(record, "deciding", "economy", "an economy of"))

    def __call__(self, case: Case) -> Answer:
        assert self.pool is not None and self.chosen is not None
        chosen = torch.isin(text_numbers(case.batch), self.chosen.to(case.batch.ids.device))
        names = [*case.scores, CHANCE]
        columns = {f"{measure}:{name}": np.full(len(case.batch), np.nan) for measure in MEASURES for name in names}
        if chosen.any():
            for name, values in self._measured(case, chosen).items():
                columns[name][chosen.cpu().numpy()] = values
        return Answer(columns)

    def _measured(self, case: Case, chosen: Bool[Tensor, " B"]) -> dict[str, np.ndarray]:
        """The measures of the texts that are read."""
        assert self.pool is not None
        read = case.part(chosen)
        chance = shuffled(read, FIRST_SHUFFLE + self.seed * self.shuffles, self.shuffles)
        found = measured(read, self.pool.to(chosen.device), self.draws, self.seed, chance)
        size = len(read.scores)
        columns: dict[str, np.ndarray] = {}
        for measure, values in found.items():
            own = [*values[:, :size].T, values[:, size:].mean(-1)]
            columns |= by_subject(measure, dict(zip([*read.scores, CHANCE], own, strict=True)))
        return columns


def measured(
    case: Case, pool: Pool, draws: int = 8, seed: int = 0, more: Sequence[Tensor] = ()
) -> dict[str, PerRanking]:
    """Each of `MEASURES` for all scores of the case, and for those of `more` rankings after them."""
    scores = [*case.scores.values(), *more, *_references(case)]
    ranks, missing = ranked(scores, case.mask)
    own = len(case.scores) + len(more)
    found = measures(curves(case, pool, ranks, draws, seed, REACHED), np.arange(len(scores)) >= own, missing)
    return {name: values[:, :own] for name, values in found.items()}


def _references(case: Case) -> list[Scores]:
    """The scores that every ranking is held against, made where they were not asked for."""
    found = []
    for name, explainer in REFERENCES.items():
        if name in case.scores:
            found.append(case.scores[name])
        elif unfit(explainer, case.model) is None:
            found.append(explainer(case.model, case.batch, case.predicted))
    return found


MEASURES = ("economy", "sufficient", "necessary")
REFERENCES: dict[str, Explainer] = {"leave_one_out": leave_one_out, "integrated_gradients": IntegratedGradients()}


def measures(
    given: Curves, known: Bool[np.ndarray, " R"], missing: Bool[np.ndarray, "B R"] | None = None
) -> dict[str, PerRanking]:
    """Each of `MEASURES` for every ranking, beside those that are `known`; one with a `missing` score has none."""
    added = given.whole - given.empty
    some = added >= DECIDES
    divisor = np.where(some, added, 1)[:, None, None]
    undefined = ~some[:, None] if missing is None else ~some[:, None] | missing
    found: dict[str, PerRanking] = {}
    for name, rise in (
        ("sufficient", given.only - given.empty[:, None, None]),
        ("necessary", given.whole[:, None, None] - given.without),
    ):
        needed = shortest(rise / divisor, SIZES)
        reached = (needed[:, known] <= max(SIZES)).any(-1, keepdims=True)  # else nothing is known of this text
        found[name] = np.where(undefined | ~reached, np.nan, economy(needed, needed[:, known]))
    return {"economy": mean_defined([found["sufficient"], found["necessary"]]), **found}


@dataclass(frozen=True)
class Curves:
    """The probability of the decision while R rankings of words are followed, K sizes deep, as means over draws.

    `only` where the highest words are kept and all others are drawn from other texts, `without` where the highest words
    are drawn; `whole` for the text itself, and `empty` where all words are drawn.
    """

    whole: PerText
    empty: PerText
    only: Float[np.ndarray, "B R K"]
    without: Float[np.ndarray, "B R K"]


def curves(case: Case, pool: Pool, ranks: Ranks, draws: int, seed: int, enough: float = math.inf) -> Curves:
    """The curves of these rankings; draws depend on the text and the seed alone, and are the same for all rankings.

    A ranking whose words account for the share `enough` of what the text adds is followed no further: what comes after
    is what was read last. So is one of a text whose words hardly decide, unless all is asked for.
    """
    words = drawn(case.batch, pool, draws, seed)
    whole, empty = _ends(case, pool, words)
    rows, rankings, tokens = ranks.shape
    added = (whole - empty)[:, None, None]
    divisor = np.where(added >= DECIDES, added, 1)
    going = np.broadcast_to((added >= DECIDES) | math.isinf(enough), (rows, rankings, 2))
    last = np.stack(np.broadcast_arrays(empty[:, None], whole[:, None]), -1).repeat(rankings, 1)
    read = np.empty((rows, rankings, 2, len(SIZES)))
    for step, size in enumerate(SIZES):
        top = ranks < size
        sets = np.stack([top, ~top], 2) & going[..., None]  # those that are followed no further are one set
        found = _sure(case, pool, sets.reshape(rows, -1, tokens), words).reshape(rows, rankings, 2)
        last = np.where(going, found, last)
        read[..., step] = last
        risen = np.stack([last[..., 0] - empty[:, None], whole[:, None] - last[..., 1]], -1)
        going = going & (risen / divisor < enough)
    return Curves(whole, empty, read[:, :, 0], read[:, :, 1])


def _ends(case: Case, pool: Pool, words: Words) -> tuple[PerText, PerText]:
    """The probability of the decision for the whole text, and where all of its words are drawn."""
    whole = np.take_along_axis(numpy(case.probabilities), case.predicted.cpu().numpy()[:, None], -1)[:, 0]
    return whole, _sure(case, pool, np.zeros((len(case.batch), 1, case.batch.ids.shape[1]), dtype=bool), words)[:, 0]


def drawn(batch: Batch, pool: Pool, draws: int, seed: int) -> Words:
    """A word of the pool for each draw and position, as its number; it depends on the text and the seed alone."""
    device = batch.ids.device
    numbers = torch.arange(1, draws + 1, device=device) + (seed << 20)
    texts = mixed(text_numbers(batch)[:, None] + mixed(numbers))
    positions = mixed(torch.arange(1, batch.ids.shape[1] + 1, device=device))
    return (mixed(texts[..., None] + positions) & ((1 << 62) - 1)) % len(pool)


def _sure(case: Case, pool: Pool, kept: Bool[np.ndarray, "B N T"], words: Words) -> ItemValues:
    """The mean probability of the decision over the draws of what is not kept; equal sets are read once."""
    whose, left, place = distinct(kept, case.mask)
    whose, left = whose.to(words.device), left.to(words.device)
    draws = words.shape[1]
    example, sets = whose.repeat_interleave(draws), left.repeat_interleave(draws, 0)
    read = redrawn_probabilities(case.quick, case.batch, pool, example, sets, words[whose].flatten(0, 1))
    decided = numpy(read.gather(-1, case.predicted[example][:, None]))
    return np.asarray(decided.reshape(-1, draws).mean(-1)[place].reshape(kept.shape[:2]))
