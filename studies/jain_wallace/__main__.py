"""Trains each model, audits it, and writes table.md: Kendall's τ of attention beside the paper's.

    ASSAY_DATA=folder python -m studies.jain_wallace [--device cuda] [--runs runs/jain-wallace]

Each run is resumed where it stopped; finished ones are only read.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import platform
import time
from dataclasses import replace
from pathlib import Path

import torch

from assay.data.corpora import corpus
from assay.models.presets import PRESETS
from assay.models.recipes import train
from assay.records import Record
from assay.run.audit import audit
from assay.run.plan import AuditPlan
from studies.jain_wallace.published import PUBLISHED

CORPORA = {"sst": "SST", "newsgroups": "20News", "agnews": "AG News"}
ENCODERS = {"lstm": "BiLSTM", "average": "Average"}
PLAN = AuditPlan(explainers=("attention", "gradient", "leave_one_out", "random"))


def run(name: str, encoder: str, folder: Path, device: str) -> Record:
    """The audit of one model on one corpus, with the preset that is closest to the paper."""
    preset = PRESETS["jain-wallace"]
    recipe = replace(preset, architecture=replace(preset.architecture, encoder=encoder))
    given = corpus(name)
    model = train(given, recipe, folder / "model", device)
    return audit(model, given.test, PLAN, folder, {"corpus": {"name": name}})


def row(name: str, encoder: str, record: Record) -> list[str]:
    """Lines of the table for one model: gradient, leave-one-out, and those two with each other."""
    lines = []
    test = record.summary["model"]["test"]
    title = f"{CORPORA[name]} | {ENCODERS[encoder]} | {test['accuracy']:.3f}"
    for pair in ("attention~gradient", "attention~leave_one_out", "gradient~leave_one_out"):
        found = [record.finding("agreement", pair, "tau", group) for group in record.summary["corpus"]["classes"]]
        ours = " / ".join(f"{f.mean:.2f} ± {f.std:.2f}" if f else "–" for f in found)
        interval = record.finding("agreement", pair, "tau")
        assert interval is not None
        paper = PUBLISHED.get((name, encoder, pair.removeprefix("attention~")))
        theirs = " / ".join(f"{mean:.2f} ± {std:.2f}" for mean, std in paper) if paper else "–"
        every = f"{interval.mean:.3f} [{interval.low:.3f}, {interval.high:.3f}]"
        lines.append(f"| {title} | {pair.replace('~', ' ~ ')} | {ours} | {theirs} | {every} | {interval.n:,} |")
    return lines


def page(records: dict[tuple[str, str], Record], device: str) -> str:
    """The table as Markdown, with machine and date."""
    lines = [line for (name, encoder), record in records.items() for line in row(name, encoder, record)]
    where = torch.cuda.get_device_name() if device == "cuda" else f"{platform.machine()} CPU, one thread"
    head = "| corpus | encoder | accuracy | τ of | ours, class 0 / 1 | paper, class 0 / 1 | all [95 %] | n |"
    made = (
        f"Made by `python -m studies.jain_wallace` on {time.strftime('%Y-%m-%d')}, {where}, torch {torch.__version__}."
    )
    return "\n".join([made, "", head, "|" + "---|" * 8, *lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--runs", type=Path, default=Path("runs/jain-wallace"))
    options = parser.parse_args()
    records = {
        (name, encoder): run(name, encoder, options.runs / f"{name}-{encoder}", options.device)
        for name in CORPORA
        for encoder in ENCODERS
    }
    table = page(records, options.device)
    (options.runs / "table.md").write_text(table, encoding="utf-8")
    print(table)


if __name__ == "__main__":
    main()
