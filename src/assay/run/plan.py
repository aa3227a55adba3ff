"""What is to be done, as plain options that can be compared and stored."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from assay.audits import AUDITS, USUAL_AUDITS
from assay.audits.cases import Audit
from assay.data.examples import Example
from assay.errors import AssayError
from assay.explainers import EXPLAINERS, USUAL
from assay.explainers.choice import bare, chosen, named
from assay.explainers.needs import unfit
from assay.explainers.phrase_trees import tree_builders
from assay.types import Explainer, Model

Instrument = TypeVar("Instrument")
Instruments = str | Sequence[str | Instrument] | Mapping[str, str | Instrument]
"""Names, with options or without, in a list or with commas between them; objects; or objects by name."""

OWN = ("own", "own_audits")
"""Fields of objects, which are not stored."""


@dataclass(frozen=True)
class AuditPlan:
    """Which explainers are put to which audits, by name and with options, over how many examples."""

    explainers: tuple[str, ...] = USUAL
    audits: tuple[str, ...] = USUAL_AUDITS
    seed: int = 0
    limit: int | None = None
    epsilon: float = 0.01
    tree: str | None = None  # hierarchies of phrases, for some texts that the page shows
    scorer: str | None = None  # what a phrase of them counts
    own: dict[str, Explainer] = field(default_factory=dict, repr=False, compare=False)  # not ours: by their names
    own_audits: dict[str, Audit] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(
        cls, explainers: Instruments[Any] = USUAL, audits: Instruments[Audit] = USUAL_AUDITS, **options: Any
    ) -> AuditPlan:
        """A plan whose explainers and audits are named, or are at hand as functions or objects."""
        names, own = named(explainers, EXPLAINERS, "explainer")
        audit_names, own_audits = named(audits, AUDITS, "audit")
        return cls(names, audit_names, own=own, own_audits=own_audits, **options)

    def json(self) -> dict[str, Any]:
        """The options as plain values; trees only where there are any, so that older plans stay what they are."""
        given = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in OWN}
        return {name: value for name, value in given.items() if value is not None or name not in ("tree", "scorer")}

    def __post_init__(self) -> None:
        self.chosen_explainers(), self.chosen_audits(), tree_builders(self.tree, self.scorer)
        each_once("explainer", self.explainers, EXPLAINERS)
        each_once("audit", tuple(map(bare, self.audits)), AUDITS)
        if self.limit is not None and self.limit < 1:
            raise AssayError(f"The limit is a number of examples, at least 1, not {self.limit}.")
        if self.seed < 0:
            raise AssayError(f"seed must be a whole number from 0, got {self.seed}.")
        if not 0 <= self.epsilon < 1:
            raise AssayError(f"Epsilon is a change of probability, from 0 to below 1, not {self.epsilon}.")

    def chosen_explainers(self) -> dict[str, Explainer]:
        return explainers_of(self.explainers, self.own, self.seed)

    def chosen_audits(self) -> dict[str, Audit]:
        """By the name without options: of an audit, unlike of an explainer, there is one variant in a plan."""
        own, shared = self.own_audits, {"seed": self.seed, "epsilon": self.epsilon}
        return {bare(name): own[name] if name in own else chosen(name, AUDITS, "audit", shared) for name in self.audits}

    def sample(self, examples: Sequence[Example]) -> list[tuple[int, Example]]:
        """The examples to audit with their places: all, or `limit` of them drawn by the seed."""
        places = range(len(examples))
        if self.limit is not None and self.limit < len(examples):
            return [(place, examples[place]) for place in sorted(random.Random(self.seed).sample(places, self.limit))]
        return list(zip(places, examples, strict=True))


def explainers_of(names: Sequence[str], own: Mapping[str, Explainer], seed: int) -> dict[str, Explainer]:
    """The explainers of these names: a caller's own as they are, ours with the seed of the run."""
    # an epsilon of an explainer is its own: it stabilises a division, and is no change of the output
    return {name: own[name] if name in own else chosen(name, EXPLAINERS, shared={"seed": seed}) for name in names}


def fitting(explainers: Mapping[str, Explainer], model: Model) -> tuple[dict[str, Explainer], dict[str, str]]:
    """The explainers that this model can serve, and why the others are left out."""
    left_out = {name: reason for name, each in explainers.items() if (reason := unfit(each, model)) is not None}
    if len(left_out) == len(explainers):
        raise AssayError(f"None of the explainers can be used: {next(iter(left_out.values()))}.")
    return {name: each for name, each in explainers.items() if name not in left_out}, left_out


def each_once(kind: str, names: Sequence[str], known: Mapping[str, object]) -> None:
    """Refuses an empty list of names, and one with a name twice."""
    if not names or len(set(names)) < len(names):
        raise AssayError(f"Name each {kind} once, and at least one; there are: {', '.join(known)}.")
