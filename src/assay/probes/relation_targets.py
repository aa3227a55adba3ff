"""Targets of the relation probe: the governor of each word, or its dependents, by dependency relation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from assay.probes.treebank_view import TreebankView

ANY, MARKS = "any", "punct"


@dataclass(frozen=True)
class RelationTargets:
    """Targets in one direction for each relation, and for any but punctuation, which comes last.

    Towards the governor, every word in the relation is a query; towards the dependent, every word that governs one in
    it, and any such dependent is correct.
    """

    data: TreebankView
    names: tuple[str, ...]
    code: Int[np.ndarray, " N"]  # of each word's relation to its governor, -1 where it is not asked about
    governor: Int[np.ndarray, " N"]
    backwards: bool

    @classmethod
    def of(cls, data: TreebankView, names: Sequence[str], backwards: bool) -> RelationTargets:
        """The targets of the relations with these names."""
        numbers = {name: number for number, name in enumerate(names)}
        code = np.array([numbers.get(name, -1) for name in data.relation], dtype=np.int64)
        return cls(data, (*names, ANY), code, data.governor, backwards)

    def found(self, most: Int[np.ndarray, "N K"]) -> Int[np.ndarray, "N K"]:
        """The number of the relation between each word and the one it attends to most, -1 where none."""
        target = most + self.data.first[:, None]
        own = np.arange(len(self.code))[:, None]
        if self.backwards:
            return np.where((self.governor[target] == own) & (most >= 0), self.code[target], -1)
        return np.where((self.governor[:, None] == target) & (most >= 0), self.code[:, None], -1)

    def right(self, most: Int[np.ndarray, "N K"]) -> Int[np.ndarray, "R K"]:
        """The number of correct answers for each relation and head."""
        kinds, heads = len(self.names), most.shape[1]
        cells = (self.found(most) + 1) * heads + np.arange(heads)
        counts = np.bincount(cells.ravel(), minlength=kinds * heads).reshape(kinds, heads)[1:]
        return np.concatenate([counts, counts[self.counted].sum(0, keepdims=True)])

    def answers(self, most: Int[np.ndarray, " N"], kind: int) -> Bool[np.ndarray, " n"]:
        """Whether each query of one relation is answered correctly."""
        found = self.found(most[:, None])[self.asked[kind], 0]
        last = kind == len(self.names) - 1
        return np.asarray((found >= 0) & self.counted[found] if last else found == kind)

    @property
    def asked(self) -> Bool[np.ndarray, "R N"]:
        """The words that are queries, for each relation."""
        some, about = self._pairs
        questions = np.zeros((len(self.names), len(self.code)), dtype=bool)
        questions[self.code[some], about] = True
        questions[-1] = questions[:-1][self.counted].any(0)
        return questions

    @property
    def chance(self) -> Float[np.ndarray, " R"]:
        """The accuracy of a uniformly random other word of the sentence."""
        some, about = self._pairs
        one = 1 / np.maximum(1, self.data.length[about] - 1)
        hits = np.bincount(self.code[some], one, minlength=len(self.names) - 1)
        hits = np.append(hits, hits[self.counted].sum())
        return np.asarray(hits / np.maximum(1, self.asked.sum(1)))

    @property
    def counted(self) -> Bool[np.ndarray, " r"]:
        """Which relations count towards "any"."""
        return np.array([name != MARKS for name in self.names[:-1]], dtype=bool)

    @property
    def _pairs(self) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " n"]]:
        """The dependents, and the query word of each."""
        some = np.flatnonzero(self.code >= 0)
        return some, self.governor[some] if self.backwards else some

    def control(self, fraction: Float[np.ndarray, " N"]) -> RelationTargets:
        """The same with random governors: the word at this fraction of the sentence's other words."""
        position = np.floor(fraction * (self.data.length - 1)).astype(np.int64)
        position = np.where(self.data.length > 1, position + (position >= self.data.position), 0)
        return replace(self, governor=self.data.first + position)
