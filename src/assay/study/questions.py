"""Answers the questions of a plan: one table each, from its finished trials."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
from jaxtyping import Float, Int

from assay.audits import AUDITS
from assay.errors import AssayError
from assay.explainers.choice import bare
from assay.lookup import BASELINES, RANDOM, WORDS
from assay.metrics import intervals as shares
from assay.metrics.comparisons import ENOUGH, FEWEST, Contrast, by_example, holm, paired, student
from assay.records import INSTANCES, SUMMARY, Finding, findings_of, read_table
from assay.stories import Measure, Story, story_of
from assay.study.plans import Question, StudyPlan
from assay.study.results import MODEL, Answer, Cell, Column, Difference, Missing, Over, Row, State
from assay.study.trials import Folder, Trial

# Findings of finished trials, and numbers of single texts where tests need them.


Key = tuple[str, str, str]  # audit, subject, measure
SIGNIFICANT = "significant"
UNNAMED = "attention"  # the subject of a measure that names none


@dataclass(frozen=True)
class Finished:
    """A finished trial with its findings over all texts, in their order."""

    trial: Trial
    folder: Path | None  # None where findings are all that is left of it
    findings: Mapping[Key, Finding]
    audits: Mapping[str, Mapping[str, Any]]
    left_out: Mapping[str, str]  # explainers that this model cannot serve, and why

    def gaps(
        self, audit: str, measure: str, first: str, second: str
    ) -> tuple[Int[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Indices of the examples, and the difference of the first subject from the second for each."""
        if self.folder is None:
            return np.zeros(0, dtype=int), np.zeros(0)
        path = (self.folder / INSTANCES).absolute()
        known = set(pq.read_schema(path).names)
        columns = [_column_name(measure, subject, known) for subject in (first, second)]
        if None in columns:
            return np.zeros(0, dtype=int), np.zeros(0)
        rows = pq.read_table(path, columns=["example", *columns], filters=pa.compute.field("audit") == audit)
        values = [rows[name].to_numpy().astype(float) for name in columns]
        return rows["example"].to_numpy(), values[0] - values[1]


def finished(trials: Sequence[Trial], folder: Folder) -> dict[str, Finished | State]:
    """Each trial by its identity: its findings, or that it failed or was not run."""
    found: dict[str, Finished | State] = {}
    for trial in trials:
        if trial.identity not in found:
            found[trial.identity] = _read(trial, folder) if folder.done(trial) else _state(trial, folder)
    return found


def earlier(trials: Sequence[Trial], table: Path) -> dict[str, Finished]:
    """Trials of a stored table of findings, by identity."""
    held: dict[tuple[str, str, int, str], list[Finding]] = {}
    for row in read_table(table).to_pylist():
        names = row["corpus"], row["model"], row["seed"], row["asked"]
        numbers = {name: row[name] for name in ("audit", "subject", "measure", "mean", "low", "high", "n", "kind")}
        held.setdefault(names, []).append(Finding(group="all", std=math.nan, **numbers))
    found = {}
    for trial in trials:
        findings = held.get((trial.corpus.title, trial.kind.name, trial.seed, trial.audit_set.name), [])
        if findings:
            by_key = {(each.audit, each.subject, each.measure): each for each in findings}
            found[trial.identity] = Finished(trial, None, by_key, {}, {})
    return found


def _read(trial: Trial, folder: Folder) -> Finished:
    place = folder.trial(trial)
    try:
        summary = json.loads((place / SUMMARY).read_text(encoding="utf-8"))
        findings = findings_of(row for row in summary["findings"] if row["group"] == "all" and row["n"] > 0)
        findings += [*_significant(findings), *_good(summary)]
        audits, left_out = summary["audits"], summary.get("left_out") or {}
    except (OSError, ValueError, KeyError, TypeError) as fault:
        told = f"{place} holds a damaged result ({fault}); remove the folder and run the study again."
        raise AssayError(told) from fault
    return Finished(trial, place, {(f.audit, f.subject, f.measure): f for f in findings}, audits, left_out)


def _significant(findings: Sequence[Finding]) -> list[Finding]:
    """The share of texts in which a correlation is significant, as a measure of its own."""
    return [
        _share(each.audit, each.subject, SIGNIFICANT, each.significant, each.n)
        for each in findings
        if each.significant is not None
    ]


def _good(summary: Mapping[str, Any]) -> list[Finding]:
    """The accuracy of the model."""
    n, accuracy = int(summary["corpus"]["audited"]), float(summary["model"]["test"]["accuracy"])
    if n == 0:
        return []
    return [_share(MODEL, MODEL, "accuracy", accuracy, n)]


def _share(audit: str, subject: str, measure: str, share: float, n: int) -> Finding:
    """A proportion of n texts, with Blaker's (2000) interval."""
    low, high = shares.share(np.array([round(share * n)]), np.array([n]))
    spread = (share * (1 - share)) ** 0.5
    return Finding(audit, subject, measure, "all", share, float(low[0]), float(high[0]), spread, n, kind="exact")


def _state(trial: Trial, folder: Folder) -> State:
    return "not run" if folder.reason(trial) is None else "failed"


def _column_name(measure: str, subject: str, known: set[str]) -> str | None:
    """The column of a subject's numbers; one without subjects is named by the measure alone."""
    names = [f"{measure}:{subject}", *([measure] if subject == UNNAMED else [])]
    return next((name for name in names if name in known), None)


# One cell of a table: the mean over the seeds of a column, and the difference from another subject.


def cell(question: Question, subject: str, column: Sequence[Finished]) -> Cell | None:
    """A subject's mean over the finished trials of a column; None where none has a number.

    The interval is Student's over seeds; with one seed it is the one over texts that the trial itself has.
    """
    key = (question.audit, subject, question.measure)
    own = [each.findings[key] for each in column if key in each.findings]
    if not own:
        return None
    mean, low, high = student(np.array([each.mean for each in own]))
    over: Over = "seeds"
    if len(own) == 1:
        over, low, high = "texts", own[0].low, own[0].high
    difference = _difference(question, subject, column)
    return Cell(mean, low, high, over, len(own), sum(each.n for each in own), difference)


def adjusted(rows: Sequence[Row]) -> tuple[Row, ...]:
    """The rows with Holm's adjusted p-values over all differences of the table."""
    every = [cell.difference for row in rows for cell in row.cells if cell is not None and cell.difference is not None]
    values = iter(holm([each.p for each in every]))
    return tuple(replace(row, cells=tuple(_with(cell, values) for cell in row.cells)) for row in rows)


def _difference(question: Question, subject: str, column: Sequence[Finished]) -> Difference | None:
    """Over seeds where there are enough, else over texts; chance baselines are not tested against themselves."""
    if subject == question.against or {subject, question.against} <= set(BASELINES):
        return None
    keys = [(question.audit, name, question.measure) for name in (subject, question.against)]
    both = [each for each in column if all(key in each.findings for key in keys)]
    if len(both) >= ENOUGH:
        means = np.array([[each.findings[key].mean for key in keys] for each in both])
        return _judged(paired(means[:, 0], means[:, 1]), "seeds")
    gaps = [each.gaps(question.audit, question.measure, subject, question.against) for each in both]
    if not gaps:
        return None
    contrast = by_example(np.concatenate([each[0] for each in gaps]), np.concatenate([each[1] for each in gaps]))
    return _judged(contrast, "texts") if contrast is not None and contrast.sizes[0] >= FEWEST else None


def _judged(contrast: Contrast | None, over: Over) -> Difference | None:
    if contrast is None:
        return None
    return Difference(contrast.gap, contrast.low, contrast.high, contrast.p, contrast.p, over, contrast.sizes[0])


def _with(cell: Cell | None, values: Iterator[float]) -> Cell | None:
    if cell is None or cell.difference is None:
        return cell
    return replace(cell, difference=replace(cell.difference, adjusted=next(values)))


Found = Mapping[str, Finished | State]  # by the identities of trials


def questions(plan: StudyPlan) -> tuple[Question, ...]:
    """Model accuracy, and the plan's questions, or else one for each main measure of its audits."""
    known = dict.fromkeys(bare(name) for audit_set in plan.audits for name in audit_set.audits)
    return Question(MODEL, "accuracy", "How often are the models right?"), *(plan.questions or _main(known))


def _main(audits: Iterable[str]) -> tuple[Question, ...]:
    return tuple(
        Question(audit, measure.name, against=_story(audit).against or RANDOM)
        for audit in audits
        for measure in _mains(_story(audit))
    )


def _mains(story: Story) -> list[Measure]:
    """The main measures of an audit; where none is called so, those of which one way is better."""
    main = [measure for measure in story.measures if measure.main]
    return main or [measure for measure in story.measures if measure.better]


def _story(audit: str) -> Story:
    """The story of an audit, and of how good the models are."""
    if audit == MODEL:
        return Story(measures=(Measure("accuracy", better="high"),))
    return story_of(AUDITS[audit]) if audit in AUDITS else Story(f"{audit.replace('_', ' ').capitalize()}:")


def _title(story: Story, measure: Measure) -> str:
    """What a table is called where the plan does not say: the question of the audit, and the measure."""
    return f"{WORDS.named(story.title)} {measure.label[:1].upper()}{measure.label[1:]}"


def answered(question: Question, plan: StudyPlan, found: Found) -> Answer:
    """The table of a question; missing numbers are noted, and p-values are adjusted over the table."""
    groups = _groups(question, plan)
    columns = tuple(_column(place, trials, found) for place, trials in groups.items())
    done = [_done(trials, found) for trials in groups.values()]
    subjects = _subjects(question, [each for column in done for each in column])
    rows = tuple(Row(subject, tuple(cell(question, subject, column) for column in done)) for subject in subjects)
    tested = any((question.audit, question.against, question.measure) in each.findings for each in _all(done))
    story = _story(question.audit)
    measure = story.measure(question.measure)
    return Answer(
        question.title or _title(story, measure),
        question.audit,
        question.measure,
        None if measure.better is None else measure.better == "high",
        question.against if tested else None,
        columns,
        adjusted(rows),
        tuple(dict.fromkeys(story.kinds.get(kind, kind) for kind in sorted(_kinds(question, done)))),
        missing([trial for trials in groups.values() for trial in trials], found),
        tuple(dict.fromkeys(_notes(question, columns, done))),
        measure.label,
    )


def _kinds(question: Question, done: Sequence[Sequence[Finished]]) -> set[str]:
    return {each.kind for column in done for each in _of(question, column)}


def missing(trials: Sequence[Trial], found: Found) -> tuple[Missing, ...]:
    """The trials without a result."""
    states = [(trial.title, found[trial.identity]) for trial in trials]
    return tuple(Missing(title, state) for title, state in states if not isinstance(state, Finished))


def _groups(question: Question, plan: StudyPlan) -> dict[tuple[str, str, str], list[Trial]]:
    """The trials of each column in plan order; sets of audits are named where several share the audit."""
    sets = [audit_set for audit_set in plan.audits if question.audit in map(bare, audit_set.audits)]
    if question.audit == MODEL:
        sets = [*plan.audits[:1]]  # the model is the same in all
    groups: dict[tuple[str, str, str], list[Trial]] = {
        (corpus.title, kind.name, audit_set.name): []
        for corpus in plan.corpora
        for kind in plan.models
        for audit_set in sets
    }
    for trial in plan.trials:
        place = (trial.corpus.title, trial.kind.name, trial.audit_set.name)
        if place in groups:
            groups[place].append(trial)
    return groups if len(sets) > 1 else {(corpus, kind, ""): each for (corpus, kind, _), each in groups.items()}


def _column(place: tuple[str, str, str], trials: Sequence[Trial], found: Found) -> Column:
    states = [each.state for each in missing(trials, found)]
    return Column(*place, len(trials), len(trials) - len(states), states.count("failed"))


def _done(trials: Sequence[Trial], found: Found) -> list[Finished]:
    return [each for trial in trials if isinstance(each := found[trial.identity], Finished)]


def _all(done: Sequence[Sequence[Finished]]) -> Iterator[Finished]:
    return (each for column in done for each in column)


def _of(question: Question, column: Sequence[Finished]) -> Iterator[Finding]:
    for each in column:
        for (audit, _, measure), finding in each.findings.items():
            if (audit, measure) == (question.audit, question.measure):
                yield finding


def _subjects(question: Question, done: Sequence[Finished]) -> list[str]:
    """The named subjects, or all with a number, chance baselines last."""
    found = list(dict.fromkeys(each.subject for each in _of(question, done)))
    return list(question.subjects) or sorted(found, key=lambda name: name in BASELINES)


def _notes(question: Question, columns: Sequence[Column], done: Sequence[Sequence[Finished]]) -> Iterator[str]:
    """Why numbers are missing although trials are finished."""
    for column, trials in zip(columns, done, strict=True):
        for each in trials:
            about = each.audits.get(question.audit, {})
            if not about.get("applies", True):
                yield f"{column.title}: {about.get('why') or 'the audit does not apply'}."
            for name, reason in each.left_out.items():
                if not question.subjects or name in question.subjects:
                    yield f"{column.title}: {name} is left out: {reason}."
    if any(done) and not any(True for column in done for _ in _of(question, column)):
        known = dict.fromkeys(
            measure for each in _all(done) for audit, _, measure in each.findings if audit == question.audit
        )
        there = f"; there are: {', '.join(known)}" if known else ""
        yield f"No finished trial has the measure {question.measure} of {question.audit}{there}."
