"""What an act did to the attention of one text and to the answer, and how it is said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxtyping import Bool, Float
from torch import Tensor

from assay.data.examples import Span
from assay.errors import AssayError
from assay.intervene.adversary_problem import LOG2, jsd
from assay.intervene.edits import Act
from assay.metrics.divergence import tvd
from assay.types import Edit

FEW = 3  # items that a sentence names one by one


@dataclass(frozen=True)
class Scene:
    """A text in words and in the items that are attended to."""

    text: str
    spans: tuple[Span, ...]  # of each word
    items: tuple[str, ...]  # what each stands for in the text
    item_of: tuple[int, ...]  # of each word
    unit: str  # "word" or "sentence"
    classes: tuple[str, ...]

    @property
    def words(self) -> list[str]:
        return [self.text[start:end] for start, end in self.spans]

    def checked(self, items: Iterable[int]) -> tuple[int, ...]:
        """The items, if all are there."""
        chosen = tuple(sorted(set(items)))
        for item in chosen:
            if not 0 <= item < len(self.items):
                raise AssayError(
                    f"The text has the {self.unit}s 0 to {len(self.items) - 1}, and no {self.unit} {item}; "
                    "they are counted from 0."
                )
        return chosen

    def named(self, items: Sequence[int]) -> str:
        """A few words by name, or how many items there are."""
        if len(items) > FEW or self.unit == "sentence":
            return self.counted(len(items))
        *before, last = [f"“{short(self.items[item])}”" for item in items]
        return f"{', '.join(before)} and {last}" if before else last

    def counted(self, count: int) -> str:
        return f"{count} {self.unit}{'' if count == 1 else 's'}"


@dataclass(frozen=True)
class Done:
    """Weights and probabilities before and after an act, how far apart they are, and what was done, in words."""

    observed: list[float]
    weights: list[float]
    before: Tensor
    after: Tensor
    jsd: float
    said: str
    kind: str = "exact"
    jsd_upper: float | None = None
    chosen: tuple[int, ...] = ()
    elsewhere: tuple[float, float] = (0.0, 0.0)
    more: dict[str, Any] = field(default_factory=dict)

    def json(self, scene: Scene, act: Act) -> dict[str, Any]:
        """All of it as plain values."""
        old, new = (scene.classes[int(each.argmax())] for each in (self.before, self.after))
        return {
            "words": scene.words,
            "spans": list(scene.spans),
            "items": list(scene.items),
            "item_of": list(scene.item_of),
            "observed": self.observed,
            "weights": self.weights,
            "elsewhere": self.elsewhere[0],
            "elsewhere_after": self.elsewhere[1],
            "before": dict(zip(scene.classes, self.before.tolist(), strict=True)),
            "after": dict(zip(scene.classes, self.after.tolist(), strict=True)),
            "predicted_before": old,
            "predicted_after": new,
            "tvd": float(tvd(self.after, self.before)),
            "jsd": self.jsd,
            "jsd_upper": self.jsd_upper,
            "kind": self.kind,
            "chosen": list(self.chosen),
            "note": f"{self.said}{self._found(old, new, act)}.",
            "act": act.kind,
            "layer": act.layer,
            "head": act.head,
            "place": act.place,
            **self.more,
        }

    def _found(self, old: str, new: str, act: Act) -> str:
        if act.kind == "observed":
            return ""
        return f"; the answer stays {old}" if old == new else f"; the answer changes from {old} to {new}"


def apart(old: Float[Tensor, "R N"], new: Float[Tensor, "R N"]) -> Float[Tensor, " R"]:
    """The divergence of each distribution; where nothing is attended to any more, it is as large as can be."""
    return jsd(old, new).where(new.sum(-1) > 0, LOG2)


def edited(edit: Edit, weights: Float[Tensor, "R *Q N"], mask: Bool[Tensor, "R N"]) -> Float[Tensor, "R *Q N"]:
    """The weights that an edit of a caller gives; others of them than there are, or none, are refused."""
    found = edit(weights, mask)
    if not isinstance(found, Tensor) or found.shape != weights.shape:
        given = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
        raise AssayError(f"An edit gives as many weights as there are, here {tuple(weights.shape)}, not {given}.")
    return found


def said_of(edit: Edit) -> str:
    """What was done by an edit of a caller, in words."""
    return f"The attention is edited by {getattr(edit, '__name__', type(edit).__name__)}"


def short(label: str, longest: int = 24) -> str:
    """A label that fits into a sentence."""
    return label if len(label) <= longest else f"{label[:longest]}…"


def percent(share: float) -> str:
    return f"{share:.1%}".replace(".0%", "%")
