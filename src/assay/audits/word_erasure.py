"""Predictions without the highest words, and with them alone, beside those of random rankings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.audits.cases import Answer, BaseAudit, Case, Numbers, Scores, TokenMask, by_subject, numpy
from assay.audits.statements import beating, best, rivals, tested
from assay.errors import AssayError
from assay.explainers.baselines import Random
from assay.metrics import erasure
from assay.models.erasure import version_probabilities
from assay.records import CHANCE, Record
from assay.stories import Conclusion, Drawing, Measure, Rule, Story
from assay.types import BlankModel

Ranks = Int[np.ndarray, "B R T"]
"""The rank of each word under R rankings."""

PerRanking = Float[np.ndarray, "B R"]
AtPoints = Float[np.ndarray, "B R G"]
"""A number of each ranking at G points, from nothing erased to everything."""

Probabilities = Float[np.ndarray, "B R G C"]


def shuffled(case: Case, first: int, count: int) -> list[Scores]:
    """The scores of `count` random rankings, with seeds from the `first` on."""
    return [Random(seed)(case.model, case.batch, case.predicted) for seed in range(first, first + count)]


def ranked(scores: Sequence[Scores], mask: TokenMask) -> tuple[Ranks, Bool[np.ndarray, "B R"]]:
    """The rank of each word under each of these scores, and where a score is missing."""
    values = [numpy(each) for each in scores]
    missing = [(np.isnan(each) & mask).any(-1) for each in values]
    return np.stack([erasure.ranks(each, mask) for each in values], 1), np.stack(missing, 1)


def distinct(
    kept: Bool[np.ndarray, "B N T"], mask: TokenMask
) -> tuple[Int[Tensor, " V"], Bool[Tensor, "V T"], Int[np.ndarray, " M"]]:
    """The different sets of words of each text, each once: of which text, which words; and which one each set is."""
    example = np.arange(len(kept)).repeat(kept.shape[1])
    versions = (kept & mask[:, None]).reshape(len(example), -1)
    bits = np.concatenate([example[:, None].view(np.uint8), np.packbits(versions, axis=-1)], 1)
    keys = np.ascontiguousarray(bits).view(f"V{bits.shape[1]}")[:, 0]
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    return torch.from_numpy(example[first]), torch.from_numpy(versions[first]), place


FIRST_SHUFFLE = 1 << 32  # seeds of random rankings start here, far from those of any explainer
GAINS = {"comprehensiveness": True, "sufficiency": False, "flip": False, "morf": False}
"""The measures that are compared with chance, and whether a high value is the good one."""


@dataclass(frozen=True)
class Curves:
    """What the model answers for R rankings as more and more tokens are taken away, G points from none to all.

    `without` the highest tokens, with `only` the highest, and, of the E explainers alone, with the highest `masked`
    where the model has a mask.
    """

    predicted: Int[np.ndarray, " B"]
    points: Int[np.ndarray, "B G"]
    without: Probabilities
    only: Probabilities
    masked: Float[np.ndarray, "B E G C"] | None

    @property
    def share(self) -> Float[np.ndarray, "B 1 G"]:
        """The share of tokens at each point."""
        return np.asarray(self.points / self.points[:, -1:])[:, None]

    def chosen(self, answers: Probabilities, others: bool = False) -> AtPoints:
        """The probability of the class that is predicted for the whole text, or of all others together."""
        wanted = (np.arange(answers.shape[-1]) == self.predicted[:, None]) != others
        return np.asarray((answers * wanted[:, None, None]).sum(-1))

    def at(self, values: AtPoints, sizes: Int[np.ndarray, "B K"]) -> Float[np.ndarray, "B R K"]:
        """The values at these numbers of tokens."""
        places = (self.points[:, :, None] == sizes[:, None]).argmax(1)
        return np.take_along_axis(values, places[:, None], -1)

    def flips(self, answers: Probabilities) -> tuple[PerRanking, Bool[np.ndarray, "B R"]]:
        """The share of tokens at which the decision first changes, and whether it does."""
        return erasure.first_flip(answers.argmax(-1) != self.predicted[:, None, None], self.share)


STORY = Story(
    title="Does the prediction need the words that are shown?",
    question="Does the prediction change when the words an explanation names are taken away?",
    measures=(
        Measure(
            "comprehensiveness",
            better="high",
            column="compre\u00adhensiveness",
            short="compreh.",
            place=2,
            help="how far the probability of the predicted class falls without the highest words",
            main=True,
        ),
        Measure("comprehensiveness_normalised", better="high"),
        Measure(
            "sufficiency",
            better="low",
            column="sufficiency",
            short="suffic.",
            place=3,
            help="how far that probability falls when the highest words alone are left",
            main=True,
        ),
        Measure("sufficiency_normalised", better="low"),
        Measure(
            "flip",
            "words deleted until the decision changes, all where it never does (share)",
            better="low",
            column="flip",
            place=4,
            help="share of words to delete until the decision first changes, all where it never does",
            main=True,
        ),
        Measure(
            "flip_mask",
            "words masked until the decision changes, all where it never does (share)",
            better="low",
        ),
        Measure("flipped", "texts whose decision changes at all (share)", better="high"),
        Measure(
            "morf",
            "area, highest words first (MoRF)",
            better="low",
            column="MoRF",
            place=5,
            help="area under the probability while the highest words go first",
            main=True,
        ),
        Measure("lerf", "area, lowest words first (LeRF)", better="high"),
        Measure("log_odds", "log-odds", better="high"),
    ),
    drawings=(
        Drawing(
            "dots",
            "erasure",
            (
                "Comprehensiveness beyond that of random rankings (the dashed line at 0), with 95 % "
                "intervals; p from a paired test of the mean."
            ),
            {
                "measures": {"comprehensiveness_gain": ""},
                "title": "probability lost beyond random words",
                "null": 0.0,
                "drawn": "best",
            },
        ),
        Drawing(
            "curves",
            "erasure_by_share",
            (
                "Fall of the probability as more of the highest words go, for the five explainers with the "
                "largest falls at most, and for random words (dashed)."
            ),
            {
                "measure": "comprehensiveness",
                "best": "comprehensiveness",
                "title": "probability lost without them",
            },
        ),
    ),
    reading=(
        "If the words that an explainer ranks highest are the reason, the prediction should fall without them "
        "(comprehensiveness, high is good), stay with them alone (sufficiency, low is good), and change "
        "after few deletions (flip, low is good; a decision that never changes counts as all words). A text "
        "with words missing is not a text that the model has learnt, so part of any fall is surprise; this is "
        "why each number stands beside that of random words."
    ),
    rule=Rule(
        "Passes when the 95 % interval of the gain over random words lies above 0, fails when nothing of "
        "it does. In between it gets a warning. The measure is comprehensiveness.",
        measure="comprehensiveness_gain",
        sentence="Beyond random words the probability falls by {found} without the words that {name} ranks highest.",
    ),
    terms=("comprehensiveness", "sufficiency", "MoRF, LeRF"),
)


@dataclass(frozen=True)
class Erasure(BaseAudit):
    """Comprehensiveness, sufficiency, log-odds, decision flips, MoRF and LeRF areas, beside those of random rankings.

    Tokens are ranked by their scores as they are, the highest first; of equal scores the earlier token comes first.
    p is the probability of the predicted class, and words are taken away as `removal` says. Comprehensiveness is the
    drop of p without the highest ceil(threshold × tokens), sufficiency that with only those; both are means over the
    thresholds (`metrics.erasure.aopc` names the variants). The areas are those under p as tokens go, by share of
    tokens, and flips the share at which the decision first changes: both are read after every token in texts of up to
    `prefixes` tokens, else after as many evenly spread numbers of them, and those of the thresholds; a flip is then
    rounded up to the next of these. Random rankings, `shuffles` a text, depend on the text and the seed alone; a gain
    is the difference from their mean, positive where the explainer is better. Flips by masking have no such null, and
    are read where they are `masked`.
    """

    thresholds: tuple[float, ...] = erasure.THRESHOLDS
    removal: str = "delete"
    shuffles: int = 5
    prefixes: int = 12
    masked: bool = True
    seed: int = 0
    story: ClassVar[Story] = STORY
    paper: str = "DeYoung et al. (2020), section 4.2; Samek et al. (2017); Serrano and Smith (2019)"

    def __post_init__(self) -> None:
        if min(self.shuffles, self.prefixes) < 1:
            raise AssayError("Shuffles and prefixes of erasure are whole numbers from 1.")

    def conclude(self, record: Record) -> Conclusion:
        gains = rivals(record, "erasure", "comprehensiveness_gain")
        if not gains:
            return Conclusion(best(record, "erasure", "comprehensiveness", "a comprehensiveness of"))
        leader = max(gains, key=lambda f: f.mean)
        return Conclusion(
            f"Best is {leader.subject}: without the words that it ranks highest the probability of the predicted class "
            f"falls by {tested(leader)} more than without random words. {beating(gains)}"
        )

    def __call__(self, case: Case) -> Answer:
        chance = shuffled(case, FIRST_SHUFFLE + self.seed * self.shuffles, self.shuffles)
        ranks, missing = ranked([*case.scores.values(), *chance], case.mask)
        measures = self._measures(self._read(case, ranks))
        found = {name: np.where(missing, np.nan, values) for name, values in measures.items()}
        return Answer(_named(found, list(case.scores)))

    def _read(self, case: Case, ranks: Ranks) -> Curves:
        points = erasure.grid(case.batch.lengths.cpu().numpy(), self.thresholds, self.prefixes)
        top = ranks[:, :, None] < points[:, None, :, None]
        both = _answers(case, np.concatenate([~top, top], 1), self.removal)
        masked = self.masked and isinstance(case.model, BlankModel)
        return Curves(
            predicted=case.predicted.cpu().numpy(),
            points=points,
            without=both[:, : ranks.shape[1]],
            only=both[:, ranks.shape[1] :],
            masked=_answers(case, ~top[:, : len(case.scores)], "mask") if masked else None,
        )

    def _measures(self, curves: Curves) -> dict[str, PerRanking]:
        """Every measure of every ranking."""
        sizes = erasure.sizes(curves.points[:, -1], self.thresholds)
        without, only = curves.chosen(curves.without), curves.chosen(curves.only)
        whole, empty = without[..., 0], without[..., -1]
        odds = erasure.log_odds(without, curves.chosen(curves.without, others=True))
        flip, flipped = curves.flips(curves.without)
        measures = {
            "log_odds": erasure.aopc(odds[..., :1] - curves.at(odds, sizes)),
            "flip": flip,
            "flipped": flipped.astype(np.float64),
            "morf": erasure.area(without, curves.share),
            "lerf": erasure.area(only, curves.share),  # read from its end: the share that is left, not that removed
        }
        if curves.masked is not None:
            measures["flip_mask"] = np.full_like(flip, np.nan)
            measures["flip_mask"][:, : curves.masked.shape[1]], _ = curves.flips(curves.masked)
        for name, values in (("comprehensiveness", without), ("sufficiency", only)):
            drops = whole[..., None] - curves.at(values, sizes)
            measures[name] = erasure.aopc(drops)
            measures[f"{name}_normalised"] = erasure.normalised(measures[name], whole, empty)
            measures |= {f"{name}@{share:g}": drops[..., place] for place, share in enumerate(self.thresholds)}
        return measures


def _answers(case: Case, kept: Bool[np.ndarray, "B R G T"], removal: str) -> Probabilities:
    """The probabilities when these tokens are left; what several rankings leave of a text is read once."""
    device = case.batch.ids.device
    sets = kept.reshape(len(kept), -1, kept.shape[-1])
    whose, left, place = distinct(sets, case.mask)
    read = version_probabilities(case.quick, case.batch, whose.to(device), left.to(device), removal)
    return np.asarray(numpy(read)[place].reshape(*kept.shape[:3], -1))


def _named(measures: dict[str, PerRanking], names: Sequence[str]) -> Numbers:
    """One column for each measure and explainer, for the mean of the random rankings, and for the gains over it."""
    columns: Numbers = {}
    for measure, values in measures.items():
        own, chance = values[:, : len(names)], values[:, len(names) :].mean(-1)
        columns |= by_subject(measure, dict(zip([*names, CHANCE], [*own.T, chance], strict=True)))
        if measure in GAINS:
            gains = own.T - chance if GAINS[measure] else chance - own.T
            columns |= by_subject(f"{measure}_gain", dict(zip(names, gains, strict=True)))
    return columns
