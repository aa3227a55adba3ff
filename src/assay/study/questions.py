"""Answers the questions of a plan: one table each, from its finished trials."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from assay.audits import AUDITS
from assay.explainers.choice import bare
from assay.lookup import BASELINES, RANDOM, WORDS
from assay.records import Finding
from assay.stories import Measure, Story, story_of
from assay.study.cells import adjusted, cell
from assay.study.finished import Finished
from assay.study.plans import Question, StudyPlan
from assay.study.results import MODEL, Answer, Column, Missing, Row, State
from assay.study.trials import Trial

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
