"""One batch under all instruments: a table with a row for each example."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from assay import costs
from assay.audits.cases import Audit, Case, numpy
from assay.data.batches import Tokenised, collate
from assay.data.examples import Example
from assay.errors import AssayError
from assay.explainers.baselines import computing
from assay.models.store import Opened
from assay.models.textmodel import TextModel
from assay.types import Attribution, Batch, DetailedExplainer, Explainer, Model

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
