"""What is kept of a study's run: a small JSON file with its findings, so that pages can be made without the run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from assay.data.examples import Corpus
from assay.files import write_text
from assay.models.recipes import Recipe, train
from assay.records import Finding, Record, finding_rows, findings_of
from assay.run.auditing import audited
from assay.run.examination import AuditPlan

Result = dict[str, Any]


def run(given: Corpus, recipe: Recipe, plan: AuditPlan, folder: Path, device: str) -> Record:
    """The audit of one model on one corpus; finished ones are only read."""
    model = train(given, recipe, folder / "model", device)
    return audited(model, given.test, plan, folder, {"corpus": {"name": given.name}}, given)


def kept(path: Path, made: Callable[[], Record], more: Callable[[Record], Result] = lambda record: {}) -> Result:
    """The result in the file, or that of the record, which is then written there."""
    if not path.exists():
        record = made()
        write_text(path, json.dumps(condensed(record) | more(record), indent=1, allow_nan=False) + "\n")
    found: Result = json.loads(path.read_text(encoding="utf-8"))
    return found


def condensed(record: Record) -> Result:
    """What pages need of a record: when, where and how it was made, how good the model is, and its findings.

    By class there are those of the published tables only.
    """
    summary = record.summary
    return {
        "created": summary["created"],
        "device": summary["device"],
        "versions": summary["versions"],
        "corpus": {name: summary["corpus"][name] for name in ("name", "classes", "audited", "skipped")},
        "model": {name: summary["model"][name] for name in ("description", "epochs", "test", "items")},
        "findings": [
            {name: round(value, 6) if isinstance(value, float) else value for name, value in row.items()}
            for row in finding_rows(record.findings)
            if row["group"] == "all" or (row["audit"], row["measure"]) == ("agreement", "tau")
        ],
    }


def finding(result: Result, audit: str, subject: str, measure: str, group: str = "all") -> Finding | None:
    """The one finding with these names, or None."""
    wanted = {"audit": audit, "subject": subject, "measure": measure, "group": group}
    return next(iter(findings_of(row for row in result["findings"] if wanted.items() <= row.items())), None)
