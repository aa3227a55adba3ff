"""Fine-tunes MiniLM on each corpus, with its own head and with an attention that pools, and audits both.

    ASSAY_DATA=folder python -m studies.transformers [--device cuda] [--dtype bfloat16] [--only sst] [--limit N]

`--limit` is the number of test texts of imdb to audit; 0 is all of them. Results are kept in results/; what stands
there is only read, and an interrupted run goes on.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from assay.data.batches import tokenise
from assay.data.corpora import corpus
from assay.data.examples import Corpus
from assay.metrics.performance import accuracy
from assay.models.huggingface.finetuning import FineTuning, finetune
from assay.models.huggingface.opening import Opening
from assay.models.predictions import predict
from assay.models.store import Opened
from assay.records import Record
from assay.run.audit import audit
from assay.run.plan import AuditPlan
from studies.pages import put
from studies.results import Result, kept
from studies.transformers.tables import page

HERE = Path(__file__).parent
CORPORA = ("snippets", "sst", "imdb")
HEADS = ("own", "attention")
EXPLAINERS = (
    *("attention", "attention_x_gradient", "rollout", "value_zeroing", "gradient_norm", "input_x_gradient"),
    *("integrated_gradients", "attnlrp", "leave_one_out", "occlusion", "random"),
)
AUDITS = ("agreement", "permutation", "layers", "adversary", "erasure", "consistency")
EXACT = ("single_weight", "minimal_set")


def learnt(given: Corpus, head: str, folder: Path, options: argparse.Namespace) -> tuple[Opened, Result]:
    """The model of one corpus, how good it is on all test texts, and how long it took."""
    started = time.monotonic()
    recipe = FineTuning(head=head, dtype=options.dtype)
    model = finetune(given, recipe, folder / "model", Opening(device=options.device, truncate=True))
    seconds = time.monotonic() - started
    rows, skipped = tokenise(given.test, model.tokeniser, model.tokeniser.options.longest)
    right = accuracy(np.array([row.label for row in rows]), predict(model.network, rows).argmax(-1))
    return model, {
        "accuracy": round(right, 4),
        "test": len(rows),
        "skipped": skipped,
        "train": len(given.train),
        "training_seconds": round(seconds),
        "epochs": model.history["epochs"],
        "dtype": options.dtype,
    }


@dataclass
class Cell:
    """One corpus and one head; what is found out on the way is kept beside the record."""

    name: str
    head: str
    options: argparse.Namespace
    facts: Result = field(default_factory=dict)

    def record(self) -> Record:
        """The audit of the model, which is trained first."""
        given, folder = corpus(self.name), self.options.runs / f"{self.name}-{self.head}"
        model, self.facts = learnt(given, self.head, folder, self.options)
        limit = (self.options.limit or None) if self.name == "imdb" else None
        plan = AuditPlan(EXPLAINERS, AUDITS + (EXACT if self.head == "attention" else ()), limit=limit)
        started = time.monotonic()
        made = audit(model, given.test, plan, folder / "audit", {"corpus": {"name": self.name}}, given)
        self.facts["audit_seconds"] = round(time.monotonic() - started)
        return made

    def about(self, record: Record) -> Result:
        """How the model was trained, and what each explainer cost."""
        costs = {name: record.summary[name] for name in ("explainer_seconds", "explainer_cost")}
        return {"training": self.facts | costs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--runs", type=Path, default=Path("runs/transformers"))
    parser.add_argument("--only", choices=CORPORA, help="one corpus; the page is not written")
    parser.add_argument("--head", choices=HEADS, help="one head; the page is not written")
    parser.add_argument("--limit", type=int, default=500)
    options = parser.parse_args()
    results: dict[str, Result] = {}
    for name in (options.only,) if options.only else CORPORA:
        for head in (options.head,) if options.head else HEADS:
            cell = Cell(name, head, options)
            results[f"{name}-{head}"] = kept(HERE / "results" / f"{name}-{head}.json", cell.record, cell.about)
    if not (options.only or options.head):
        put(HERE / "README.md", page(results))


if __name__ == "__main__":
    main()
