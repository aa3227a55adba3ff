"""From one wide table to the record's three parts."""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from assay import __version__
from assay.audits.cases import question, trust
from assay.audits.findings import summarise
from assay.metrics.performance import accuracy, auc, macro_f1
from assay.models.store import Opened
from assay.records import FIRST_LAYER, Finding, finding_rows
from assay.run.examination import OWN
from assay.run.plan import AuditPlan
from assay.run.versions import versions


def summarised(model: Opened, plan: AuditPlan, table: pa.Table, notes: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The summary: what was run with what, how good the model is, and every finding."""
    seconds, unfit = notes["seconds"], notes["unfit"]
    every = plan.chosen_audits()
    kinds = {name: trust(audit, model.network, len(model.classes)) for name, audit in every.items()}
    findings: list[Finding] = []
    for name in kinds:
        if name not in unfit:
            findings += summarise(name, kinds[name], _measures(table, name), _column(table, "predicted"), model.classes)
    if own := _measures(table, OWN):
        findings += summarise(OWN, "exact", own, np.zeros(len(table), dtype=int), ())
    explainers = {name: each for name, each in plan.chosen_explainers().items() if name not in notes["left_out"]}
    return {
        "assay": __version__,
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "versions": versions(),
        "platform": f"{platform.system()} {platform.machine()}",
        "device": device_of(model),
        "plan": plan.json(),
        "corpus": {"name": "unnamed", "classes": list(model.classes)},
        "model": {
            **model.network.facts,
            "parameters": model.network.parameter_count,
            "epochs": model.history.get("epochs"),
            "best_dev": model.history.get("best_dev"),
            "history": model.history,
            "test": performance(table, len(model.classes)),
        },
        "explainers": {name: _first_line(explainer) for name, explainer in explainers.items()},
        "left_out": notes["left_out"],
        "explainer_seconds": {name: round(seconds[f"explainer/{name}"], 3) for name in explainers},
        "explainer_cost": {name: _passes(notes["costs"], name, len(table)) for name in explainers},
        "audits": {
            name: {
                "question": question(audit),
                "paper": audit.paper,
                "kind": kinds[name],
                "applies": name not in unfit,
                "why": unfit.get(name),
                "remark": notes["remarks"].get(name),
                "seconds": round(seconds.get(f"audit/{name}", 0.0), 3),
            }
            for name, audit in every.items()
        },
        FIRST_LAYER: 0,
        "findings": finding_rows(findings),
    }


def _passes(costs: dict[str, float], name: str, texts: int) -> dict[str, float]:
    """How often a text was read forward and backward, on average."""
    return {way: round(costs[f"{name}/{way}"] / texts, 2) for way in ("forward", "backward")}


def performance(table: pa.Table, classes: int) -> dict[str, float | None]:
    """How good the model is on the audited examples."""
    labels, predicted = _column(table, "label"), _column(table, "predicted")
    probabilities = np.array(table["probabilities"].to_pylist())
    area = auc(labels, probabilities)
    return {
        "accuracy": accuracy(labels, predicted),
        "macro_f1": macro_f1(labels, predicted, classes),
        "auc": area if np.isfinite(area) else None,
    }


def instances_table(table: pa.Table, audits: Sequence[str]) -> pa.Table:
    """One row for each example and audit; a measure of another audit is null."""
    probability = [max(row) for row in table["probabilities"].to_pylist()]
    shared = {
        "example": table["example"],
        "label": table["label"],
        "predicted": table["predicted"],
        "probability": pa.array(probability),
        "length": pc.list_value_length(table["starts"]),
    }
    pieces = [pa.table(shared | {"audit": pa.array([""] * len(table))}).slice(0, 0)]
    for name in (*audits, OWN):
        if measures := _measures(table, name):
            own = {"audit": pa.array([name] * len(table))}
            pieces.append(pa.table(shared | own | {title: pa.array(values) for title, values in measures.items()}))
    return pa.concat_tables(pieces, promote_options="default")


def examples_table(table: pa.Table) -> pa.Table:
    """One row for each example: text, prediction, and what is known of each token."""
    columns = {name: table[name] for name in table.column_names if "/" not in name}
    for measure in ("jsd", "tvd"):
        if f"adversary/{measure}" in table.column_names:
            columns[f"adversary_{measure}"] = table[f"adversary/{measure}"]
    return pa.table(columns)


def _measures(table: pa.Table, audit: str) -> dict[str, np.ndarray]:
    prefix = f"{audit}/"
    names = [name for name in table.column_names if name.startswith(prefix)]
    return {name.removeprefix(prefix): table[name].to_numpy().astype(np.float64) for name in names}


def _column(table: pa.Table, name: str) -> np.ndarray:
    return np.asarray(table[name].to_numpy())


def device_of(model: Opened) -> str:
    """The name of the GPU that did the work, or cpu."""
    return torch.cuda.get_device_name(model.device) if model.device.type == "cuda" else model.device.type


def _first_line(instrument: object) -> str:
    return (instrument.__doc__ or "").strip().partition("\n")[0]
