"""Teaches a model each planted corpus, audits it, and writes a table: how well explainers find the words that decide.

    python -m studies.planted [--device cuda] [--corpora all] [--explainers all] [--limit N] [--runs runs/planted]

Each run is resumed where it stopped; finished ones are only read. Only a run of everything is put into README.md.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np

from assay.data.batches import tokenise
from assay.data.examples import Corpus, Example
from assay.explainers import EXPLAINERS
from assay.explainers.choice import separated
from assay.metrics.performance import accuracy
from assay.models.predictions import predict
from assay.models.recipes import train
from assay.models.store import Trained
from assay.records import Record
from assay.run.audit import audit
from assay.run.plan import AuditPlan
from studies.pages import made, put, table
from studies.planted.curriculum import LESSONS
from studies.planted.lessons import gone_on

README = Path(__file__).with_name("README.md")


def learnt(name: str, folder: Path, device: str) -> tuple[Trained, Corpus]:
    """The model that had the lesson on this corpus, and what it was taught from."""
    lesson = LESSONS[name]
    corpus = lesson.corpus(name)
    first = (lesson.together or (name,))[0]
    learning = replace(corpus, name="+".join(lesson.together) or corpus.name)
    model = train(learning, lesson.recipe, folder / title(first) / "model", device)
    if lesson.second is not None:
        model = gone_on(model, corpus, lesson.second, folder / title(first) / "second")
    return model, corpus


def title(name: str) -> str:
    return name.removeprefix("planted:")


def right(model: Trained, examples: tuple[Example, ...]) -> float:
    """The accuracy."""
    rows, _ = tokenise(examples, model.tokeniser, model.tokeniser.options.longest)
    return accuracy(np.array([row.label for row in rows]), predict(model.network, rows).argmax(-1))


def run(name: str, folder: Path, plan: AuditPlan, device: str) -> tuple[Record, tuple[float, float]]:
    """The audit of one model, and its accuracy on dev and test."""
    model, corpus = learnt(name, folder, device)
    key = hashlib.blake2b(repr(plan).encode(), digest_size=4).hexdigest()
    record = audit(model, corpus.test, plan, folder / title(name) / f"audit-{key}", {"corpus": {"name": corpus.name}})
    return record, (right(model, corpus.dev), right(model, corpus.test))


def measured(
    records: dict[str, Record], explainers: tuple[str, ...], audit_name: str, measure: str
) -> list[list[float | None]]:
    """One row for each explainer, one number for each corpus where there is one."""
    rows: list[list[float | None]] = []
    for explainer in explainers:
        found = [record.finding(audit_name, explainer, measure) for record in records.values()]
        rows.append([None if finding is None else finding.mean for finding in found])
    return rows


def page(records: dict[str, Record], accuracies: dict[str, tuple[float, float]], plan: AuditPlan) -> str:
    """The tables as Markdown, with machine and date."""
    names = [title(name) for name in records]
    numbers = measured(records, plan.explainers, "truth", "auprc")
    rows = [f"| {head} | " + " | ".join(f"{accuracies[name][place]:.3f}" for name in records) + " |"
            for place, head in enumerate(("*accuracy, dev*", "*accuracy, test*"))]  # fmt: skip
    main = table(["explainer", *names], plan.explainers, numbers)
    sizes = "| *texts* | " + " | ".join(str(record.summary["corpus"]["audited"]) for record in records.values()) + " |"
    parts = [made("studies.planted", list(records.values())), "", *main, *rows, sizes, ""]
    shortcut = {name: record for name, record in records.items() if name == "planted:shortcut"}
    if shortcut:
        used = shortcut["planted:shortcut"].finding("shortcut", "model", "used")
        share = "" if used is None else f" The model uses it in {used.mean:.1%} of the texts."
        numbers = measured(shortcut, plan.explainers, "shortcut", "shown")
        head = f"How often the marker of `planted:shortcut` has the highest score, where the model uses it.{share}"
        parts += [head, "", *table(["explainer", "shown"], plan.explainers, numbers), ""]
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--corpora", default="all")
    parser.add_argument("--explainers", default="all")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--runs", type=Path, default=Path("runs/planted"))
    options = parser.parse_args()
    corpora = tuple(LESSONS) if options.corpora == "all" else separated(options.corpora)
    explainers = tuple(EXPLAINERS) if options.explainers == "all" else separated(options.explainers)
    records, accuracies = {}, {}
    for name in corpora:
        audits = ("truth", "shortcut") if name == "planted:shortcut" else ("truth",)
        plan = AuditPlan(explainers, audits, limit=options.limit or LESSONS[name].texts)
        records[name], accuracies[name] = run(name, options.runs, plan, options.device)
    text = page(records, accuracies, plan)
    (options.runs / "table.md").write_text(text, encoding="utf-8")
    print(text)
    if (options.corpora, options.explainers, options.limit) == ("all", "all", None):
        put(README, text)


if __name__ == "__main__":
    main()
