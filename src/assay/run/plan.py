"""What is to be done, as plain options that can be compared and stored."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, TypeVar

from assay.audits import AUDITS, USUAL_AUDITS
from assay.audits.cases import Audit
from assay.data.examples import Example
from assay.errors import AssayError
from assay.explainers import EXPLAINERS, USUAL
from assay.explainers.choice import bare, chosen, separated
from assay.explainers.hierarchies import tree_builders
from assay.explainers.needs import unfit
from assay.types import Explainer, Model

Instrument = TypeVar("Instrument")


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

    @classmethod
    def of(cls, explainers: Sequence[str | Explainer], **options: Any) -> AuditPlan:
        """A plan whose explainers are named, or are at hand as functions or objects."""
        explainers = separated(explainers) if isinstance(explainers, str) else explainers
        own = {called(each): each for each in explainers if not isinstance(each, str)}
        taken = next((name for name, each in own.items() if EXPLAINERS.get(name, each) is not each), None)
        if taken is not None:
            raise AssayError(f"There is an explainer {taken!r} already; give yours another name.")
        names = tuple(each if isinstance(each, str) else called(each) for each in explainers)
        return cls(explainers=names, own=own, **options)

    def json(self) -> dict[str, Any]:
        """The options as plain values; trees only where there are any, so that older plans stay what they are."""
        given = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "own"}
        return {name: value for name, value in given.items() if value is not None or name not in ("tree", "scorer")}

    def __post_init__(self) -> None:
        self.chosen_explainers(), self.chosen_audits(), tree_builders(self.tree, self.scorer)
        audits = tuple(map(bare, self.audits))
        for kind, names, known in (("explainer", self.explainers, EXPLAINERS), ("audit", audits, AUDITS)):
            if not names or len(set(names)) < len(names):
                raise AssayError(f"Name each {kind} once, and at least one; there are: {', '.join(known)}.")
        if self.limit is not None and self.limit < 1:
            raise AssayError(f"The limit is a number of examples, at least 1, not {self.limit}.")
        if self.seed < 0:
            raise AssayError(f"A seed is a whole number from 0, not {self.seed}.")
        if not 0 <= self.epsilon < 1:
            raise AssayError(f"Epsilon is a change of probability, from 0 to below 1, not {self.epsilon}.")

    def chosen_explainers(self) -> dict[str, Explainer]:
        # an epsilon of an explainer is its own: it stabilises a division, and is no change of the output
        known = {name: self._set(each, {"seed"}) for name, each in (EXPLAINERS | self.own).items()}
        return {name: chosen(name, known) for name in self.explainers}

    def fitting(self, model: Model) -> tuple[dict[str, Explainer], dict[str, str]]:
        """The explainers that this model can serve, and why the others are left out."""
        every = self.chosen_explainers()
        left_out = {name: reason for name, each in every.items() if (reason := unfit(each, model)) is not None}
        if len(left_out) == len(every):
            raise AssayError(f"None of the explainers can be used: {next(iter(left_out.values()))}.")
        return {name: each for name, each in every.items() if name not in left_out}, left_out

    def chosen_audits(self) -> dict[str, Audit]:
        """By the name without options: of an audit, unlike of an explainer, there is one variant in a plan."""
        known = {name: self._set(each, {"seed", "epsilon"}) for name, each in AUDITS.items()}
        return {bare(name): chosen(name, known, "audit") for name in self.audits}

    def _set(self, instrument: Instrument, shared: set[str]) -> Instrument:
        """The instrument with the plan's value for each of the shared options that it has."""
        if not is_dataclass(instrument) or isinstance(instrument, type):
            return instrument
        names = {field.name for field in fields(instrument)} & shared
        return replace(instrument, **{name: getattr(self, name) for name in names})

    def sample(self, examples: Sequence[Example]) -> list[tuple[int, Example]]:
        """The examples to audit with their places: all, or `limit` of them drawn by the seed."""
        places = range(len(examples))
        if self.limit is not None and self.limit < len(examples):
            return [(place, examples[place]) for place in sorted(random.Random(self.seed).sample(places, self.limit))]
        return list(zip(places, examples, strict=True))


def called(explainer: Explainer) -> str:
    """The name of an explainer that is at hand: that of the function, or of the object's class."""
    return str(getattr(explainer, "__name__", type(explainer).__name__))
