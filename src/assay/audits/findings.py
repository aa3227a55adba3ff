"""From the numbers of examples to findings, and from a record's findings to stories and conclusions of its audits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from assay.audits import AUDITS, four_tests
from assay.audits.cases import Audit
from assay.explainers import EXPLAINERS
from assay.explainers.choice import bare
from assay.lookup import stacked
from assay.metrics.intervals import measured
from assay.records import STORIES, Finding, Record
from assay.stories import Conclusion, Drawing, Story, story_of
from assay.types import Explainer

SIGNIFICANT = 0.05
WHOLE = (
    *("overlap", "sign", "wins"),  # of pairs: too many to be told for each class
    *("uniform", "uniform_flips", "permuted", "permuted_flips"),  # of layers: so are these
)


def classes_told(audit: Audit, classes: Sequence[str]) -> Sequence[str]:
    """The predicted classes that an audit's findings are told for: none where its subjects are other models."""
    return () if story_of(audit).subjects == "model" else classes


def summarise(
    audit: str,
    kind: str,
    measures: Mapping[str, Float[np.ndarray, " N"]],
    predicted: Int[np.ndarray, " N"],
    classes: Sequence[str],
) -> list[Finding]:
    """One finding for each measure that some example has, over all examples and by predicted class.

    Measures at one of several thresholds ("name@threshold") and those in WHOLE are told over all examples alone. A gain
    ("name_gain") has the p-value, against no gain on average, that belongs to its interval.
    """
    named = [name for name in measures if not name.startswith("p:")]
    groups = {"all": (named, np.ones(len(predicted), dtype=bool))}
    by_class = [name for name in named if not _whole(name)]
    groups |= {name: (by_class, predicted == label) for label, name in enumerate(classes) if by_class}
    findings: list[Finding] = []
    for group, (names, chosen) in groups.items():
        values = np.stack([measures[name][chosen] for name in names], axis=1)
        interval = measured(names, values)
        for place, name in enumerate(names):
            measure, _, subject = name.partition(":")
            if interval.n[place] == 0:  # nothing was found
                continue
            findings.append(
                Finding(
                    audit=audit,
                    subject=subject or "attention",
                    measure=measure,
                    group=group,
                    mean=float(interval.mean[place]),
                    low=float(interval.low[place]),
                    high=float(interval.high[place]),
                    std=float(interval.std[place]),
                    n=int(interval.n[place]),
                    undefined=int(chosen.sum() - interval.n[place]),
                    significant=_significant(measures.get(f"p:{subject}"), chosen),
                    p_value=float(interval.p[place]) if measure.endswith("_gain") else None,
                    kind=kind,
                )
            )
    return findings


def _whole(name: str) -> bool:
    measure, _, _ = name.partition(":")
    return "@" in measure or measure in WHOLE


def _significant(p: Float[np.ndarray, " N"] | None, chosen: np.ndarray) -> float | None:
    if p is None:
        return None
    defined = p[chosen & np.isfinite(p)]
    return float((defined <= SIGNIFICANT).mean()) if len(defined) else None


TOGETHER = "together"
"""What a summary holds of the tests that only say something together."""


@runtime_checkable
class ConcludingAudit(Protocol):
    """An audit that says in a sentence or two what it found, and may grade it."""

    def conclude(self, record: Record) -> Conclusion: ...


def tell(
    record: Record, audits: Mapping[str, Audit] = AUDITS, explainers: Mapping[str, Explainer] = EXPLAINERS
) -> Record:
    """The record with the story and the conclusion of each audit; what it has of its own stays."""
    every: dict[str, dict[str, Any]] = record.summary["audits"]
    lacking = {name: audits[name] for name, about in every.items() if "story" not in about and name in audits}
    if record.told and not lacking:
        return record
    added = {name: _told(record, name, audit) for name, audit in lacking.items()}
    summary = record.summary | {"audits": {name: about | added.get(name, {}) for name, about in every.items()}}
    numbers = _of_explainers(record.summary["explainers"], explainers) | record.summary.get(STORIES, {})
    return replace(record, summary=summary | {STORIES: numbers, TOGETHER: four_tests.together(record)})


def _told(record: Record, name: str, audit: Audit) -> dict[str, Any]:
    story = getattr(audit, "transformer", None) if stacked(record) else None
    told = _completed(story or story_of(audit), record, name)
    if not isinstance(audit, ConcludingAudit):
        return {"story": told.json()}
    return {"story": told.json(), "conclusion": audit.conclude(record).json()}


def _completed(story: Story, record: Record, name: str) -> Story:
    """A story without figures gets one of its measures, and a column for each measure that has a better end."""
    if story.drawings or any(measure.column for measure in story.measures):
        return story
    if story.measures and not any(measure.better for measure in story.measures):
        return story
    found = dict.fromkeys(f.measure for f in record.findings if f.audit == name and "@" not in f.measure)
    shown = {measure: story.measure(measure).label for measure in list(found)[:2]}
    columns = tuple(
        replace(measure, column=measure.label or measure.name) if measure.better else measure
        for measure in story.measures
    )
    caption = "Mean of each explainer, with 95 % intervals. The dashed line is where random scores are."
    drawing = Drawing("dots", name, caption, {"measures": shown, "title": ""})
    words = {measure.label or measure.name: measure.help for measure in columns if measure.help}
    return replace(story, measures=columns, drawings=(drawing,) if shown else (), words=words | dict(story.words))


def _of_explainers(names: Iterable[str], explainers: Mapping[str, Explainer]) -> dict[str, Any]:
    """What the numbers are called that explainers report of their own scores."""
    members = {name: explainers.get(name) or EXPLAINERS.get(bare(name)) for name in names}
    stories = {name: story_of(each) for name, each in members.items() if each is not None}
    return {name: story.json() for name, story in stories.items() if story.measures}
