"""Parses explainers and audits by name with options: lime, or lime(samples=500, removal=mask)."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

from assay.errors import AssayError, unknown
from assay.explainers.baselines import GivenScores
from assay.plugins import member

Instrument = TypeVar("Instrument")
OWN = ("paper", "lacking")  # fields that describe an instrument
NAMED = re.compile(r"\s*(\w+)\s*(?:\((.*)\))?\s*", re.DOTALL)


def bare(text: str) -> str:
    """The name without options."""
    return text.partition("(")[0].strip()


def options(instrument: object) -> dict[str, Any]:
    """The options of an explainer or audit with their values, cached fields left out."""
    if not is_dataclass(instrument) or isinstance(instrument, type):
        return {}
    told = [field.name for field in fields(instrument) if field.compare and field.name not in OWN]
    return {name: getattr(instrument, name) for name in told}


def separated(text: str) -> tuple[str, ...]:
    """Splits a list at commas outside parentheses."""
    depth, parts = 0, [""]
    for sign in text:
        depth += (sign == "(") - (sign == ")")
        if sign == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    return tuple(part.strip() for part in parts if part.strip())


def named(
    given: str | Sequence[Any] | Mapping[str, Any], known: Mapping[str, Instrument], kind: str
) -> tuple[tuple[str, ...], dict[str, Instrument]]:
    """The names of what is given, as names or as objects, and the objects that are no members of the dict.

    Objects have the names of a mapping, or else those of their functions or classes; a member with other options is
    named with these. In a mapping, scores of explainers may stand as arrays, one a text.
    """
    if isinstance(given, str):
        return separated(given), {}
    if isinstance(given, Mapping):
        objects = {name: chosen(each, known, kind) if isinstance(each, str) else each for name, each in given.items()}
        own = {name: _instrument(name, each, kind) for name, each in objects.items() if known.get(name) is not each}
        names = tuple(given)
    else:
        ours = [each if isinstance(each, str) else _as_ours(each, known, kind) for each in given]
        own = {_called(each): each for each, name in zip(given, ours, strict=True) if name is None}
        names = tuple(name or _called(each) for each, name in zip(given, ours, strict=True))
    strange = next((name for name in own if not re.fullmatch(r"\w+", name)), None)
    if strange is not None:
        raise AssayError(f"{strange!r} names no {kind}; give it a name of letters and digits, in a dict.")
    taken = next((name for name in own if name in known), None)
    if taken is not None:
        raise AssayError(f"There is an {kind} {taken!r} already; give yours another name.")
    return names, own


def _called(each: object) -> str:
    """The name of a function, or of an object's class."""
    return str(getattr(each, "__name__", type(each).__name__))


def _as_ours(each: object, known: Mapping[str, Any], kind: str) -> str | None:
    """An object as a name of the dict, with the options that it has; None where it is a caller's own."""
    if not callable(each):
        raise AssayError(f"{each!r:.60} is no {kind}; give a name, an object that can be called, or a dict of these.")
    if isinstance(each, type):
        raise AssayError(f"{each.__name__} is a class; give an object of it, as in {each.__name__}().")
    same = (name for name, ours in known.items() if ours is each or (type(ours) is type(each) and ours == each))
    if (found := next(same, None)) is not None:
        return found
    alike = ((name, options(ours)) for name, ours in known.items() if options(ours) and type(ours) is type(each))
    return next((text for text in (_written(*one, each) for one in alike) if _means(text, each, known, kind)), None)


def _written(name: str, usual: Mapping[str, Any], each: object) -> str:
    """The name with the options of an object that differ from the usual ones."""
    changed = {key: value for key, value in options(each).items() if value != usual[key]}
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in changed.items())})"


def _means(written: str, each: object, known: Mapping[str, Any], kind: str) -> bool:
    try:
        return bool(chosen(written, known, kind) == each)
    except AssayError:
        return False


def _instrument(name: str, each: Any, kind: str) -> Any:
    """The object, or scores in its place."""
    if callable(each):
        return each
    if kind == "explainer" and not isinstance(each, str) and (isinstance(each, Sequence) or hasattr(each, "__array__")):
        return GivenScores(each)
    raise AssayError(f"{name!r} is {type(each).__name__} and no {kind}; give a name, or an object that can be called.")


def chosen(
    text: str, known: Mapping[str, Instrument], kind: str = "explainer", shared: Mapping[str, Any] | None = None
) -> Instrument:
    """What has that name, with its options as written behind the name, and else those that it shares with others."""
    parts = NAMED.fullmatch(text)
    if parts is None:
        raise AssayError(f"{text!r} names no {kind}; write a name, or a name with options as in lime(samples=500).")
    name, written = parts.groups()
    instrument = _sharing(member(name, known, kind), shared or {})
    given = dict(_option(name, option) for option in separated(written or ""))
    if not given:
        return instrument
    usual = options(instrument)
    if not usual:
        raise AssayError(f"The {kind} {name!r} has no options.")
    fitting = {option: _fitting(name, option, value, usual) for option, value in given.items()}
    try:
        changed: Instrument = replace(cast(Any, instrument), **fitting)
    except TypeError:  # words where numbers are compared
        raise AssayError(f"{written!r} are no options of {name!r}; 'assay {kind}s' lists them.") from None
    return changed


def _sharing(instrument: Instrument, shared: Mapping[str, Any]) -> Instrument:
    """The instrument with the value of each shared option that it has."""
    if not is_dataclass(instrument) or isinstance(instrument, type):
        return instrument
    names = {field.name for field in fields(instrument)} & set(shared)
    if not names:
        return instrument
    changed: Instrument = replace(cast(Any, instrument), **{name: shared[name] for name in names})
    return changed


def _option(name: str, text: str) -> tuple[str, Any]:
    option, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not option or not value:
        raise AssayError(f"{text!r} is no option of {name!r}; write it as in {name}(option=value).")
    try:
        return option, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return option, value  # a word


def _fitting(name: str, option: str, value: Any, usual: dict[str, Any]) -> Any:
    """The parsed value of an option, which must exist and have the type of its default."""
    if option not in usual:
        raise unknown(f"option of {name}", option, usual)
    try:
        return value if usual[option] is None else _alike(value, usual[option])
    except TypeError:
        like = "a list in parentheses" if usual[option] == () else f"like {usual[option]!r}"
        sentence = f"The option {option!r} of {name!r} is {like}, not {value!r}."
        raise AssayError(sentence) from None


def _alike(value: Any, usual: Any) -> Any:
    """The value converted to the type of the default; an int is accepted for a float, also in a list."""
    if isinstance(usual, tuple) and isinstance(value, tuple):
        return tuple(_alike(each, usual[0]) for each in value) if usual else value
    if type(usual) is float and type(value) is int:
        return float(value)
    if type(value) is not type(usual):
        raise TypeError
    return value
