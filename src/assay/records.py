"""What an audit leaves on disk: parquet and JSON, written whole, read back without torch."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from assay.errors import AssayError
from assay.files import whole, write_text

SUMMARY, INSTANCES, EXAMPLES = "summary.json", "instances.parquet", "examples.parquet"
NEEDED = ("corpus", "explainers", "audits", "findings")  # what a summary must hold to be shown


@dataclass(frozen=True)
class Finding:
    """One number of an audit over a group of examples, with its 95 % bootstrap interval."""

    audit: str
    subject: str  # an explainer ("attention") or a pair ("attention~gradient")
    measure: str
    group: str  # "all", or a predicted class
    mean: float
    low: float
    high: float
    std: float
    n: int
    undefined: int = 0  # examples for which the measure does not exist
    significant: float | None = None  # share with p <= .05, where the measure has a p-value
    p_value: float | None = None  # of the paired test of a gain against 0
    kind: str = "sample"  # "exact", "sample" or "lower bound"


@dataclass(frozen=True)
class Record:
    """One finished audit: its summary, a row per example and audit, and a row per example with tokens and scores."""

    summary: dict[str, Any]
    instances: pa.Table
    examples: pa.Table

    @cached_property
    def findings(self) -> list[Finding]:
        return [Finding(**row) for row in self.summary["findings"]]

    def finding(self, audit: str, subject: str, measure: str, group: str = "all") -> Finding | None:
        """The one finding with these names, or None."""
        wanted = (audit, subject, measure, group)
        return next((f for f in self.findings if (f.audit, f.subject, f.measure, f.group) == wanted), None)

    def audit_rows(self, audit: str) -> pa.Table:
        """The rows of `instances` that belong to one audit, without the columns that it does not use."""
        rows = self.instances.filter(pa.compute.equal(self.instances["audit"], audit))
        return rows.select([name for name in rows.column_names if rows[name].null_count < len(rows)])

    def write(self, folder: Path) -> None:
        """Writes the folder; the summary comes last and marks it as finished."""
        write_table(self.instances, folder / INSTANCES)
        write_table(self.examples, folder / EXAMPLES)
        write_text(folder / SUMMARY, json.dumps(self.summary, indent=2, ensure_ascii=False, allow_nan=False) + "\n")

    @classmethod
    def read(cls, folder: Path) -> Record:
        """Reads a finished audit folder."""
        if not (folder / SUMMARY).is_file():
            raise AssayError(f"{folder} holds no finished audit: {SUMMARY} is missing; run 'assay audit' first.")
        try:
            summary = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
            if lacking := [key for key in NEEDED if key not in summary]:
                raise ValueError(f"{SUMMARY} lacks {', '.join(lacking)}")
            return cls(summary, pq.read_table(folder / INSTANCES), pq.read_table(folder / EXAMPLES))
        except (OSError, ValueError, pa.ArrowException) as fault:
            raise AssayError(f"{folder} holds a damaged audit ({fault}); run it again with another --out.") from fault


def write_table(table: pa.Table, path: Path) -> None:
    """Writes one parquet file, whole or not at all."""
    with whole(path) as scratch:
        pq.write_table(table, scratch, compression="zstd")


def finding_rows(findings: list[Finding]) -> list[dict[str, Any]]:
    """Findings as plain dictionaries, for the summary."""
    return [asdict(finding) for finding in findings]
