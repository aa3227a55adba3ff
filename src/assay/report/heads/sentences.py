"""The sentences in which heads are drawn, ready for the template."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from assay.report.heads import links
from assay.report.heads.probe import Cells, Probe, real
from assay.writing import percent


@dataclass(frozen=True)
class Line:
    """A word of a drawn sentence: what it attends to most, how much, whether that is right, and its governor."""

    word: str
    most: str
    weight: str
    mark: str
    governor: str
    relation: str


@dataclass(frozen=True)
class Drawn:
    """One head on one sentence."""

    title: str
    drawing: str
    lines: tuple[Line, ...]
    remark: str


@dataclass(frozen=True)
class Sentence:
    """An example sentence under some heads."""

    text: str
    heads: tuple[Drawn, ...]


def sentences(probe: Probe) -> list[Sentence]:
    """The example sentences with their heads links."""
    return [
        Sentence(" ".join(each["words"]), tuple(_drawn(each, head) for head in each["heads"]))
        for each in probe.get("examples") or ()
    ]


def _drawn(example: dict[str, Any], head: dict[str, Any]) -> Drawn:
    title = f"{head['title']} (layer {head['layer']}, head {head['head']})"
    words, weights = example["words"], head["weights"]
    asked = links.answers(example, str(head["title"]))
    label = f"Attention of {title} between the words of: {' '.join(words)}"
    strong = any(links.known_weight(weight) >= links.FAINT for row in weights for weight in row)
    remark = "" if strong else "No weight between two words is large enough to be drawn."
    lines = tuple(_line(example, weights, asked, place) for place in range(len(words)))
    return Drawn(title, links.lines(words, weights, asked, label), lines, remark)


def _line(example: dict[str, Any], weights: Cells, asked: links.Answers, place: int) -> Line:
    words, governor = example["words"], example["governors"][place]
    most = links.strongest(weights, place)
    mark = ("✓" if links.hit(asked, weights, place) else "✗") if place in asked else ""
    return Line(
        words[place],
        "–" if most is None else words[most],
        "–" if most is None else percent(real(weights[place][most]), 0),
        mark,
        "root" if governor < 0 else words[governor],
        example["relations"][place],
    )
