"""Writes the tables of a study as files; equal trials give equal bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from assay.files import write_text
from assay.records import write_table
from assay.report import html
from assay.study.finished import Finished, finished
from assay.study.folder import Folder
from assay.study.page import as_markdown, document, separated
from assay.study.plans import StudyPlan
from assay.study.questions import Found, answered, missing, questions
from assay.study.results import Answer, Line, Study, long

TABLES, FINDINGS, PAGE = "tables", "findings.parquet", "study.html"
OURS = re.compile(r"\d{2,}-[a-z0-9-]*\.(md|csv)")
LONGEST = 60  # letters of a name


def write(plan: StudyPlan, folder: Folder, found: Found | None = None) -> list[Path]:
    """Writes a table for each question, all findings and the page; returns their paths.

    What was found may be given, where trials come from elsewhere than the folder.
    """
    asked = questions(plan)
    found = finished(plan.trials, folder) if found is None else found
    study = studied(plan, found, tuple(answered(question, plan, found) for question in asked))
    written = []
    for place, answer in enumerate(study.answers, start=1):
        for ending, text in ((".md", as_markdown(answer)), (".csv", separated(answer))):
            path = folder.place / TABLES / f"{named(place, answer)}{ending}"
            write_text(path, text)
            written.append(path)
    _clear(folder.place / TABLES, written)
    write_table(long(list(_lines(plan, found))), folder.place / FINDINGS)
    html.write(document(study), folder.place / PAGE)
    return [*written, folder.place / FINDINGS, folder.place / PAGE]


def studied(plan: StudyPlan, found: Found, answers: tuple[Answer, ...]) -> Study:
    """The study with its answers and its progress."""
    lacking = missing(plan.trials, found)
    return Study(
        plan.name,
        tuple(each.title for each in plan.corpora),
        tuple(each.name for each in plan.models),
        plan.seeds,
        len(plan.trials),
        len(plan.trials) - len(lacking),
        answers,
        lacking,
    )


def named(place: int, answer: Answer) -> str:
    """The file name of a table."""
    slug = re.sub(r"[^a-z0-9]+", "-", f"{answer.audit}-{answer.measure}".lower())[:LONGEST].strip("-")
    return f"{place:02d}-{slug}"


def _lines(plan: StudyPlan, found: Found) -> Iterator[Line]:
    """Every finding over all texts, trial by trial in plan order."""
    for trial in plan.trials:
        each = found[trial.identity]
        if isinstance(each, Finished):
            names = (trial.corpus.title, trial.kind.name, trial.seed, trial.audit_set.name)
            for (audit, subject, measure), one in each.findings.items():
                yield Line(*names, audit, subject, measure, one.mean, one.low, one.high, one.n, one.kind)


def _clear(tables: Path, written: list[Path]) -> None:
    """Deletes tables of questions that are no longer in the plan."""
    for path in tables.iterdir() if tables.is_dir() else ():
        if OURS.fullmatch(path.name) and path not in written:
            path.unlink(missing_ok=True)
