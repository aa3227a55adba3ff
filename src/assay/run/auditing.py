"""An audit from a model and examples to a record."""

from __future__ import annotations

import contextlib
import ctypes
import json
import platform
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from rich.progress import Progress, TaskID

from assay import __version__, progress
from assay.audits import USUAL_AUDITS
from assay.audits.cases import Audit, PreparedAudit, Remarking, Resources, question, trust
from assay.audits.findings import classes_told, summarise, tell
from assay.caching import FinishedParts
from assay.data import corpora
from assay.data import corpora as given
from assay.data.batches import Tokenised, by_tokens, tokenise
from assay.data.examples import Corpus, Example, examples_for
from assay.errors import AssayError
from assay.explainers import USUAL
from assay.explainers.baselines import computing, looked_up
from assay.metrics.performance import accuracy, auc, macro_f1
from assay.models import store
from assay.models.recipes import fingerprint
from assay.models.store import Opened
from assay.models.textmodel import doubled
from assay.records import FIRST_LAYER, SUMMARY, Finding, Record, finding_rows, versions
from assay.run.api import opened_model
from assay.run.examination import NOTES, OWN, AuditPlan, Examination, Instruments, fitting, places, places_at_once
from assay.run.explaining import Home, divided, fitting_trees
from assay.run.reporting import Result


def summarised(model: Opened, plan: AuditPlan, table: pa.Table, notes: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The summary: what was run with what, how good the model is, and every finding."""
    seconds, unfit = notes["seconds"], notes["unfit"]
    every = plan.chosen_audits()
    kinds = {name: trust(audit, model.network, len(model.classes)) for name, audit in every.items()}
    findings: list[Finding] = []
    predicted = _column(table, "predicted")
    for name, audit in every.items():
        if name not in unfit:
            told = classes_told(audit, model.classes)
            findings += summarise(name, kinds[name], _measures(table, name), predicted, told)
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


def audited(
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
    parts = FinishedParts(folder)
    weights = store.fingerprint(model.network)
    identity = {"plan": plan.json(), "model": weights, "data": fingerprint(examples)}
    begun = parts.claim(identity, "an audit with other options, model or data")
    if begun and folder is not None and (folder / SUMMARY).exists():
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
    record = tell(record, plan.chosen_audits(), plan.chosen_explainers())
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
    parts: FinishedParts,
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
            part = parts.table(f"{most}-{number:05d}", partial(replace(examination, ticked=ticked), batch, texts))
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


def audit(
    model: Any,
    data: Any,
    explainers: Instruments[Any] = USUAL,
    audits: Instruments[Audit] = USUAL_AUDITS,
    seed: int = 0,
    corpus: Any = None,
    limit: int | None = None,
    *,
    split: str = "test",
    epsilon: float = 0.01,
    tree: str | None = None,
    scorer: str | None = None,
    out: str | Path | None = None,
) -> Result:
    """How true the explanations of the model's decisions are, on the test texts of a corpus or on examples.

    The texts are a corpus, by its name, as a file, a table, or a list of examples or (text, label) pairs; its classes
    are matched with the model's by their names. Of all the texts, `limit` are drawn by the seed. Explainers and audits
    are named, or are objects, in a list or by other names in a dict, where arrays of one score a word may stand for an
    explainer. The audits sanity, stability and roar train other models on the corpus: the one that is audited, unless
    another is given. With a folder `out`, the record is written there, and an interrupted audit goes on.
    """
    opened = opened_model(model)
    plan = AuditPlan.of(explainers, audits, seed=seed, limit=limit, epsilon=epsilon, tree=tree, scorer=scorer)
    learnt = None if corpus is None else given.corpus(corpus)
    place = None if out is None else Path(out)
    home = Path(model) if isinstance(model, str | Path) and Path(model).is_dir() else None
    if _are_examples(data):
        return Result(audited(opened, _some(data), plan, place, corpus=learnt, home=home))
    found = given.corpus(data, seed, whole=isinstance(data, list | tuple) or "corpus" not in opened.history)
    name = str(data) if isinstance(data, str | Path) else found.name
    about = {"corpus": corpora.about(found, name) | {"split": split}}
    examples = _some(examples_for(found, split, opened.classes))
    return Result(audited(opened, examples, plan, place, about, learnt or found, home))


def _are_examples(data: Any) -> bool:
    return isinstance(data, list | tuple) and all(isinstance(each, Example) for each in data)


def _some(examples: Sequence[Example]) -> Sequence[Example]:
    if not examples:
        raise AssayError("There are no examples to audit.")
    return examples
