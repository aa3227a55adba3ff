"""Explainers and audits by name with their options, and one batch under all of them as a table."""

from __future__ import annotations

import json
import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from assay import costs
from assay.audits import AUDITS, USUAL_AUDITS
from assay.audits.cases import Audit, Case, numpy
from assay.data.batches import Tokenised, collate
from assay.data.examples import Example
from assay.errors import AssayError
from assay.explainers import EXPLAINERS, USUAL
from assay.explainers.baselines import computing
from assay.explainers.choice import bare, chosen, named
from assay.explainers.needs import unfit
from assay.explainers.phrase_trees import tree_builders
from assay.models.hf_body import Body
from assay.models.store import Opened
from assay.models.textmodel import TextModel
from assay.types import Attribution, Batch, DetailedExplainer, Explainer, Model

Instrument = TypeVar("Instrument")
Instruments = str | Sequence[str | Instrument] | Mapping[str, str | Instrument]
"""Names, with options or without, in a list or with commas between them; objects; or objects by name."""

OBJECTS = ("own", "own_audits")
"""Fields of objects, which are not stored."""


@dataclass(frozen=True)
class AuditPlan:
    """Which explainers are put to which audits, by name and with options, over how many examples."""

    explainers: tuple[str, ...] = USUAL
    audits: tuple[str, ...] = USUAL_AUDITS
    seed: int = 0
    limit: int | None = None
    epsilon: float = 0.01
    tree: str | None = None  # hierarchies of phrases, for some texts that the page shows
    scorer: str | None = None  # what a phrase of them counts
    own: dict[str, Explainer] = field(default_factory=dict, repr=False, compare=False)  # not ours: by their names
    own_audits: dict[str, Audit] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(
        cls, explainers: Instruments[Any] = USUAL, audits: Instruments[Audit] = USUAL_AUDITS, **options: Any
    ) -> AuditPlan:
        """A plan whose explainers and audits are named, or are at hand as functions or objects."""
        names, own = named(explainers, EXPLAINERS, "explainer")
        audit_names, own_audits = named(audits, AUDITS, "audit")
        return cls(names, audit_names, own=own, own_audits=own_audits, **options)

    def json(self) -> dict[str, Any]:
        """The options as plain values; trees only where there are any, so that older plans stay what they are."""
        given = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in OBJECTS}
        return {name: value for name, value in given.items() if value is not None or name not in ("tree", "scorer")}

    def __post_init__(self) -> None:
        self.chosen_explainers(), self.chosen_audits(), tree_builders(self.tree, self.scorer)
        each_once("explainer", self.explainers, EXPLAINERS)
        each_once("audit", tuple(map(bare, self.audits)), AUDITS)
        if self.limit is not None and self.limit < 1:
            raise AssayError(f"The limit is a number of examples, at least 1, not {self.limit}.")
        if self.seed < 0:
            raise AssayError(f"seed must be a whole number from 0, got {self.seed}.")
        if not 0 <= self.epsilon < 1:
            raise AssayError(f"Epsilon is a change of probability, from 0 to below 1, not {self.epsilon}.")

    def chosen_explainers(self) -> dict[str, Explainer]:
        return explainers_of(self.explainers, self.own, self.seed)

    def chosen_audits(self) -> dict[str, Audit]:
        """By the name without options: of an audit, unlike of an explainer, there is one variant in a plan."""
        own, shared = self.own_audits, {"seed": self.seed, "epsilon": self.epsilon}
        return {bare(name): own[name] if name in own else chosen(name, AUDITS, "audit", shared) for name in self.audits}

    def sample(self, examples: Sequence[Example]) -> list[tuple[int, Example]]:
        """The examples to audit with their places: all, or `limit` of them drawn by the seed."""
        places = range(len(examples))
        if self.limit is not None and self.limit < len(examples):
            return [(place, examples[place]) for place in sorted(random.Random(self.seed).sample(places, self.limit))]
        return list(zip(places, examples, strict=True))


def explainers_of(names: Sequence[str], own: Mapping[str, Explainer], seed: int) -> dict[str, Explainer]:
    """The explainers of these names: a caller's own as they are, ours with the seed of the run."""
    # an epsilon of an explainer is its own: it stabilises a division, and is no change of the output
    return {name: own[name] if name in own else chosen(name, EXPLAINERS, shared={"seed": seed}) for name in names}


def fitting(explainers: Mapping[str, Explainer], model: Model) -> tuple[dict[str, Explainer], dict[str, str]]:
    """The explainers that this model can serve, and why the others are left out."""
    left_out = {name: reason for name, each in explainers.items() if (reason := unfit(each, model)) is not None}
    if len(left_out) == len(explainers):
        raise AssayError(f"None of the explainers can be used: {next(iter(left_out.values()))}.")
    return {name: each for name, each in explainers.items() if name not in left_out}, left_out


def each_once(kind: str, names: Sequence[str], known: Mapping[str, object]) -> None:
    """Refuses an empty list of names, and one with a name twice."""
    if not names or len(set(names)) < len(names):
        raise AssayError(f"Name each {kind} once, and at least one; there are: {', '.join(known)}.")


# One batch under all instruments: a table with a row for each example.


NOTES = b"assay"  # schema metadata: how long each instrument took, what it cost, and which could not be used
OWN = "explainers"  # stands in the place of an audit before what explainers say of themselves


@dataclass(frozen=True)
class Examination:
    """Explains and audits batches of one model; what is read for averages alone is read as the model is `stored`."""

    model: Opened
    explainers: dict[str, Explainer]
    audits: dict[str, Audit]
    seed: int
    stored: TextModel
    ticked: Callable[[float], None] = lambda share: None  # told which share of the batch is done

    def __call__(self, rows: Sequence[Tokenised], examples: Sequence[Example]) -> pa.Table:
        """The table of one batch: text, prediction, a list of scores for each explainer, the measures of each audit."""
        batch = collate(rows, len(self.model.classes)).to(self.model.device)
        notes: dict[str, dict[str, float]] = {"seconds": defaultdict(float), "costs": defaultdict(float)}
        scores: dict[str, Tensor] = {}
        planted = all(example.planted for example in examples if example.evidence is not None)
        seed = self.seed + rows[0].index
        case = Case(self.model.network, batch, scores, seed, computing(self.explainers), planted, self.stored)
        columns = _texts(rows, examples, batch)
        columns["predicted"] = pa.array(case.predicted.cpu().numpy(), pa.int32())
        columns["probabilities"] = pa.array(numpy(case.probabilities).tolist(), pa.list_(pa.float64()))
        step = 1 / (len(self.explainers) + len(self.audits))
        for name, explainer in self.explainers.items():
            with _timed(notes["seconds"], f"explainer/{name}", self.model.device), costs.measured() as cost:
                found = explained(explainer, case.model, batch, case.predicted)
            notes["costs"] |= {f"{name}/forward": cost.forward, f"{name}/backward": cost.backward}
            scores[name] = found.scores
            columns |= _noted(name, found, batch.mask.cpu().numpy())
            self.ticked(step)
        unfit = {name: reason for name, audit in self.audits.items() if (reason := audit.unfit(case)) is not None}
        for name, audit in self.audits.items():
            if name not in unfit:
                with _timed(notes["seconds"], f"audit/{name}", self.model.device):
                    columns |= _measured(name, audit, case)
            self.ticked(step)
        return pa.table(columns).replace_schema_metadata({NOTES: json.dumps(notes | {"unfit": unfit})})


def explained(explainer: Explainer, model: Model, batch: Batch, target: Int[Tensor, " B"]) -> Attribution:
    """The scores of a batch, with what the explainer knows of them."""
    if isinstance(explainer, DetailedExplainer):
        return explainer.attribute(model, batch, target)
    scores = explainer(model, batch, target)
    if scores.shape != batch.mask.shape:
        wanted, given = tuple(batch.mask.shape), tuple(scores.shape)
        raise AssayError(f"An explainer gives one score a token, here {wanted}; this one gives {given}: {explainer!r}.")
    return Attribution(scores.detach().masked_fill(~batch.mask, 0.0))


def _noted(name: str, found: Attribution, mask: Bool[np.ndarray, "B T"]) -> dict[str, pa.Array]:
    columns = {f"score:{name}": _lists(numpy(found.scores).astype(np.float32), mask)}
    if found.errors is not None:
        columns[f"error:{name}"] = _lists(numpy(found.errors).astype(np.float32), mask)
    return columns | {f"{OWN}/{number}:{name}": pa.array(numpy(values)) for number, values in found.numbers.items()}


def _measured(name: str, audit: Audit, case: Case) -> dict[str, pa.Array]:
    answer = audit(case)
    mask = case.batch.mask.cpu().numpy()
    measures = {f"{name}/{measure}": pa.array(values) for measure, values in answer.measures.items()}
    return measures | {title: _lists(weights, mask) for title, weights in answer.weights.items()}


def _texts(rows: Sequence[Tokenised], examples: Sequence[Example], batch: Batch) -> dict[str, pa.Array]:
    truth = None if batch.truth is None else _lists(batch.truth.cpu().numpy(), batch.mask.cpu().numpy())
    return {
        "example": pa.array([row.index for row in rows], pa.int32()),
        "text": pa.array([example.text for example in examples]),
        "query": pa.array([example.query for example in examples], pa.string()),
        "starts": pa.array([row.spans[:, 0].numpy() for row in rows], pa.list_(pa.int32())),
        "ends": pa.array([row.spans[:, 1].numpy() for row in rows], pa.list_(pa.int32())),
        "truth": pa.nulls(len(rows), pa.list_(pa.bool_())) if truth is None else truth,
        "label": pa.array([row.label for row in rows], pa.int32()),
    }


def _lists(values: np.ndarray, mask: Bool[np.ndarray, "B T"]) -> pa.ListArray:
    """The values of real tokens, as one list a row."""
    ends: Int[np.ndarray, " B"] = mask.sum(-1).cumsum()
    return pa.ListArray.from_arrays(pa.array(np.concatenate([[0], ends]), pa.int32()), pa.array(values[mask]))


@contextmanager
def _timed(seconds: dict[str, float], name: str, device: torch.device) -> Iterator[None]:
    """Notes how long it took, to the end of what a GPU was asked to do meanwhile."""
    start = time.perf_counter()
    yield
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    seconds[name] += time.perf_counter() - start


# How much is examined at once and kept as one part: what memory must hold, and what an interruption can lose.


TOKENS = 4096  # of the networks that are trained here
SLOW = 512  # places of a transformer on a CPU: an interruption then loses minutes at most
MOST = 32_768  # places of a transformer on a GPU: more are no faster


def places(row: Tokenised) -> int:
    """How many places a text takes in what a model reads: its tokens, or all subwords of it and of its question."""
    if row.subwords is None:
        return len(row.ids)
    return int((row.subwords >= 0).sum()) + (0 if row.query is None else len(row.query))


def places_at_once(model: Opened, longest: int) -> int:
    """How many places are examined at once where the longest text takes so many.

    A transformer is explained with the states of every layer and the attention of every head at hand, so each place
    costs memory with the length of its text; a GPU takes as many as it has memory for. For the same texts and model on
    the same device it is the same number, so that an interrupted audit finds its parts again.
    """
    network = model.network
    if not isinstance(network, Body):
        return TOKENS
    if network.device.type != "cuda":
        return SLOW
    return max(SLOW, min(MOST, network.room(longest)))
