"""An audit from a model and examples to a record."""

from __future__ import annotations

import contextlib
import ctypes
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from rich.progress import Progress, TaskID

from assay import progress
from assay.audits.cases import Audit, PreparedAudit, Remarking, Resources
from assay.audits.findings import tell
from assay.data.batches import Tokenised, by_tokens, tokenise
from assay.data.examples import Corpus, Example
from assay.errors import AssayError
from assay.explainers.given import computing, looked_up
from assay.models import store
from assay.models.recipes import fingerprint
from assay.models.store import Opened
from assay.models.textmodel import doubled
from assay.records import Record
from assay.run.examination import NOTES, Examination
from assay.run.phrases import Home, divided, fitting_trees
from assay.run.plan import AuditPlan, fitting
from assay.run.portions import places, places_at_once
from assay.run.resume import Parts
from assay.run.summaries import examples_table, instances_table, summarised


def audit(
    model: Opened,
    examples: Sequence[Example],
    plan: AuditPlan,
    folder: Path | None = None,
    about: dict[str, Any] | None = None,
    corpus: Corpus | None = None,
    home: Path | None = None,
) -> Record:
    """The record of the plan; with a folder it is written there, and an interrupted audit goes on.

    `about` goes into the summary: what the caller knows of corpus and command. The corpus that the model learnt from
    is what some audits train other models on; the model's `home` is its folder, where what was fitted to it is kept.
    """
    started = time.monotonic()
    chosen = plan.sample(examples)
    rows, skipped = tokenise([example for _, example in chosen], model.tokeniser, model.tokeniser.options.longest)
    if not rows:
        raise AssayError("None of the texts can be audited: they are empty or too long for this model.")
    named, left_out = fitting(plan.chosen_explainers(), model.network)
    explainers = looked_up(named, rows, [chosen[row.index][0] for row in rows])
    builders = fitting_trees(model, plan.tree, plan.scorer, Home(home, None if corpus is None else lambda: corpus))
    parts = Parts(folder)
    weights = store.fingerprint(model.network)
    finished = parts.claim({"plan": plan.json(), "model": weights, "data": fingerprint(examples)})
    if finished and folder is not None:
        return tell(Record.read(folder))
    resources = Resources(model, computing(explainers), rows, corpus, folder, plan.seed)
    audits = {name: _prepared(audit, resources) for name, audit in plan.chosen_audits().items()}
    read = replace(model, network=doubled(model.network))
    examination = Examination(read, explainers, audits, plan.seed, model.network)
    table, notes = _examine_all(examination, rows, chosen, parts)
    notes["left_out"] = left_out
    notes["remarks"] = {name: each.remark for name, each in audits.items() if isinstance(each, Remarking)}
    summary = summarised(read, plan, table, notes)
    summary["model"]["sha256"] = weights
    known = about or {}
    summary["corpus"] |= {"test": len(examples), **known.get("corpus", {}), "audited": len(table)}
    summary["corpus"]["planted"] = any(example.planted for _, example in chosen)
    summary["corpus"]["unread"] = dict(skipped)
    summary["corpus"]["skipped"] = dict(Counter(known.get("corpus", {}).get("skipped", {})) + Counter(skipped))
    summary |= {
        "command": known.get("command", "assay.audit(...) in Python"),
        "seconds": round(time.monotonic() - started, 1),
    }
    record = Record(summary, instances_table(table, list(audits)), examples_table(table))
    record = tell(record, plan.chosen_audits())
    if builders:
        record.summary["trees"] = divided(model, rows, record, builders)
    if folder is not None:
        record.write(folder)
        parts.clear()
        resources.clear()
    return record


def _prepared(audit: Audit, resources: Resources) -> Audit:
    return audit.prepared(resources) if isinstance(audit, PreparedAudit) else audit


def _examine_all(
    examination: Examination,
    rows: Sequence[Tokenised],
    chosen: Sequence[tuple[int, Example]],
    parts: Parts,
) -> tuple[pa.Table, dict[str, dict[str, Any]]]:
    """One table of all batches in the order of the examples, and what was noted on the way."""
    lengths = np.array([places(row) for row in rows])
    tables: list[pa.Table] = []
    sums: dict[str, Counter[str]] = {"seconds": Counter(), "costs": Counter()}
    unfit: dict[str, str] = {}
    with progress.bar() as shown:
        size = len(examination.explainers)
        task = shown.add_task(f"auditing {size} explainer{'s' * (size != 1)}", total=len(rows))
        done = 0.0
        most = places_at_once(examination.model, int(lengths.max()))
        for number, group in enumerate(by_tokens(lengths, most)):
            weight = len(rows) * lengths[group].sum() / lengths.sum()  # long texts take longer: what is left shows it
            ticked = partial(_advance, shown, task, weight)
            batch = [rows[place] for place in group]
            texts = [chosen[row.index][1] for row in batch]
            part = parts.get(f"{most}-{number:05d}", partial(replace(examination, ticked=ticked), batch, texts))
            notes = json.loads(part.schema.metadata[NOTES])
            for kind, total in sums.items():
                total.update(notes[kind])
            unfit |= notes["unfit"]
            tables.append(part.replace_schema_metadata(None))
            done += weight
            shown.update(task, completed=done)
            _release()
    table = pa.concat_tables(tables, promote_options="default").sort_by("example")
    numbers = pa.array([chosen[index][0] for index in table["example"].to_pylist()], pa.int32())
    return table.set_column(0, "example", numbers), {kind: dict(total) for kind, total in sums.items()} | {
        "unfit": unfit
    }


def _advance(shown: Progress, task: TaskID, weight: float, share: float) -> None:
    shown.advance(task, weight * share)


def _release() -> None:
    """Gives freed memory back to the system; batches of many sizes leave glibc's heap in pieces that only grow."""
    with contextlib.suppress(OSError, AttributeError):  # other systems have no such call, and no such heap
        ctypes.CDLL("libc.so.6").malloc_trim(0)
