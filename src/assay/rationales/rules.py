"""Rules shared by all players of a game: what is selected, sampled, decoded and read."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from assay.errors import AssayError, unknown
from assay.explainers import EXPLAINERS
from assay.rationales.decoding import Decoding
from assay.rationales.relaxations import RELAXATIONS, Relaxation
from assay.rationales.relaxations.bernoulli import Bernoulli
from assay.rationales.units import Units
from assay.types import BLANKS

READINGS = ("delete", *BLANKS)
CONDITIONS = ("none", "guess", "label")
ANSWERS = ("reader", "presence", "votes")


@dataclass(frozen=True)
class Rules:
    """Options of selection: units, relaxation, decoding, conditioning, and what replaces unselected words.

    Masks may depend on a class: on the `guess` of the reader of that name, or on the `label`, which is the class that
    is predicted where no label may be known. With `all` words read, the selection only explains the predictor. By the
    name of an explainer, scores are its `saliency` for a teacher instead of a selector's. Where masks are `classwise`,
    there is one for each class, and that of the class they depend on is read. What answers is the `reader` of a mask,
    or the concepts that masks stand for: linearly by their `presence`, or by the `votes` of those that are there.
    """

    units: Units = field(default_factory=Units)
    relaxation: Relaxation = field(default_factory=Bernoulli)
    decoding: Decoding = field(default_factory=Decoding)
    masks: int = 1
    reading: str = "zero"
    condition: str = "none"
    reads: str = "selected"  # or "all"
    saliency: str = ""
    classwise: bool = False
    answers: str = "reader"

    def __post_init__(self) -> None:
        if self.reading not in READINGS:
            raise unknown("way to read what is not selected", self.reading, READINGS)
        if self.condition not in CONDITIONS:
            raise unknown("condition of a mask", self.condition, CONDITIONS)
        if self.answers not in ANSWERS:
            raise unknown("answer", self.answers, ANSWERS)
        if self.saliency and self.saliency not in EXPLAINERS:
            raise unknown("explainer", self.saliency, EXPLAINERS)
        if self.classwise and self.condition == "none":
            raise AssayError('Masks that are classwise need a condition that chooses one of them: "label" or "guess".')

    def json(self) -> dict[str, Any]:
        names = {kind: name for name, kind in RELAXATIONS.items()}
        return asdict(self) | {"relaxation": {"name": names[type(self.relaxation)]} | asdict(self.relaxation)}  # type: ignore[call-overload]

    @classmethod
    def of(cls, stored: dict[str, Any]) -> Rules:
        """Rules from their stored JSON."""
        options = dict(stored["relaxation"])
        relaxation = RELAXATIONS[options.pop("name")](**options)
        given = {"units": Units(**stored["units"]), "decoding": Decoding(**stored["decoding"])}
        return cls(**{**stored, **given, "relaxation": relaxation})
