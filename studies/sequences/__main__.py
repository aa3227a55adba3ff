"""Puts tasks with one text and with two side by side, and writes the tables of README.md.

    ASSAY_DATA=folder python -m studies.sequences [--device cuda] [--only planted:facts1/lstm]

The real corpora are those of studies.jain_wallace, whose results are read or made; the planted ones are made here.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from assay.data.corpora import corpus
from assay.models.config import Architecture, Training
from assay.models.recipes import Recipe
from assay.records import Record
from assay.run.examination import AuditPlan
from studies import jain_wallace
from studies.jain_wallace import __main__ as published
from studies.pages import made_from, put
from studies.results import Result, finding, kept, run

HERE = Path(__file__).parent
REAL = Path(jain_wallace.__file__).parent / "results"
ONE = ("sst", "newsgroups", "agnews", "planted:keyword", "planted:negation", "planted:majority")
TWO = ("snli", "babi1", "babi2", "babi3", "planted:facts1", "planted:facts2", "planted:facts3", "planted:entail")
ENCODERS = ("lstm", "average")
PLAN = AuditPlan(explainers=("attention", "gradient", "leave_one_out", "random"))


def planted(name: str, encoder: str, folder: Path, device: str) -> Record:
    """The audit of a model that learns a planted corpus; stories take long to be learnt."""
    dropout = 0.2 if name == "planted:entail" else 0.0
    parts = Architecture(encoder=encoder, dropout_words=dropout, dropout_decoder=dropout)
    recipe = Recipe(parts, training=Training(epochs=60, patience=15))
    return run(corpus(name), recipe, PLAN, folder, device)


def result(name: str, encoder: str, runs: Path, device: str) -> Result:
    """What is known of one model, read or made."""
    title = f"{name.replace(':', '-')}-{encoder}"
    if name.startswith("planted:"):
        return kept(HERE / "results" / f"{title}.json", partial(planted, name, encoder, runs / title, device))
    made = partial(published.record, name, encoder, runs / title, device)
    return kept(REAL / f"{title}.json", made)


MEASURES = {
    "τ attention ~ gradient": ("agreement", "attention~gradient", "tau"),
    "τ attention ~ leave-one-out": ("agreement", "attention~leave_one_out", "tau"),
    "τ gradient ~ leave-one-out": ("agreement", "gradient~leave_one_out", "tau"),
    "TVD when shuffled": ("permutation", "attention", "median_tvd"),
    "JSD of the adversary": ("adversary", "attention", "jsd"),
    "optimal erasure": ("minimal_set", "attention", "optimal"),
    "AUPRC": ("truth", "attention", "auprc"),
}


def table(results: Mapping[tuple[str, str], Result], names: Sequence[str], encoder: str) -> str:
    """One line a corpus, with the interval of each mean."""
    head = ("corpus", "classes", "accuracy", *MEASURES)
    lines = [head, ["---"] * len(head)]
    for name in names:
        found = results[name, encoder]
        cells = [_cell(found, *which) for which in MEASURES.values()]
        accuracy = found["model"]["test"]["accuracy"]
        lines.append((name, str(len(found["corpus"]["classes"])), f"{accuracy:.3f}", *cells))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(result: Result, audit: str, subject: str, measure: str) -> str:
    found = finding(result, audit, subject, measure)
    if found is None:
        return "–"
    bound = "≥ " if found.kind == "lower bound" else ""
    return f"{bound}{found.mean:.2f} [{found.low:.2f}, {found.high:.2f}]"


def page(results: Mapping[tuple[str, str], Result]) -> str:
    """Both halves for both encoders."""
    parts = [made_from("studies.sequences", list(results.values()))]
    for encoder in ENCODERS:
        for title, names in (("One text", ONE), ("Two texts", TWO)):
            parts += [f"### {title}, {published.ENCODERS[encoder]}", table(results, names, encoder)]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--runs", type=Path, default=Path("runs/sequences"))
    parser.add_argument("--only", help="one cell, such as planted:facts1/lstm; the page is not written")
    options = parser.parse_args()
    cells = [options.only.split("/")] if options.only else [(name, each) for name in ONE + TWO for each in ENCODERS]
    results = {(name, encoder): result(name, encoder, options.runs, options.device) for name, encoder in cells}
    if not options.only:
        put(HERE / "README.md", page(results))


if __name__ == "__main__":
    main()
