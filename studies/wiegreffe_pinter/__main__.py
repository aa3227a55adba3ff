"""Puts the four tests of attention to one BiLSTM on each corpus, and writes the tables and the figure of README.md.

    ASSAY_DATA=folder python -m studies.wiegreffe_pinter [--device cuda] [--only sst] [--train-limit N] [--limit N]

`--train-limit` and `--limit` are the texts of imdb and agnews to train on and to audit; 0 is all of them. Results are
kept in results/; what stands there is only read, and an interrupted run goes on.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from functools import partial
from pathlib import Path

import numpy as np

from assay.data.corpora import corpus
from assay.data.examples import thinned
from assay.models.recipes import Recipe, preset
from assay.records import Record
from assay.run.examination import AuditPlan
from studies.pages import put
from studies.results import Result, kept, run
from studies.wiegreffe_pinter.tables import page

HERE = Path(__file__).parent
CORPORA = ("sst", "imdb", "newsgroups", "agnews")
LARGE = ("imdb", "agnews")
AUDITS = ("frozen_uniform", "seed_variance", "guide", "trained_adversary")


def record(name: str, recipe: Recipe, options: argparse.Namespace, audits: tuple[str, ...] = AUDITS) -> Record:
    """The audit of the model of one corpus."""
    given, limit = corpus(name), None
    if name in LARGE and options.train_limit:
        given = thinned(given, options.train_limit, 0)
    if name in LARGE and options.limit:
        limit = options.limit
    plan = AuditPlan(explainers=("attention",), audits=audits, limit=limit)
    return run(given, recipe, plan, options.runs / name, options.device)


def about(record: Record) -> Result:
    """How the model was trained, and F1 of the second class with learnt and with even attention."""
    labels = dict(zip(*(record.examples[name].to_pylist() for name in ("example", "label")), strict=True))
    rows = record.audit_rows("frozen_uniform")
    truth = np.array([labels[example] for example in rows["example"].to_pylist()])
    scores = {}
    for name in ("learnt", "uniform"):
        right = rows[f"right:{name}"].to_numpy() == 1
        predicted = np.where(right, truth, 1 - truth)  # all corpora here have two classes
        scores[name] = round(float(2 * (right & (truth == 1)).sum() / max(1, truth.sum() + predicted.sum())), 6)
    return {"recipe": record.summary["model"]["history"]["recipe"], "f1": scores}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--runs", type=Path, default=Path("runs/wiegreffe-pinter"))
    parser.add_argument("--only", choices=CORPORA, help="one corpus; the page is not written")
    parser.add_argument("--train-limit", type=int, default=4000)
    parser.add_argument("--limit", type=int, default=2000)
    options = parser.parse_args()
    results: dict[str, Result] = {}
    for name in (options.only,) if options.only else CORPORA:
        made = partial(record, name, preset("jain-wallace", name), options)
        results[name] = kept(HERE / "results" / f"{name}.json", made, about)
    if not options.only:
        from studies.wiegreffe_pinter.figures import draw  # a machine that only runs cells need not be able to draw

        put(HERE / "README.md", page(results))
        draw(results, HERE / "figures")


if __name__ == "__main__":
    main()
