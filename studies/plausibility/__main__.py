"""Trains a model on each corpus with human evidence, audits it, and writes tables: explainers beside people and model.

    ASSAY_DATA=folder python -m studies.plausibility [--device cuda] [--corpora all] [--limit N] [--runs folder]

Each run is resumed where it stopped; finished ones are only read. Only a run of everything is put into README.md.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import hashlib
from dataclasses import replace
from pathlib import Path

from assay.data.corpora import corpus
from assay.explainers import EXPLAINERS
from assay.explainers.choice import separated
from assay.models.config import Training
from assay.models.recipes import PRESETS, Recipe, train
from assay.records import CHANCE, Record
from assay.run.auditing import audited
from assay.run.examination import AuditPlan
from studies.pages import made, put, table

README = Path(__file__).with_name("README.md")
TITLES = {"hatexplain": "HateXplain", "movies": "ERASER movies", "esnli": "e-SNLI"}
RECIPES: dict[str, Recipe] = {
    "hatexplain": PRESETS["default"],
    "movies": PRESETS["default"],
    "esnli": replace(PRESETS["default"], training=Training(batch_size=128)),
}
# A review has some 800 words: a sample of them, and the explainers that read one a few hundred times at most.
FEW = {
    "movies": (
        *("attention", "attention_x_gradient", "gradient", "gradient_norm", "input_x_gradient", "integrated_gradients"),
        *("lrp", "deeplift", "leave_one_out", "occlusion_sentence", "random"),
    )
}
TEXTS = {"movies": 40}
STABLE = {name: f"{name}(epsilon=0.01)" for name in ("lrp", "attnlrp")}
AUDITS = ("plausibility", "erasure(shuffles=10, prefixes=32)")
MEASURES = (
    ("plausibility", "token_f1", "token F1"),
    ("plausibility", "iou_f1", "IOU F1"),
    ("plausibility", "auprc", "AUPRC"),
    ("erasure", "comprehensiveness", "comprehensiveness"),
    ("erasure", "sufficiency", "sufficiency ↓"),
    ("erasure", "flip", "flip ↓"),
)
LOW = (4, 5)  # where less is better


def run(name: str, folder: Path, limit: int | None, device: str) -> Record:
    """The audit of the model of one corpus."""
    given = corpus(name)
    model = train(given, RECIPES[name], folder / "model", device)
    plan = AuditPlan(
        tuple(STABLE.get(each, each) for each in FEW.get(name, tuple(EXPLAINERS))),
        AUDITS,
        limit=limit or TEXTS.get(name),
    )
    key = hashlib.blake2b(repr(plan).encode(), digest_size=4).hexdigest()
    about = {"corpus": {"name": name, "skipped": given.skipped}}
    return audited(model, given.test, plan, folder / f"audit-{key}", about)


def section(name: str, record: Record) -> list[str]:
    """The table of one corpus, with how good its model is and which explainers are not there."""
    summary = record.summary
    known = {finding.subject for finding in record.findings}
    shown = [explainer for explainer in (*summary["plan"]["explainers"], CHANCE) if explainer in known]
    found = [[record.finding(audit_name, each, measure) for audit_name, measure, _ in MEASURES] for each in shown]
    numbers = [[None if finding is None else finding.mean for finding in row] for row in found]
    evidence = record.finding("plausibility", shown[0], "token_f1")
    absent = [explainer for explainer in summary["plan"]["explainers"] if explainer not in known]
    lines = [
        f"### {TITLES[name]}",
        "",
        f"{summary['model']['description']}; accuracy {summary['model']['test']['accuracy']:.3f} on "
        f"{summary['corpus']['audited']:,} texts, {0 if evidence is None else evidence.n:,} of them with evidence.",
        "",
        *table(["explainer", *(title for *_, title in MEASURES)], shown, numbers, LOW),
        "",
    ]
    if name in FEW:
        lines += ["The other explainers would read each of these long texts thousands of times.", ""]
    return [*lines, f"Not for this model: {', '.join(absent)}.", ""] if absent else lines


def page(records: dict[str, Record]) -> str:
    """All tables as Markdown, with machine and date."""
    sections = [line for name, record in records.items() for line in section(name, record)]
    return "\n".join([made("studies.plausibility", list(records.values())), "", *sections])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--corpora", default="all")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--runs", type=Path, default=Path("runs/plausibility"))
    options = parser.parse_args()
    names = tuple(RECIPES) if options.corpora == "all" else separated(options.corpora)
    records = {name: run(name, options.runs / name, options.limit, options.device) for name in names}
    text = page(records)
    (options.runs / "tables.md").write_text(text, encoding="utf-8")
    print(text)
    if (options.corpora, options.limit) == ("all", None):
        put(README, text)


if __name__ == "__main__":
    main()
