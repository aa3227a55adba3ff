"""Findings of finished trials, and numbers of single texts where tests need them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
from jaxtyping import Float, Int

from assay.errors import AssayError
from assay.metrics import shares
from assay.records import INSTANCES, SUMMARY, Finding, findings_of, read_table
from assay.study.folder import Folder
from assay.study.results import MODEL, State
from assay.study.trials import Trial

Key = tuple[str, str, str]  # audit, subject, measure
SIGNIFICANT = "significant"
UNNAMED = "attention"  # the subject of a measure that names none


@dataclass(frozen=True)
class Finished:
    """A finished trial with its findings over all texts, in their order."""

    trial: Trial
    folder: Path | None  # None where findings are all that is left of it
    findings: Mapping[Key, Finding]
    audits: Mapping[str, Mapping[str, Any]]
    left_out: Mapping[str, str]  # explainers that this model cannot serve, and why

    def gaps(
        self, audit: str, measure: str, first: str, second: str
    ) -> tuple[Int[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Indices of the examples, and the difference of the first subject from the second for each."""
        if self.folder is None:
            return np.zeros(0, dtype=int), np.zeros(0)
        path = (self.folder / INSTANCES).absolute()
        known = set(pq.read_schema(path).names)
        columns = [_column_name(measure, subject, known) for subject in (first, second)]
        if None in columns:
            return np.zeros(0, dtype=int), np.zeros(0)
        rows = pq.read_table(path, columns=["example", *columns], filters=pa.compute.field("audit") == audit)
        values = [rows[name].to_numpy().astype(float) for name in columns]
        return rows["example"].to_numpy(), values[0] - values[1]


def finished(trials: Sequence[Trial], folder: Folder) -> dict[str, Finished | State]:
    """Each trial by its identity: its findings, or that it failed or was not run."""
    found: dict[str, Finished | State] = {}
    for trial in trials:
        if trial.identity not in found:
            found[trial.identity] = _read(trial, folder) if folder.done(trial) else _state(trial, folder)
    return found


def earlier(trials: Sequence[Trial], table: Path) -> dict[str, Finished]:
    """Trials of a stored table of findings, by identity."""
    held: dict[tuple[str, str, int, str], list[Finding]] = {}
    for row in read_table(table).to_pylist():
        names = row["corpus"], row["model"], row["seed"], row["asked"]
        numbers = {name: row[name] for name in ("audit", "subject", "measure", "mean", "low", "high", "n", "kind")}
        held.setdefault(names, []).append(Finding(group="all", std=math.nan, **numbers))
    found = {}
    for trial in trials:
        findings = held.get((trial.corpus.title, trial.kind.name, trial.seed, trial.audit_set.name), [])
        if findings:
            by_key = {(each.audit, each.subject, each.measure): each for each in findings}
            found[trial.identity] = Finished(trial, None, by_key, {}, {})
    return found


def _read(trial: Trial, folder: Folder) -> Finished:
    place = folder.trial(trial)
    try:
        summary = json.loads((place / SUMMARY).read_text(encoding="utf-8"))
        findings = findings_of(row for row in summary["findings"] if row["group"] == "all" and row["n"] > 0)
        findings += [*_significant(findings), *_good(summary)]
        audits, left_out = summary["audits"], summary.get("left_out") or {}
    except (OSError, ValueError, KeyError, TypeError) as fault:
        told = f"{place} holds a damaged result ({fault}); remove the folder and run the study again."
        raise AssayError(told) from fault
    return Finished(trial, place, {(f.audit, f.subject, f.measure): f for f in findings}, audits, left_out)


def _significant(findings: Sequence[Finding]) -> list[Finding]:
    """The share of texts in which a correlation is significant, as a measure of its own."""
    return [
        _share(each.audit, each.subject, SIGNIFICANT, each.significant, each.n)
        for each in findings
        if each.significant is not None
    ]


def _good(summary: Mapping[str, Any]) -> list[Finding]:
    """The accuracy of the model."""
    n, accuracy = int(summary["corpus"]["audited"]), float(summary["model"]["test"]["accuracy"])
    if n == 0:
        return []
    return [_share(MODEL, MODEL, "accuracy", accuracy, n)]


def _share(audit: str, subject: str, measure: str, share: float, n: int) -> Finding:
    """A proportion of n texts, with Blaker's (2000) interval."""
    low, high = shares.share(np.array([round(share * n)]), np.array([n]))
    spread = (share * (1 - share)) ** 0.5
    return Finding(audit, subject, measure, "all", share, float(low[0]), float(high[0]), spread, n, kind="exact")


def _state(trial: Trial, folder: Folder) -> State:
    return "not run" if folder.reason(trial) is None else "failed"


def _column_name(measure: str, subject: str, known: set[str]) -> str | None:
    """The column of a subject's numbers; one without subjects is named by the measure alone."""
    names = [f"{measure}:{subject}", *([measure] if subject == UNNAMED else [])]
    return next((name for name in names if name in known), None)
