"""Rank correlation of explanations before and after tiny changes of the embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.audits.cases import Answer, BaseAudit, Case, Numbers, PerText, Resources, by_subject, mean_defined, numpy
from assay.audits.rivals import Heard, heard, likeness, siblings, without_twins
from assay.audits.statements import best, tested
from assay.explainers.gradients import room
from assay.intervene.perturbation import Nudges, nudges
from assay.lookup import MODEL
from assay.metrics.information import tvd
from assay.models.erasure import extents, query_lengths
from assay.models.textmodel import TextModel
from assay.records import Record
from assay.stories import Conclusion, Drawing, Measure, Rule, Story

STORY = Story(
    title="Do the explanations hold still?",
    question="Does the explanation hold still when nothing that matters changes?",
    measures=(
        Measure(
            "steadiness",
            "τ after tiny changes of the input",
            better="high",
            column="steadiness",
            short="steady",
            place=9,
            help="τ between explanations before and after tiny changes of the input",
            faithful=False,
            main=True,
        ),
        Measure("change", "relative change of the scores", better="low"),
        Measure("seeds", "τ between models of other seeds", better="high"),
        Measure("moved", "change of the prediction itself"),
    ),
    drawings=(
        Drawing(
            "dots",
            "stability",
            (
                "Likeness of explanations before and after tiny changes of the embeddings, with 95 % "
                "intervals. The dashed line is where random scores are."
            ),
            {
                "measures": {"steadiness": ""},
                "title": "τ before and after tiny changes",
                "drawn": "best",
            },
        ),
    ),
    reading=(
        "Every embedding is moved by a hundredth of what usually lies between two words. A ranking that "
        "changes with it says more about its own noise than about the model. A constant would be perfectly "
        "steady: this too is a test to pass."
    ),
    rule=Rule(
        "Passes when rankings before and after tiny changes surely agree well (τ from 0.6 on), fails when "
        "they surely do not (τ below 0.4). In between it gets a warning.",
        measure="steadiness",
        sentence="Before and after tiny changes {name} agrees with itself at a τ of {found}.",
        passes=0.6,
        fails=0.4,
    ),
    terms=("TVD",),
)


@dataclass(frozen=True)
class Stability(BaseAudit):
    """How alike the scores are when every embedding is moved a little, and when the model is trained from another seed.

    `steadiness` and `seeds` are Kendall's τ-b of absolute scores, `change` is the length of the change of the scores
    over their own; `moved` is how far the answer itself went. With `seeds` at 0 no other model is trained.
    """

    share: float = 0.01  # of the distance usual between embeddings
    draws: int = 2
    seeds: int = 2
    seed: int = 0
    # differs from Yeh et al. (2019): the mean over draws, not the largest; a maximum of few draws is no bound
    story: ClassVar[Story] = STORY
    paper: str = "Alvarez-Melis and Jaakkola (2018), robustness; Yeh et al. (2019), sensitivity"
    moved: Nudges | None = field(default=None, compare=False, repr=False)
    siblings: Sequence[TextModel] = field(default=(), compare=False, repr=False)

    unfit = staticmethod(without_twins)

    def prepared(self, resources: Resources) -> Stability:
        """The audit with all other models at hand."""
        ready = replace(self, moved=self._moved(resources.model.network))
        if resources.lacks() is not None:
            return ready
        trained = resources.train_all(siblings(resources, self.seeds))
        return replace(ready, siblings=[each.network for each in trained.values()])

    def conclude(self, record: Record) -> Conclusion:
        told = best(record, "stability", "steadiness", "a τ before and after the change of")
        moved = record.finding("stability", MODEL, "moved")
        if not told or moved is None:
            return Conclusion(told)
        return Conclusion(f"{told} The prediction itself moved by {tested(moved)} (TVD).")

    def __call__(self, case: Case) -> Answer:
        assert isinstance(case.model, TextModel)
        moved = _heard(self.moved or self._moved(case.model), case)
        measures = {"moved:model": mean_defined(tvd(numpy(moved.probabilities), numpy(case.probabilities)))}
        for name, scores in moved.scores.items():
            measures[f"steadiness:{name}"] = mean_defined(likeness(case, name, scores))
            measures[f"change:{name}"] = mean_defined(_change(case.scores[name], scores))
        if self.siblings:
            measures |= _across(case, self.siblings)
        return Answer(measures)

    def _moved(self, model: TextModel) -> Nudges:
        return nudges(model, self.share, [self.seed * self.draws + draw for draw in range(self.draws)])


def _heard(moved: Nudges, case: Case) -> Heard:
    """What moved models say, all draws of a text below each other: scores [N, B, T], probabilities [N, B, C]."""
    longest = int((extents(case.batch).sum(-1) + query_lengths(case.batch)).max())
    at_once = room(case.model, case.batch.ids.device, longest) // max(1, len(case.batch) * longest)
    found = [
        heard(each.network, each.batch, case.predicted.repeat(each.times), case.explainers)
        for each in moved.readings(case.batch, at_once)
    ]

    def stacked(parts: Sequence[Float[Tensor, "_ _"]]) -> Float[Tensor, "N B _"]:
        return torch.cat([part.reshape(-1, len(case.batch), part.shape[-1]) for part in parts])

    scores = {name: stacked([each.scores[name] for each in found]) for name in case.explainers}
    return Heard(scores, stacked([each.probabilities for each in found]))


def _change(before: Float[Tensor, "B T"], after: Float[Tensor, "N B T"]) -> Float[np.ndarray, "N B"]:
    """‖after − before‖ / ‖before‖; nan where all scores were 0."""
    length = before.double().norm(dim=-1)
    change = (after.double() - before.double()).norm(dim=-1)
    return numpy(torch.where(length > 0, change / length, torch.nan))


def _across(case: Case, siblings: Sequence[TextModel]) -> Numbers:
    """How alike explanations are on models from other seeds, over those that predict the same class."""
    taus: dict[str, list[PerText]] = {name: [] for name in case.explainers}
    for sibling in siblings:
        other = heard(sibling, case.batch, case.predicted, case.explainers)
        same = (other.probabilities.argmax(-1) == case.predicted).cpu().numpy()
        for name, scores in other.scores.items():
            taus[name].append(np.where(same, likeness(case, name, scores), np.nan))
    return by_subject("seeds", {name: mean_defined(values) for name, values in taus.items()})
