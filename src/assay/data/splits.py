"""Deterministic splits by a hash of each text: identical texts stay together."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

from assay.data.examples import Example

Examples = tuple[Example, ...]
Item = TypeVar("Item")


def fraction(text: str, seed: int) -> float:
    """A hash of text and seed as a uniform number in [0, 1)."""
    mark = hashlib.blake2b(f"{seed} {text.strip()}".encode(), digest_size=8).digest()
    return int.from_bytes(mark, "big") / 2**64


def lowest(
    items: Sequence[Item], texts: Sequence[str], share: float, seed: int
) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
    """The items whose hash is at most `share`, at least one text, and the others."""
    fractions = [fraction(text, seed) for text in texts]
    limit = max(share, min(fractions, default=share))
    pairs = list(zip(items, fractions, strict=True))
    chosen = tuple(item for item, mark in pairs if mark <= limit)
    return chosen, tuple(item for item, mark in pairs if mark > limit)


def texts(examples: Sequence[Example]) -> list[str]:
    """The text of each example."""
    return [example.text for example in examples]


def train_dev(examples: Sequence[Example], seed: int = 0) -> tuple[Examples, Examples]:
    """Nine tenths to train on and one tenth to choose by."""
    dev, train = lowest(examples, texts(examples), 0.1, seed)
    return train, dev


def train_dev_test(examples: Sequence[Example], seed: int = 0) -> tuple[Examples, Examples, Examples]:
    """Eight tenths, one tenth and one tenth."""
    test, others = lowest(examples, texts(examples), 0.1, seed)
    dev, train = lowest(others, texts(others), 0.2, seed)
    return train, dev, test
