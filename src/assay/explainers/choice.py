"""Parses explainers and audits by name with options: lime, or lime(samples=500, removal=mask)."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

from assay.errors import AssayError, unknown

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


def chosen(text: str, known: Mapping[str, Instrument], kind: str = "explainer") -> Instrument:
    """The explainer or audit of that name, with the options written behind it."""
    parts = NAMED.fullmatch(text)
    if parts is None:
        raise AssayError(f"{text!r} names no {kind}; write a name, or a name with options as in lime(samples=500).")
    name, written = parts.groups()
    if name not in known:
        raise unknown(kind, name, known)
    instrument = known[name]
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
