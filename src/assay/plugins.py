"""Members of the dicts that other packages offer by entry points, imported when one is asked for by its name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from assay.errors import library_errors, unknown

Member = TypeVar("Member")

GROUPS = {
    "explainer": "assay.explainers",
    "audit": "assay.audits",
    "method": "assay.methods",
    "edit": "assay.edits",
    "recipe": "assay.recipes",
    "corpus": "assay.corpora",
}
"""The group of entry points of each kind of member."""


def member(name: str, known: Mapping[str, Member], kind: str) -> Member:
    """The member of that name: of the dict, or else what another package offers under it."""
    if name in known:
        return known[name]
    if name in offered(kind):
        found: Member = loaded(kind, name)
        return found
    raise unknown(kind, name, [*known, *offered(kind)])


def all_members(known: Mapping[str, Member], kind: str) -> Iterator[tuple[str, Member]]:
    """Every name with its member: those of the dict, then those of other packages, which are imported for it."""
    yield from known.items()
    yield from ((name, loaded(kind, name)) for name in offered(kind) if name not in known)


@cache
def offered(kind: str) -> dict[str, EntryPoint]:
    """The entry points of other packages for members of this kind, by name."""
    return {each.name: each for each in entry_points(group=GROUPS[kind])} if kind in GROUPS else {}


def loaded(kind: str, name: str) -> Any:
    """What another package offers under the name; a class is called without arguments."""
    point = offered(kind)[name]
    package = "another package" if point.dist is None else f"the package {point.dist.name}"
    with library_errors(
        lambda why: f"The {kind} {name!r} of {package} cannot be loaded ({why}); update or uninstall it."
    ):
        value = point.load()
        return value() if isinstance(value, type) else value
