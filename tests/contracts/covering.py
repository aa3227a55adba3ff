"""A covering design: each member meets a few kinds of model and each kind a few members; the full product is slow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import product

import pytest

Pair = tuple[str, str]


def chosen(pairs: Iterable[Pair], each: int, turn: int = 0) -> set[Pair]:
    """Some of the pairs: at least `each` of every member and of every kind, or all where there are fewer.

    A member takes the kinds that were taken least so far, in an order that starts elsewhere for each member and for
    each `turn`: contracts of different turns meet different pairs.
    """
    kinds_of: dict[str, list[str]] = {}
    members_of: dict[str, list[str]] = {}
    for member, kind in pairs:
        kinds_of.setdefault(member, []).append(kind)
        members_of.setdefault(kind, []).append(member)
    place = {kind: number for number, kind in enumerate(members_of)}
    taken: Counter[str] = Counter()
    cover: set[Pair] = set()
    for number, (member, kinds) in enumerate(kinds_of.items()):
        order = sorted(kinds, key=lambda kind: (taken[kind], (place[kind] - each * (turn + number)) % len(place)))
        taken.update(order[:each])
        cover.update((member, kind) for kind in order[:each])
    for kind, members in members_of.items():
        cover.update((member, kind) for member in members[turn % len(members) :][: max(0, each - taken[kind])])
    return cover


def covering(pairs: Sequence[Pair], each: int = 3, turn: int = 0) -> pytest.MarkDecorator:
    """Parametrises a contract by all these pairs of `name` and `kind`; those outside the design are slow."""
    cover = chosen(pairs, each, turn)
    return pytest.mark.parametrize(
        ("name", "kind"),
        [pytest.param(*pair, id="-".join(pair), marks=() if pair in cover else pytest.mark.slow) for pair in pairs],
    )


def fitting(
    members: Iterable[str], kinds: Iterable[str], fits: Callable[[str, str], bool]
) -> tuple[list[Pair], list[Pair]]:
    """The pairs that fit, and those that do not."""
    fit: list[Pair] = []
    unfit: list[Pair] = []
    for pair in product(members, kinds):
        (fit if fits(*pair) else unfit).append(pair)
    return fit, unfit
