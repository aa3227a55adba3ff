"""Converts TOML values to the types of options; a mismatch is one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from assay.errors import AssayError, unknown

Made = TypeVar("Made")
SAID = {int: "a whole number", float: "a number", str: "a text", bool: "true or false", tuple: "a list"}


def coerced(value: Any, kind: Any, name: str) -> Any:
    """The value as that type: lists become tuples, and integers are accepted as floats."""
    if get_origin(kind) in (Union, UnionType):
        kind = next(each for each in get_args(kind) if each is not type(None))  # TOML has no None
    if get_origin(kind) is tuple and isinstance(value, list | tuple):
        return tuple(coerced(each, get_args(kind)[0], f"each of {name}") for each in value)
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise AssayError(f"{name} is {SAID[get_origin(kind) or kind]}, not {value!r}.")
    return value


def options(given: Mapping[str, Any], kinds: Mapping[str, Any], where: str) -> dict[str, Any]:
    """All entries of a table, each as its type; unknown ones are refused."""
    for name in given:
        if name not in kinds:
            raise unknown(f"entry of {where}", name, kinds)
    return {name: coerced(value, kinds[name], f"{name} of {where}") for name, value in given.items()}


def from_table(kind: type[Made], given: Mapping[str, Any], where: str) -> Made:
    """A dataclass from a table."""
    known = options(given, get_type_hints(kind), where)
    for each in fields(kind):  # type: ignore[arg-type]
        if each.default is MISSING and each.default_factory is MISSING and each.name not in known:
            raise AssayError(f"An entry of {where} lacks its {each.name}.")
    return kind(**known)


def table(value: Any, name: str) -> Mapping[str, Any]:
    """The value, checked to be a table."""
    if not isinstance(value, Mapping):
        raise AssayError(f"{name} is a table of TOML, not {value!r}.")
    return value
