"""The numbers of an audit as rows of text, the same for the terminal and the page."""

from __future__ import annotations

from assay.records import Finding, Record
from assay.stories import Grid, Story
from assay.writing import count, figures, interval, number, significance

TIE = "≈"
OWN = "explainers"  # stands in the place of an audit before what explainers say of themselves
MANY = 12
"""From more explainers or more classes than this on, tables leave out the predicted classes."""


def agreement_rows(record: Record, audit: str) -> Grid:
    """A row for each pair and predicted class, as in Table 2 of Jain and Wallace (2019), with interval, n."""
    found = _told(record, audit)
    rows = [(f.subject.replace("~", " ~ "), f.group, *_spread(f), number(f.significant), *_size(f)) for f in found]
    columns = ("pair", "predicted class", "mean ± std", "significant", "95 % interval", "n", "undefined")
    return Grid(columns, tuple(rows))


def measure_rows(record: Record, audit: str) -> Grid:
    """A row for each subject, measure and predicted class of an audit; those of models are over all texts."""
    found, story = _told(record, audit), record.stories.get(audit, Story())
    tested, models = any(f.p_value is not None for f in found), story.subjects == "model"
    rows = []
    for f in found:
        measure = story.measure(f.measure)
        rows.append(
            (
                measure.about or f.subject.replace("~", " ~ "),
                measure.label,
                *(() if models else (f.group,)),
                *_spread(f),
                *_size(f),
                *((significance(f.p_value) or "–",) if tested else ()),
                kind(story, f.kind),
            )
        )
    tests = ("paired test",) if tested else ()
    first = (story.subjects, "measure", *(() if models else ("predicted class",)))
    numbers = ("mean ± std", "95 % interval", "n", "undefined")
    return Grid((*first, *numbers, *tests, "kind"), tuple(rows), first_number=len(first))


def kind(story: Story, given: str) -> str:
    """How far the numbers of an audit can be trusted; records of earlier versions lack two kinds."""
    return story.kinds.get(given, given)


def own_rows(record: Record) -> Grid:
    """What explainers say of their own scores: a row for each and for each of its numbers."""
    found = [f for f in record.findings if f.audit == OWN and f.group == "all"]
    stories = record.summary.get("stories") or {}
    rows = [
        (
            f.subject,
            Story.of(stories.get(f.subject)).measure(f.measure).label,
            figures(f.mean),
            f"{figures(f.low)} to {figures(f.high)}",
            count(f.n),
        )
        for f in found
    ]
    return Grid(("explainer", "number", "mean", "95 % interval", "n"), tuple(rows))


def by_class(record: Record, audit: str = "") -> bool:
    """Whether tables tell the predicted classes apart; with many of them, or many explainers, a page would be large.

    Those of audits that compare models do not: there may be many models.
    """
    return (audit not in record.stories or record.stories[audit].subjects != "model") and max(
        len(record.summary["explainers"]), len(record.summary["corpus"]["classes"])
    ) <= MANY


def _told(record: Record, audit: str) -> list[Finding]:
    """The audit's findings, those over all texts, and those of each predicted class where there is room."""
    told, story = by_class(record, audit), record.stories.get(audit, Story())
    hidden = {measure.name for measure in story.measures if measure.hidden}
    return [f for f in record.findings if f.audit == audit and f.measure not in hidden and (f.group == "all" or told)]


def _spread(finding: Finding) -> tuple[str]:
    return (f"{number(finding.mean)} ± {number(finding.std)}",)


def _size(finding: Finding) -> tuple[str, str, str]:
    return interval(finding.low, finding.high), count(finding.n), count(finding.undefined)
