"""The story of a method as plain data: its title, measures, figures, how to read them, and the rule of its grade.

A record carries the stories of its audits, so that pages are written with the words of their day.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, TypeVar

Better = Literal["high", "low"]
Kind = TypeVar("Kind", bound="Plain")
Member = TypeVar("Member", bound=Callable[..., Any])


@dataclass(frozen=True)
class Plain:
    """Plain data with a JSON form; what is read back ignores unknown keys and values of another type."""

    inner: ClassVar[Mapping[str, type[Plain]]] = {}

    def json(self) -> dict[str, Any]:
        """All fields that differ from their defaults."""
        bare = type(self)()
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: _plain(value) for name, value in values.items() if value != getattr(bare, name)}

    @classmethod
    def of(cls: type[Kind], stored: object) -> Kind:
        """The stored one; what is missing or damaged has its default."""
        if not isinstance(stored, Mapping):
            return cls()
        bare = cls()
        kept = {}
        for each in fields(cls):
            if each.name in stored:
                kept[each.name] = cls._read(each.name, stored[each.name], getattr(bare, each.name))
        return replace(bare, **kept)

    @classmethod
    def _read(cls, name: str, value: Any, default: Any) -> Any:
        kind = cls.inner.get(name)
        if kind is not None and isinstance(default, tuple):
            return tuple(map(kind.of, value)) if isinstance(value, list | tuple) else default
        if kind is not None:
            return kind.of(value) if isinstance(value, Mapping) else default
        if isinstance(default, tuple):
            return _frozen(value) if isinstance(value, list | tuple) else default
        if default is None:
            number = isinstance(value, int | float) and not isinstance(value, bool)
            return value if number or isinstance(value, str) else None
        return value if isinstance(value, type(default)) else default


@dataclass(frozen=True)
class Measure(Plain):
    """One number of a method: its name in tables, which way is better, and its column in the leaderboard if any."""

    name: str = ""
    label: str = ""  # in tables; without one, the name with blanks
    better: Better | None = None
    help: str = ""  # one line on what it says
    column: str = ""  # its head in the leaderboard; none, no column
    short: str = ""  # the same for a terminal
    place: int = 100  # among the columns
    faithful: bool = True  # whether the column counts towards the order of explainers
    main: bool = False  # whether a study asks for it where nothing else is said
    about: str = ""  # what it is of, where that is not the subject of the finding
    hidden: bool = False  # in no table, as means that do not compare
    caution: str = ""  # what stands behind its meaning
    at: str = " at {percent}"  # after its label, of a number at one of several thresholds


@dataclass(frozen=True)
class Drawing(Plain):
    """One figure: which of the kinds of figures it is, its name, its caption and what it is drawn from."""

    kind: str = ""
    name: str = ""
    caption: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Rule(Plain):
    """How a grade is given; with a measure it is that of the leading explainer, by the limits for the 95 % interval.

    Without limits the measure is a gain, graded by its sign. `sentence` is the reason that stands beside the grade,
    with {name}, {found} and {null}.
    """

    how: str = ""
    measure: str = ""
    sentence: str = ""
    better: Better = "high"
    passes: float | None = None
    fails: float | None = None
    beyond_null: bool = False  # whether it must exceed what random scores reach
    reference: str = ""  # the explainer that it is compared with, where subjects are pairs


@dataclass(frozen=True)
class Story(Plain):
    """What a method asks and how its numbers are shown; {item} and {items} stand for what attention is spread over."""

    inner: ClassVar[Mapping[str, type[Plain]]] = {"measures": Measure, "drawings": Drawing, "rule": Rule}

    title: str = ""
    question: str = ""
    paper: str = ""
    measures: tuple[Measure, ...] = ()
    drawings: tuple[Drawing, ...] = ()
    reading: str = ""
    finding: str = ""  # what a page on one decision opens with, with {target}, {count}, {moved}, {mean} and {value}
    rule: Rule = Rule()
    ungraded: str = ""  # why there is no rule
    about: Literal["explanations", "attention", "model"] = "explanations"
    subjects: Literal["explainer", "pair", "model", "of"] = "explainer"  # of the findings
    kinds: Mapping[str, str] = field(default_factory=dict)  # what kinds of numbers are called where not as usual
    against: str = ""  # the subject that a study tests others against
    terms: tuple[str, ...] = ()  # words of the glossary that its pages use
    words: Mapping[str, str] = field(default_factory=dict)  # words of its own, with what they mean

    def measure(self, name: str) -> Measure:
        """A measure with its label: `fall_gain` and `fall@0.1` are put together where they have none of their own.

        The name of a measure may end in a star, which stands for any ending.
        """
        base, _, threshold = name.partition("@")
        found = self._named(base)
        gained = found is None and base.endswith("_gain")
        stem = base.removesuffix("_gain") if gained else base
        found = found or self._named(stem) or Measure(stem)
        label = found.label or stem.replace("_", " ")
        if threshold:
            label += found.at.replace("{value}", threshold).replace("{percent}", _percent(threshold))
        if gained:
            better: Better | None = "high" if found.better else None
            return Measure(name, f"{label}, gain over chance", better)
        return replace(found, name=name, label=label)

    def _named(self, name: str) -> Measure | None:
        for each in self.measures:
            start, star, _ = each.name.partition("*")
            if each.name == name or (star and name.startswith(start)):
                return replace(each, label=each.label.replace("*", name.removeprefix(start))) if star else each
        return None


@dataclass(frozen=True)
class Grid(Plain):
    """A table as text: column heads and rows; columns from `first_number` on hold numbers."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    first_number: int = 2


@dataclass(frozen=True)
class Conclusion(Plain):
    """What an audit of one model says: the answer in a sentence or two, and its own grade with the reason, if any."""

    inner: ClassVar[Mapping[str, type[Plain]]] = {"tables": Grid}

    answer: str = ""
    grade: str = ""  # pass, warn, fail, measured or not applicable; none, the rule gives it
    why: str = ""
    tables: tuple[Grid, ...] = ()
    drawn: Mapping[str, Any] = field(default_factory=dict)  # options of figures, by their names


def story_of(method: object) -> Story:
    """The story of a method: its own, or else its name, the first line of its documentation and its paper."""
    own = getattr(method, "story", None)
    if isinstance(own, Story) and own.title:
        return own
    cls: Any = method if hasattr(method, "__name__") else type(method)
    name = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in cls.__name__)
    name = name.replace("_", " ").strip()
    question = (cls.__doc__ or "").strip().partition("\n")[0]
    told = own if isinstance(own, Story) else Story()
    return replace(told, title=name.capitalize(), question=question, paper=str(getattr(method, "paper", "")))


def with_story(title: str, paper: str = "", like: Story | None = None) -> Callable[[Member], Member]:
    """Decorator that gives a class or function a story, whose question is the first line of its documentation."""

    def told(member: Member) -> Member:
        question = (member.__doc__ or "").strip().partition("\n")[0]
        story = replace(like or Story(), title=title, question=question, paper=paper)
        setattr(member, "story", story)  # noqa: B010 – members are classes and functions alike
        return member

    return told


def filled(text: str, **values: str) -> str:
    """The text with a value in place of each {name} that is given; others stay as they are."""
    return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), text)


def _plain(value: Any) -> Any:
    if isinstance(value, Plain):
        return value.json()
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _percent(share: str) -> str:
    try:
        return f"{100 * float(share):g} %"
    except ValueError:
        return share


def _frozen(values: Any) -> tuple[Any, ...]:
    return tuple(tuple(each) if isinstance(each, list) else each for each in values)
