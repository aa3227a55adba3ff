"""What a model selects as one offline HTML file that needs no script and asks for nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.files import write_text
from assay.report.rationales import texts, words
from assay.report.templating import environment
from assay.writing import count, interval, number

SAID = 3  # classes that are named with a pair


@dataclass(frozen=True)
class Row:
    """A measure: its mean with the interval, how to read it, and as a `bar` the mean and both ends in percent."""

    title: str
    mean: str
    interval: str
    n: str
    meaning: str
    good: str
    bar: tuple[float, float, float]


def render(answer: Mapping[str, Any]) -> str:
    """The page as the text of one HTML file; the same answer gives the same text."""
    from markupsafe import Markup

    templates = environment(
        count=count,
        shown=lambda example: Markup(texts.shown(example)),
        asked=lambda example: Markup(texts.asked(example)),
        tight=_tight,
        signed=_signed,
        votes=votes,
    )
    page = templates.get_template("rationales.html.jinja").render(
        answer=answer,
        headline=words.headline(answer),
        caveats=words.caveats(answer),
        selecting=words.selecting(answer),
        limits=words.limits(answer),
        facts=words.facts(answer),
        rows=rows(answer),
        groups=groups(answer),
    )
    # texts may hold what is no text; it must not keep the rest from being written
    return page.encode("utf-8", "replace").decode("utf-8")


def write(answer: Mapping[str, Any], path: Path) -> None:
    """Writes the page, whole or not at all."""
    write_text(path, render(answer))


def rows(answer: Mapping[str, Any]) -> list[Row]:
    """The measures that there are, in their order."""
    return [_row(answer, name) for name in words.MEASURES if name in answer["measures"]]


def groups(answer: Mapping[str, Any]) -> list[tuple[str, str, Sequence[Mapping[str, Any]]]]:
    """The texts to look at: title, sentence, examples."""
    right = [each for each in answer["examples"] if each["predicted"] == each["label"]]
    wrong = [each for each in answer["examples"] if each["predicted"] != each["label"]]
    return [
        ("Decided right", "Does the selection hold what decides?", right),
        ("Decided wrong", "What misled the model is among the selected words, or was not selected.", wrong),
    ]


def votes(pair: Mapping[str, Any], predicted: str, classes: Sequence[str]) -> list[tuple[str, float]]:
    """What an aligned pair says: for the answer first, then for the other classes, the strongest of many."""
    said = dict(zip(classes, pair["votes"], strict=True))
    others = sorted((name for name in classes if name != predicted), key=lambda name: -abs(said[name]))[: SAID - 1]
    return [(name, said[name]) for name in (predicted, *others)]


def _row(answer: Mapping[str, Any], name: str) -> Row:
    found, measure = answer["measures"][name], words.MEASURES[name]
    ends = [100 * min(1.0, max(0.0, found[end])) for end in ("mean", "low", "high")]
    return Row(
        measure.title,
        number(found["mean"]),
        interval(found["low"], found["high"]),
        count(found["n"]),
        words.meaning(answer, name),
        measure.good,
        (ends[0], ends[1], ends[2]),
    )


def _signed(value: float) -> str:
    """What speaks for something with a plus, what speaks against it with a minus; small numbers have two digits too."""
    if not round(value, 4):
        return "0"
    places = 2 if abs(value) >= 0.1 else 3 if abs(value) >= 0.01 else 4
    return f"{value:+.{places}f}".replace("-", "\u2212")


def _tight(text: str) -> str:
    """Keeps a number on one line with its percent sign."""
    return text.replace(" %", "\u00a0%")
