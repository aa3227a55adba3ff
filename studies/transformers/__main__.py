"""Fine-tunes MiniLM on each corpus, with its own head and with an attention that pools, and audits both.

    ASSAY_DATA=folder python -m studies.transformers [--device cuda] [--dtype bfloat16] [--only sst] [--limit N]

`--limit` is the number of test texts to audit instead of what a cell says; 0 is all of them. Results are kept in
results/; what stands there is only read, and an interrupted run goes on.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from assay.data.batches import tokenise
from assay.data.corpora import corpus
from assay.data.examples import Corpus
from assay.files import write_text
from assay.metrics.performance import accuracy
from assay.models.hf_finetuning import FineTuning, finetune
from assay.models.hf_loading import Opening
from assay.models.store import Opened
from assay.models.textmodel import predict
from assay.records import Record
from assay.run.auditing import audited
from assay.run.examination import AuditPlan
from studies.pages import put
from studies.results import Result, kept
from studies.transformers.cells import CELLS, HEADS, Cell
from studies.transformers.tables import page

HERE = Path(__file__).parent


@dataclass
class Run:
    """A cell with one head; what is found out on the way is kept beside the record."""

    cell: Cell
    head: str
    options: argparse.Namespace
    facts: Result = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.cell.name}-{self.head}"

    @property
    def limit(self) -> int | None:
        """How many texts are audited, or None for all."""
        wanted = self.cell.limit if self.options.limit is None else self.options.limit
        return wanted or None

    def record(self) -> Record:
        """The audit of the model, which is trained first, once for all cells of its corpus."""
        given = corpus(self.cell.corpus)
        model = self._learnt(given)
        if self.limit is not None:
            self.facts |= _judged(model, given)
        plan = AuditPlan(self.cell.explainers, self.cell.audits[self.head], limit=self.limit)
        folder = self.options.runs / self.name / "audit"
        started = time.monotonic()
        made = audited(model, given.test, plan, folder, {"corpus": {"name": self.cell.corpus}}, given)
        self.facts["audit_seconds"] = round(time.monotonic() - started)
        return made

    def _learnt(self, given: Corpus) -> Opened:
        """The model of the corpus; how it was trained is noted beside it, for later cells only read it."""
        started = time.monotonic()
        folder = self.options.runs / f"{self.cell.corpus}-{self.head}"
        opening = Opening(device=self.options.device, dtype=self.cell.dtype, truncate=True)
        model = finetune(given, FineTuning(head=self.head, dtype=self.options.dtype), folder / "model", opening)
        noted = folder / "learnt.json"
        if not noted.exists():
            course = {
                "train": len(given.train),
                "training_seconds": round(time.monotonic() - started),
                "epochs": model.history["epochs"],
                "dtype": self.options.dtype,
            }
            write_text(noted, json.dumps(course) + "\n")
        self.facts |= json.loads(noted.read_text(encoding="utf-8"))
        return model

    def about(self, record: Record) -> Result:
        """How the model was trained, how good it is on all test texts, and what explainers and audits cost."""
        summary = record.summary
        audited = {
            "accuracy": round(summary["model"]["test"]["accuracy"], 4),
            "test": summary["corpus"]["audited"],
            "skipped": summary["corpus"]["skipped"],
        }
        costs = {name: summary[name] for name in ("explainer_seconds", "explainer_cost")}
        costs["each_audit_seconds"] = {name: each["seconds"] for name, each in summary["audits"].items()}
        return {"training": audited | self.facts | costs}


def _judged(model: Opened, given: Corpus) -> Result:
    """How good the model is on all test texts, where not all of them are audited."""
    rows, skipped = tokenise(given.test, model.tokeniser, model.tokeniser.options.longest)
    right = accuracy(np.array([row.label for row in rows]), predict(model.network, rows).argmax(-1))
    return {"accuracy": round(right, 4), "test": len(rows), "skipped": skipped}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--runs", type=Path, default=Path("runs/transformers"))
    parser.add_argument("--only", choices=[cell.name for cell in CELLS], help="one cell; the page is not written")
    parser.add_argument("--head", choices=HEADS, help="one head; the page is not written")
    parser.add_argument("--limit", type=int)
    options = parser.parse_args()
    results: dict[str, Result] = {}
    for cell in CELLS:
        for head in HEADS:
            if options.only in (None, cell.name) and options.head in (None, head) and head in cell.audits:
                run = Run(cell, head, options)
                results[run.name] = kept(HERE / "results" / f"{run.name}.json", run.record, run.about)
    if not (options.only or options.head):
        put(HERE / "README.md", page(results))


if __name__ == "__main__":
    main()
