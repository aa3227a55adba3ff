"""A hierarchical explanation: a tree of phrases, from the whole text to its words, with a score for each phrase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, order=True)
class Phrase:
    """A contiguous phrase, words start to stop − 1, and its score for a class."""

    start: int
    stop: int
    score: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.stop:
            raise ValueError(f"A phrase has at least one word, not those from {self.start} to {self.stop}.")


@dataclass(frozen=True)
class Tree:
    """A tree of phrases as levels, from the whole text, or its largest phrases, down to words.

    Each level is a partition of the words in their order, and each refines the one above it. `cohesion` is how much of
    p(class) its strongest phrase owes to its words standing together, where that was measured.
    """

    method: str
    levels: tuple[tuple[Phrase, ...], ...]
    cohesion: float | None = None

    def __post_init__(self) -> None:
        if not self.levels:
            raise ValueError("A tree has at least one level.")
        size = self.levels[0][-1].stop
        above: set[int] = set()
        for level in self.levels:
            starts = [phrase.start for phrase in level]
            if starts != [0, *(phrase.stop for phrase in level[:-1])] or level[-1].stop != size:
                raise ValueError("The phrases of a level follow one another and leave no word out.")
            if not above <= set(starts):
                raise ValueError("A level divides the phrases of the one above it.")
            above = set(starts)

    @property
    def words(self) -> int:
        return self.levels[0][-1].stop

    @property
    def scores(self) -> list[float]:
        """One score per word: that of its phrase on the lowest level."""
        return [phrase.score for phrase in self.levels[-1] for _ in range(phrase.start, phrase.stop)]

    @property
    def strongest(self) -> Phrase | None:
        """The phrase of the highest score with several words that is not the whole text."""
        phrases = {each for level in self.levels for each in level}
        several = [each for each in phrases if 1 < each.stop - each.start < self.words]
        return max(several, key=lambda each: (each.score, -each.start, each.stop), default=None)

    def within(self, phrase: Phrase) -> list[Phrase]:
        """The children of a phrase: its parts on the first level that splits it."""
        for level in self.levels:
            inside = [each for each in level if phrase.start <= each.start and each.stop <= phrase.stop]
            if len(inside) > 1:
                return inside
        return []

    def json(self) -> dict[str, Any]:
        levels = [[[each.start, each.stop, each.score] for each in level] for level in self.levels]
        return {"method": self.method, "levels": levels, "cohesion": self.cohesion}

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Tree:
        """The tree from its JSON form."""
        return cls(stored["method"], levels_of(stored["levels"]), stored.get("cohesion"))


def levels_of(stored: Sequence[Sequence[Sequence[int | float]]]) -> tuple[tuple[Phrase, ...], ...]:
    """Levels from JSON: start, stop and score of each phrase."""
    return tuple(tuple(Phrase(int(start), int(stop), float(score)) for start, stop, score in level) for level in stored)
