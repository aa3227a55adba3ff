"""Records: the results of an audit on disk, as parquet and JSON, written atomically, readable without torch."""

from __future__ import annotations

import importlib.metadata
import json
import math
import platform
import re
import sys
from collections.abc import Iterable
from dataclasses import MISSING, asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from assay.errors import AssayError, Damaged, reason
from assay.files import whole, write_text
from assay.stories import Conclusion, Story

SUMMARY, INSTANCES, EXAMPLES = "summary.json", "instances.parquet", "examples.parquet"
FIRST_LAYER = "first_layer"  # of a summary: the number of the lowest layer; earlier ones lack it and count from 1
STORIES = "stories"  # of a summary: those of the explainers; each audit holds its own
NEEDED = ("corpus", "explainers", "audits", "findings")  # what a summary must hold to be shown
CHANCE = "chance"  # of a finding: the subject of what random rankings that an audit draws itself reach on average


@dataclass(frozen=True)
class Finding:
    """One aggregate result: a mean over a group of examples, with its 95 % interval, nan where n is too small."""

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
    p_value: float | None = None  # of no gain on average, by the procedure of the interval
    kind: str = "sample"  # one of those of `trust` in assay.audits.cases


KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("audit", "subject", "measure", "group", "kind"), (str,)),
    **dict.fromkeys(("mean", "std"), (float,)),
    **dict.fromkeys(("low", "high"), (float, type(None))),
    **dict.fromkeys(("n", "undefined"), (int,)),
    **dict.fromkeys(("significant", "p_value"), (float, type(None))),
}
"""What each part of a finding is in a file."""


@dataclass(frozen=True)
class Record:
    """The results of a finished audit: the summary, one row per example and audit, one row per example with scores."""

    summary: dict[str, Any]
    instances: pa.Table
    examples: pa.Table

    @cached_property
    def findings(self) -> list[Finding]:
        return findings_of(self.summary["findings"])

    @property
    def told(self) -> bool:
        """Whether the record holds the stories of its audits, which earlier versions did not write."""
        return STORIES in self.summary

    @cached_property
    def stories(self) -> dict[str, Story]:
        """The story of each audit; one that has none has its name as its title."""
        return {name: _story(name, about) for name, about in self.summary["audits"].items()}

    @cached_property
    def conclusions(self) -> dict[str, Conclusion]:
        """What each audit says, of those that say something."""
        every = self.summary["audits"].items()
        return {name: Conclusion.of(about["conclusion"]) for name, about in every if "conclusion" in about}

    def finding(self, audit: str, subject: str, measure: str, group: str = "all") -> Finding | None:
        """The finding with these names, or None."""
        wanted = (audit, subject, measure, group)
        return next((f for f in self.findings if (f.audit, f.subject, f.measure, f.group) == wanted), None)

    def audit_rows(self, audit: str) -> pa.Table:
        """The rows of `instances` of one audit, without empty columns."""
        rows = self.instances.filter(pa.compute.equal(self.instances["audit"], audit))
        return rows.select([name for name in rows.column_names if rows[name].null_count < len(rows)])

    def write(self, folder: Path) -> None:
        """Writes the folder; the summary is written last, and marks the record as complete."""
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
            _check(summary)
            instances, examples = read_table(folder / INSTANCES), read_table(folder / EXAMPLES)
            if FIRST_LAYER in summary:
                return cls(summary, instances, examples)
            return cls(from_zero(summary), instances.rename_columns(from_zero(instances.column_names)), examples)
        except (OSError, ValueError, RecursionError, pa.ArrowException) as fault:
            raise Damaged(
                f"{folder} holds a damaged audit ({reason(fault)}); run it again with another --out."
            ) from fault


def _story(name: str, about: dict[str, Any]) -> Story:
    told = Story.of(about.get("story"))
    title = told.title or name.replace("_", " ").capitalize()
    return replace(told, title=title, question=about.get("question") or "", paper=about.get("paper") or "")


def _check(summary: Any) -> None:
    """Raises an error for JSON that is not the summary of an audit."""
    if not isinstance(summary, dict):
        raise ValueError(f"{SUMMARY} is no JSON object")
    if lacking := [key for key in NEEDED if key not in summary]:
        raise ValueError(f"{SUMMARY} lacks {', '.join(lacking)}")
    rows = summary["findings"]
    if not isinstance(rows, list) or not all(isinstance(row, dict) and _is_finding(row) for row in rows):
        raise ValueError(f"{SUMMARY} holds findings that are none")


def from_zero(named: Any) -> Any:
    """Converts names of earlier records, with layers counted from 1 ("layer 1"), to layers counted from 0."""
    if isinstance(named, str):
        return re.sub(r"(?<![a-zA-Z])layer (\d+)", lambda found: f"layer {int(found[1]) - 1}", named)
    if isinstance(named, list):
        return [from_zero(each) for each in named]
    if not isinstance(named, dict):
        return named
    if "findings" in named:
        return named | {"findings": from_zero(named["findings"]), FIRST_LAYER: 0}
    return named | {key: from_zero(named[key]) for key in ("subject", "measure") if key in named}


def _is_finding(row: dict[str, Any]) -> bool:
    """Whether a row has exactly the fields of a finding, with the right types."""
    needed = {each.name for each in fields(Finding) if each.default is MISSING}
    return needed <= row.keys() <= KINDS.keys() and all(type(value) in KINDS[name] for name, value in row.items())


def write_table(table: pa.Table, path: Path) -> None:
    """Writes one parquet file, atomically."""
    # absolute, here and wherever parquet is read: the library takes a name such as hf:mine for the address of a service
    with whole(path) as scratch:
        pq.write_table(table, scratch.absolute(), compression="zstd", write_page_checksum=True)


def read_table(path: Path) -> pa.Table:
    """Reads one parquet file; a corrupt page is an error."""
    with pq.ParquetFile(path.absolute(), page_checksum_verification=True) as opened:
        return opened.read()


def finding_rows(findings: list[Finding]) -> list[dict[str, Any]]:
    """Findings as dictionaries for JSON; a missing interval is null."""
    rows = [asdict(finding) for finding in findings]
    return [row | {end: None for end in ("low", "high") if math.isnan(row[end])} for row in rows]


def findings_of(rows: Iterable[dict[str, Any]]) -> list[Finding]:
    """Findings from their JSON dictionaries."""
    return [Finding(**row | {end: math.nan for end in ("low", "high") if row[end] is None}) for row in rows]


PACKAGES = ("torch", "numpy", "scipy", "pyarrow", "tokenizers", "safetensors")


def versions() -> dict[str, str]:
    """Of Python and the libraries; of transformers where it was used."""
    used = PACKAGES + ("transformers",) * ("transformers" in sys.modules)
    return {"python": platform.python_version()} | {name: _version(name) for name in used}


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
