"""Plans: a grid of corpora, models, seeds and sets of audits, read from TOML."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from assay.errors import AssayError, unknown
from assay.explainers.choice import bare
from assay.study import entries
from assay.study.toml_values import coerced, from_table, table
from assay.study.trials import AuditSet, Kind, Source, Trial

NAME = "plan.toml"
PLAIN = re.compile(r"\w[\w. -]*")  # what a folder can be called


@dataclass(frozen=True)
class Question:
    """One table of a study: a measure of an audit for every explainer, each tested against a baseline."""

    audit: str
    measure: str
    title: str = ""
    against: str = "random"
    subjects: tuple[str, ...] = ()  # all that there are, where none is named


@dataclass(frozen=True)
class StudyPlan:
    """A grid: every corpus with every model, seed and set of audits."""

    name: str
    corpora: tuple[Source, ...]
    models: tuple[Kind, ...]
    audits: tuple[AuditSet, ...] = (AuditSet("audits"),)
    seeds: tuple[int, ...] = (0,)
    data_seed: int = 0  # decides what is generated or split; models of all seeds see the same texts
    questions: tuple[Question, ...] = ()

    def __post_init__(self) -> None:
        for title, names in (
            ("corpus", [each.title for each in self.corpora]),
            ("model", [each.name for each in self.models]),
            ("seed", list(map(str, self.seeds))),
            ("set of audits", [each.name for each in self.audits]),
        ):
            if not names or len(set(names)) < len(names):
                raise AssayError(f"A plan names each {title} once, and at least one.")
        if not PLAIN.fullmatch(self.name):
            raise AssayError(f"A plan's name is what its folder is called, without slashes, not {self.name!r}.")
        held = {bare(name) for each in self.audits for name in each.audits}
        for question in self.questions:
            if question.audit not in held:
                raise unknown("audit of a question", question.audit, held)

    @cached_property
    def trials(self) -> tuple[Trial, ...]:
        """All cells of the grid. Models vary fastest, so that trials that share a model are far apart."""
        return tuple(
            Trial(corpus, kind, seed, audit_set.on(corpus), self.data_seed)
            for audit_set in self.audits
            for corpus in self.corpora
            for seed in self.seeds
            for kind in self.models
            if kind.path is None or seed == self.seeds[0]  # a finished model was trained by one seed
        )


def read(path: Path) -> StudyPlan:
    """The plan in a file; an error in it is one sentence."""
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as fault:
        raise AssayError(f"There is no plan {path}.") from fault
    except (OSError, ValueError) as fault:
        raise AssayError(f"{path} cannot be read as TOML: {fault}.") from fault
    try:
        name = path.resolve().parent.name if path.name == NAME else path.stem
        return plan_of({"name": name, **given}, path.parent)
    except AssayError as fault:
        raise AssayError(f"{path}: {fault}") from fault


def plan_of(given: Mapping[str, Any], beside: Path = Path()) -> StudyPlan:
    """The plan from parsed TOML; files are searched `beside` it."""
    known = {each.name for each in fields(StudyPlan)}
    for name in given:
        if name not in known:
            raise unknown("entry of a plan", name, known)
    models = table(_needed(given, "models"), "models")
    return StudyPlan(
        coerced(given.get("name", "study"), str, "The name of a plan"),
        tuple(entries.source(each, beside) for each in _list(_needed(given, "corpora"), "corpora")),
        tuple(entries.kind(name, each, beside) for name, each in models.items()),
        entries.audit_sets(given.get("audits", {})) or (AuditSet("audits"),),
        tuple(_seed(each, "Each seed") for each in _list(given.get("seeds", [0]), "seeds")),
        _seed(given.get("data_seed", 0), "The data_seed"),
        tuple(
            from_table(Question, table(each, "questions"), "questions")
            for each in _list(given.get("questions", []), "questions")
        ),
    )


def _seed(value: Any, name: str) -> int:
    if type(value) is not int or value < 0:
        raise AssayError(f"{name} must be an integer of at least 0, got {value!r}.")
    return value


def _needed(given: Mapping[str, Any], name: str) -> Any:
    if name not in given:
        raise AssayError(f"A plan needs {name}.")
    return given[name]


def _list(value: Any, name: str) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise AssayError(f"{name} is a list of TOML, not {value!r}.")
    return value
