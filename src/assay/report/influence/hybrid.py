"""Why a model looks at a word: the training texts, and the words in them, that made it look there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.report.heatmaps import Tokens, row, window
from assay.report.templating import TEMPLATES, environment
from assay.writing import count, figures, number

Answer = Mapping[str, Any]

CSS = (TEMPLATES / "hybrid.css").read_text(encoding="utf-8")
SHOWN = 60  # words of a text
LISTED = 12  # words of a text as numbers
TARGETS = {"margin": "log-odds", "logit": "logit", "probability": "probability", "loss": "loss"}
SALIENCES = {
    "norm": "the length of the slope of the {target} of {asked} by the word’s embedding",
    "input_x_gradient": "the slope of the {target} of {asked} by the word’s embedding, times that embedding",
    "integrated_gradient": "the word’s share in the {target} of {asked} by integrated gradients",
}
LIMITS = (
    "How much a text counts is predicted from the curvature of the training loss, not found by training again; the "
    "prediction is for taking away one text at a time.",
    "A word of a training text counts for what would change if it were missing while the rest of the text stayed. "
    "These numbers need not add up to that of the text.",
    "That a model looks at a word does not say in which direction the word moves its answer.",
)
PAPER = (
    "Yuxian Meng, Chun Fan, Zijun Sun, Eduard Hovy, Fei Wu, Jiwei Li (2020): Pair the Dots: Jointly Examining Training "
    "History and Test Stimuli for Model Interpretability. arXiv 2010.06943."
)


@dataclass(frozen=True)
class Trained:
    """A training text behind a word: what would happen without it, and through which of its words most."""

    change: str
    bar: float
    label: str
    place: str
    html: str
    word: str
    words: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Look:
    """A word that the model looks at."""

    word: str
    salience: str
    trained: tuple[Trained, ...]


def fragment(answer: Answer) -> str:
    """The view as a part of a page that has the style of CSS."""
    return _template("hybrid.html.jinja", answer)


def render(answer: Answer, facts: Sequence[tuple[str, str]] = ()) -> str:
    """The view as the text of one HTML file that needs no script and asks for nothing."""
    page = _template("hybrid_page.html.jinja", answer, facts=facts, limits=LIMITS, paper=PAPER, css=CSS)
    # words may hold what is no text; they must not keep the rest from being written
    return page.encode("utf-8", "replace").decode("utf-8")


def headline(answer: Answer) -> str:
    """What was found for the first of the words, in one sentence with a colon."""
    first = looks(answer)[0]
    if not first.trained:
        return f"No training text made the model look at “{first.word}”"
    best = first.trained[0]
    through = f", most of all through “{best.word}”" if best.word else ""
    return (
        f"Why the model looks at “{first.word}”: of {count(answer['trained'])} training texts, the one that did most "
        f"for it is labelled “{best.label}”; without it the salience would change by {best.change}{through}."
    )


def looks(answer: Answer) -> list[Look]:
    """Every word that was asked about, with what stands behind it."""
    return [_look(answer, token) for token in answer["tokens"]]


def reading(answer: Answer) -> str:
    """How the view is read."""
    salience = SALIENCES[answer["salience"]].format(target=TARGETS[answer["target"]], asked=f"“{answer['asked']}”")
    return (
        f"Salience is {salience}: the stronger the shade, the more the answer hangs on the word. Behind each word "
        "stand the training texts without which its salience would be lower, with the predicted change as a share of "
        "it. In them, words with a solid orange line made the model look there, words with a dashed blue line made it "
        "look away; the strongest word of each text sets its scale."
    )


def _template(name: str, answer: Answer, **others: Any) -> str:
    from markupsafe import Markup

    templates = environment(html=Markup, tight=_tight, count=count)
    return templates.get_template(name).render(
        answer=answer,
        headline=headline(answer),
        reading=reading(answer),
        looks=looks(answer),
        asked=_heat(answer, answer["scores"]),
        **others,
    )


def _look(answer: Answer, token: Mapping[str, Any]) -> Look:
    salience = token["salience"]
    peak = max((abs(each["score"]) for each in token["behind"]), default=0.0) or 1.0
    return Look(
        _word(answer, token["place"]),
        figures(salience),
        tuple(_trained(each, salience, peak) for each in token["behind"]),
    )


def _trained(each: Mapping[str, Any], salience: float, peak: float) -> Trained:
    sign = 1 if salience < 0 else -1  # what made the model look is what would be missing
    made = [sign * score for score in each["scores"]]
    order = sorted(range(len(made)), key=lambda place: -made[place])
    strongest = order[0] if order and made[order[0]] > 0 else None
    listed = sorted(sorted(order, key=lambda place: -abs(made[place]))[:LISTED])
    return Trained(
        _change(each["score"], salience),
        100 * abs(each["score"]) / peak,
        str(each["label"]),
        count(each["row"]),
        _heat(each, made),
        "" if strongest is None else _word(each, strongest),
        tuple((_word(each, place), _change(each["scores"][place], salience)) for place in listed),
    )


def _change(score: float, salience: float) -> str:
    """A change of the salience, as a share of it where it is not 0."""
    if not salience:
        return _signed(score, figures(score))
    share = 100 * score / abs(salience)
    return _signed(share, f"{number(share, 2) if abs(share) >= 0.095 else figures(share)} %")


def _signed(value: float, text: str) -> str:
    return f"+{text}" if value > 0 else text


def _word(written: Mapping[str, Any], place: int) -> str:
    return str(written["text"][written["starts"][place] : written["ends"][place]])[:SHOWN]


def _heat(written: Mapping[str, Any], scores: Sequence[float]) -> str:
    tokens = Tokens(written["text"], written["starts"], written["ends"])
    return row(tokens, scores, window(scores, SHOWN))


def _tight(text: str) -> str:
    """Keeps a number on one line with its percent sign."""
    return text.replace(" %", "\u00a0%")
