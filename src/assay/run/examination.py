"""One batch under all instruments: a table with a row for each example."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Bool, Int

from assay.audits.cases import Audit, Case, numpy
from assay.data.batches import Tokenised, collate
from assay.data.examples import Example
from assay.models.store import Trained
from assay.types import Batch, Explainer

NOTES = b"assay"  # schema metadata: how long each instrument took, and which could not be used


@dataclass(frozen=True)
class Examination:
    """Explains and audits batches of one model."""

    model: Trained
    explainers: dict[str, Explainer]
    audits: dict[str, Audit]
    seed: int

    def __call__(self, rows: Sequence[Tokenised], examples: Sequence[Example]) -> pa.Table:
        """The table of one batch: text, prediction, a list of scores for each explainer, the measures of each audit."""
        batch = collate(rows).to(self.model.device)
        seconds: dict[str, float] = defaultdict(float)
        with torch.no_grad():
            network = self.model.network
            probabilities = network(network.embed(batch), batch).probabilities
        predicted = probabilities.argmax(-1)
        columns = _texts(rows, examples, batch)
        columns["predicted"] = pa.array(predicted.cpu().numpy(), pa.int32())
        columns["probabilities"] = pa.array(numpy(probabilities).tolist(), pa.list_(pa.float64()))
        scores = {}
        for name, explainer in self.explainers.items():
            with _timed(seconds, f"explainer/{name}"):
                scores[name] = explainer(network, batch, predicted)
            columns[f"score:{name}"] = _lists(numpy(scores[name]).astype(np.float32), batch.mask.cpu().numpy())
        case = Case(network, batch, scores, self.seed + rows[0].index)
        unfit = {name: reason for name, audit in self.audits.items() if (reason := audit.unfit(case)) is not None}
        for name, audit in self.audits.items():
            if name not in unfit:
                with _timed(seconds, f"audit/{name}"):
                    columns |= _measured(name, audit, case)
        return pa.table(columns).replace_schema_metadata({NOTES: json.dumps({"seconds": seconds, "unfit": unfit})})


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
def _timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    seconds[name] += time.perf_counter() - start
