"""Finished trials that nobody made: records with numbers that are known, put into the folder of a study."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from assay.records import Finding, Record, finding_rows
from assay.study.plans import StudyPlan, plan_of
from assay.study.trials import Folder, Trial, files_of

Numbers = Mapping[str, Mapping[str, np.ndarray]]  # by audit and column ("auprc:attention"), one for each example


def plan(**given: Any) -> StudyPlan:
    """A plan of two corpora, two models and three seeds, and whatever is told besides."""
    usual = {
        "name": "made-up",
        "corpora": ["planted:keyword", "planted:negation"],
        "models": {"one": {"encoder": "average"}, "two": {"encoder": "lstm"}},
        "seeds": [0, 1, 2],
        "audits": {"explainers": ["attention", "gradient", "random"], "audits": ["truth"]},
    }
    return plan_of(usual | given)


def record(numbers: Numbers, examples: np.ndarray | None = None, **summary: Any) -> Record:
    """A record whose texts have these numbers; findings and their intervals follow from them."""
    size = len(next(iter(next(iter(numbers.values())).values()))) if numbers else 0
    places = np.arange(size) if examples is None else examples
    tables = [
        pa.table({"example": pa.array(places, pa.int32()), "audit": [audit] * size, **columns})
        for audit, columns in numbers.items()
    ]
    findings = [
        _finding(audit, name, np.asarray(column))
        for audit, columns in numbers.items()
        for name, column in columns.items()
    ]
    about = {
        "corpus": {"name": "made up", "audited": size},
        "model": {"test": {"accuracy": 0.8}},
        "explainers": {},
        "audits": {audit: {"applies": True} for audit in numbers},
        "findings": finding_rows([each for each in findings if each.n]),
        "seconds": 1.5,
    }
    empty = pa.table({"example": pa.array([], pa.int32()), "audit": pa.array([], pa.string())})
    instances = pa.concat_tables(tables, promote_options="default") if tables else empty
    return Record(about | summary, instances, pa.table({"example": pa.array(places, pa.int32())}))


def keep(folder: Folder, trial: Trial, made: Record, scratch: Path) -> None:
    """Puts a record into the folder as the result of a trial."""
    work = scratch / trial.identity
    work.mkdir(parents=True)
    made.write(work)
    assert json.loads((work / "summary.json").read_text())["findings"] == made.summary["findings"]
    folder.keep(trial, files_of(made, work), {"seconds": 2.5, "device": "cpu"})


def _finding(audit: str, name: str, column: np.ndarray) -> Finding:
    measure, _, subject = name.partition(":")
    known = column[~np.isnan(column)]
    mean, spread = (float(known.mean()), float(known.std())) if len(known) else (0.0, 0.0)
    reach = 2 * spread / max(len(known), 1) ** 0.5
    ends = (mean - reach, mean + reach)
    return Finding(audit, subject or "attention", measure, "all", mean, *ends, spread, len(known), kind="exact")
