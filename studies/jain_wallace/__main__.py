"""Trains each model, audits it, and writes the table of README.md: Kendall's τ of attention beside the paper's.

    ASSAY_DATA=folder python -m studies.jain_wallace [--device cuda] [--only imdb/lstm --limit 1000]

Results are kept in results/; what stands there is only read, and an interrupted run goes on.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from dataclasses import replace
from functools import partial
from pathlib import Path

from assay.data.corpora import corpus
from assay.models.recipes import Recipe, preset
from assay.records import Finding, Record
from assay.run.examination import AuditPlan
from studies.jain_wallace.published import ACCURACY, CORPORA, ENCODERS, PAIRS, PUBLISHED, RELEASED, Figure, same
from studies.pages import made_from, put
from studies.results import Result, finding, kept, run

HERE = Path(__file__).parent
PLAN = AuditPlan(explainers=("attention", "gradient", "leave_one_out", "random"))


def recipe(name: str, encoder: str) -> Recipe:
    """The preset that is closest to the paper."""
    chosen = preset("jain-wallace", name, encoder)
    return replace(chosen, architecture=replace(chosen.architecture, encoder=encoder))


def record(name: str, encoder: str, limit: int | None, folder: Path, device: str) -> Record:
    return run(corpus(name), recipe(name, encoder), replace(PLAN, limit=limit), folder, device)


def lines(name: str, encoder: str, result: Result) -> list[str]:
    """Lines of the table for one model: gradient, leave-one-out, and those two with each other."""
    classes = result["corpus"]["classes"]
    theirs = f" ({ACCURACY[same(name)]:.2f})" if encoder == "lstm" else ""
    title = f"{CORPORA[name]} | {ENCODERS[encoder]} | {result['model']['test']['accuracy']:.3f}{theirs}"
    rows = []
    for pair, released in zip(PAIRS, RELEASED[same(name), encoder, "additive"], strict=True):
        groups = classes if len(classes) <= 3 else ("all",)
        ours = " / ".join(told(figure(finding(result, "agreement", pair, "tau", group))) for group in groups)
        figures = PUBLISHED.get((same(name), encoder, pair.removeprefix("attention~")), ())
        paper = " / ".join(map(told, figures)) or "–"
        every = finding(result, "agreement", pair, "tau")
        assert every is not None
        interval = f"{every.mean:.3f} [{every.low:.3f}, {every.high:.3f}]"
        share = f"{every.significant:.2f}"
        cells = (title, pair.replace("~", " ~ "), ours, paper, interval, share, told(released), f"{every.n:,}")
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def figure(found: Finding | None) -> Figure | None:
    """What the paper tells of a correlation."""
    return None if found is None or found.significant is None else (found.mean, found.std, found.significant)


def told(given: Figure | None) -> str:
    """A mean with its standard deviation, and the share of significant texts in brackets."""
    return "–" if given is None else f"{given[0]:.2f} ± {given[1]:.2f} ({given[2]:.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--runs", type=Path, default=Path("runs/jain-wallace"))
    parser.add_argument("--only", help="one cell, such as snli/lstm; the page is not written")
    parser.add_argument("--limit", type=int, help="texts of the test set to audit, drawn at random; without it all")
    options = parser.parse_args()
    cells = [options.only.split("/")] if options.only else [(name, each) for name in CORPORA for each in ENCODERS]
    results = {}
    for name, encoder in cells:
        made = partial(record, name, encoder, options.limit, options.runs / f"{name}-{encoder}", options.device)
        results[name, encoder] = kept(HERE / "results" / f"{name}-{encoder}.json", made)
    if options.only:
        return
    names = ("corpus", "encoder", "accuracy (paper)", "τ of", "ours, by class", "paper", "all [95 %]", "significant")
    head = f"| {' | '.join((*names, 'released, all', 'n'))} |"
    table = [line for (name, encoder), result in results.items() for line in lines(name, encoder, result)]
    made_by = made_from("studies.jain_wallace", list(results.values()))
    put(HERE / "README.md", "\n".join([made_by, "", head, "|" + "---|" * (len(names) + 2), *table, ""]))


if __name__ == "__main__":
    main()
