"""Audits of stacked self-attention: predictions under edits in every layer, and layer by layer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, repeat
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.audits.cases import Answer, BaseAudit, Case, Numbers, numpy, of_subject
from assay.explainers.needs import no_layers, no_pooling
from assay.intervene.edits import Within, uniform
from assay.intervene.stack_attention import Shuffled
from assay.lookup import known, over_all, told
from assay.metrics.information import tvd
from assay.models import budget
from assay.models.erasure import capacity, extents, query_lengths
from assay.models.hf_body import Body
from assay.records import Record
from assay.stories import Conclusion, Drawing, Measure, Story
from assay.types import Batch, Edit, Model, PooledModel, StackedModel
from assay.writing import number, percent


def stacked(model: Model) -> bool:
    """Whether the prediction comes from a stack of attention layers without attention pooling."""
    return no_layers(model) is None and not isinstance(model, PooledModel)


def without_attention(case: Case) -> str | None:
    """Why audits that edit attention, pooling or stacked, do not apply, or None."""
    return no_pooling(case.model) if not stacked(case.model) else _closed(case.model)


def without_stack(case: Case) -> str | None:
    """Why audits that edit the attention of layers do not apply, or None."""
    if not stacked(case.model):
        return no_layers(case.model) or "one attention pools the words; the audits of that attention change it"
    return _closed(case.model)


def _closed(model: Model) -> str | None:
    return model.traits.unedited if isinstance(model, Body) else None


def of_stack(case: Case) -> StackedModel:
    """The stacked model of a case."""
    assert isinstance(case.model, StackedModel)
    return case.model


def widths(batch: Batch) -> Int[Tensor, " B"]:
    """Approximate sequence lengths of the texts in a layer."""
    return extents(batch).sum(-1) + query_lengths(batch)


def parts(case: Case) -> Iterator[slice]:
    """The batch in parts whose attention weights fit into memory."""
    device, longest = case.batch.mask.device, max(1, int(widths(case.batch).max()))
    each = of_stack(case).layers * longest**2
    step = max(1, min(budget.room(device, "edited stack", each), capacity(case.model, device) // longest))
    for start in range(0, len(case.batch), step):
        yield slice(start, start + step)


@torch.no_grad()
def answers(case: Case, edits: Iterator[Edit], versions: int) -> Float[Tensor, "B N C"]:
    """Probabilities of edited versions of each text."""
    batch, device = case.batch, case.batch.mask.device
    x = case.model.embed(batch)
    example = torch.arange(len(batch), device=device).repeat_interleave(versions)
    step = max(1, capacity(case.model, device) // max(1, int(widths(batch).max())))
    groups = [example[start : start + step] for start in range(0, len(example), step)]
    found = [case.model(x[rows], batch[rows], next(edits)).probabilities for rows in groups]
    return torch.cat(found).reshape(len(batch), versions, -1)


def seeds(seed: int) -> Iterator[int]:
    """A seed for each time that chance is needed."""
    return count(seed * 100_003)


ALL = "all layers"


STORY = Story(
    title="Which layers’ attention does the prediction need?",
    question="Which layers' attention does the answer depend on?",
    measures=(
        Measure("uniform", "output change with equal weights (TVD)", main=True),
        Measure("uniform_flips", "texts then decided otherwise (share)"),
        Measure("permuted", "median output change with shuffled weights (TVD)"),
        Measure("permuted_flips", "shuffles then decided otherwise (share)"),
    ),
    drawings=(
        Drawing(
            "layers",
            "layers",
            (
                "Change of the prediction (TVD) when the attention of one layer alone is made equal, or "
                "shuffled, and when that of all layers is; mean over texts and 95 % interval. Layer 0 is the "
                "lowest."
            ),
            {"measures": {"uniform": "made equal", "permuted": "shuffled"}, "all": "all layers"},
        ),
    ),
    reading=(
        "In one layer after the other, every place attends to all others alike, or its weights are dealt out "
        "anew at random; the layers above go on with what they get. Where the prediction hardly moves, a "
        "heatmap of that layer’s attention shows nothing that the prediction hangs on. Layers can stand in "
        "for each other: that each can be spared does not mean that all can, which is what the last place "
        "shows."
    ),
    ungraded="It tells which layers matter; no amount is right or wrong.",
    about="model",
    subjects="of",
    terms=("TVD",),
)


@dataclass(frozen=True)
class LayerByLayer(BaseAudit):
    """How far the output moves when the attention of one layer is other than it was, and when that of all layers is.

    `uniform` is the total variation distance with equal weights on all that may be attended to, `permuted` its median
    over some `shuffles` of the weights of every head and attending place; `uniform_flips` and `permuted_flips` are how
    often the decision changes. The layers above go on from what they are given.
    """

    shuffles: int = 5
    story: ClassVar[Story] = STORY
    paper: str = "Jain and Wallace (2019), algorithm 2, and Wiegreffe and Pinter (2019), layer by layer"

    unfit = staticmethod(without_stack)

    def conclude(self, record: Record) -> Conclusion:
        alone = [f for f in over_all(record, "layers", "permuted") if f.subject != ALL]
        every = known(record, "layers", "permuted", ALL)
        if not alone or every is None:
            return Conclusion()
        most, least = max(alone, key=lambda f: f.mean), min(alone, key=lambda f: f.mean)
        flips = known(record, "layers", "permuted_flips", ALL)
        changed = "" if flips is None else f" and changes {percent(flips.mean, 0)} of the decisions"
        between = f"; {least.subject} least: by {number(least.mean, 2)}" if len(alone) > 1 else ""
        return Conclusion(
            f"Shuffling the attention of all layers moves the prediction by {told(every)}{changed}. Of single layers "
            f"{most.subject} matters most: by {told(most)}{between}."
        )

    def __call__(self, case: Case) -> Answer:
        measures: Numbers = {}
        for layer in (None, *range(of_stack(case).layers)):
            layers = None if layer is None else (layer,)
            even = answers(case, repeat(Within(uniform, layers)), 1)
            mixed = answers(case, (Within(Shuffled(seed), layers) for seed in seeds(case.seed)), self.shuffles)
            found = _moved(case, "uniform", even) | _moved(case, "permuted", mixed)
            measures |= of_subject(ALL if layer is None else f"layer {layer}", found)
        return Answer(measures)


def _moved(case: Case, name: str, found: Float[Tensor, "B N C"]) -> Numbers:
    """How far the versions of each text lie from it, and how many of them are decided otherwise."""
    distance = tvd(found, case.probabilities[:, None]).quantile(0.5, dim=-1)
    flips = (found.argmax(-1) != case.predicted[:, None]).double().mean(-1)
    return {name: numpy(distance), f"{name}_flips": numpy(flips)}
