"""Questions about the words of a treebank: which word governs this one, and which words does it govern?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from assay.probes.sight import Sight

ANY, MARKS = "any", "punct"


@dataclass(frozen=True)
class Quiz:
    """Questions in one direction, for each relation, and for any that is not punctuation, which comes last.

    To the governor, every word that stands in the relation is asked about; to the dependent, every word that governs
    one in it, and any such dependent is a right answer.
    """

    data: Sight
    names: tuple[str, ...]
    code: Int[np.ndarray, " N"]  # of each word's relation to its governor, -1 where it is not asked about
    governor: Int[np.ndarray, " N"]
    backwards: bool

    @classmethod
    def of(cls, data: Sight, names: Sequence[str], backwards: bool) -> Quiz:
        """The questions about the relations with these names."""
        numbers = {name: number for number, name in enumerate(names)}
        code = np.array([numbers.get(name, -1) for name in data.relation], dtype=np.int64)
        return cls(data, (*names, ANY), code, data.governor, backwards)

    def found(self, most: Int[np.ndarray, "N K"]) -> Int[np.ndarray, "N K"]:
        """The number of the relation in which each word stands to the one it attends to most, -1 where in none."""
        target = most + self.data.first[:, None]
        own = np.arange(len(self.code))[:, None]
        if self.backwards:
            return np.where((self.governor[target] == own) & (most >= 0), self.code[target], -1)
        return np.where((self.governor[:, None] == target) & (most >= 0), self.code[:, None], -1)

    def right(self, most: Int[np.ndarray, "N K"]) -> Int[np.ndarray, "R K"]:
        """The number of right answers about each relation, for each head."""
        kinds, heads = len(self.names), most.shape[1]
        cells = (self.found(most) + 1) * heads + np.arange(heads)
        counts = np.bincount(cells.ravel(), minlength=kinds * heads).reshape(kinds, heads)[1:]
        return np.concatenate([counts, counts[self.counted].sum(0, keepdims=True)])

    def answers(self, most: Int[np.ndarray, " N"], kind: int) -> Bool[np.ndarray, " n"]:
        """Whether the answer to each question about one relation is right."""
        found = self.found(most[:, None])[self.asked[kind], 0]
        last = kind == len(self.names) - 1
        return np.asarray((found >= 0) & self.counted[found] if last else found == kind)

    @property
    def asked(self) -> Bool[np.ndarray, "R N"]:
        """The words that there is a question about, for each relation."""
        some, about = self._pairs
        questions = np.zeros((len(self.names), len(self.code)), dtype=bool)
        questions[self.code[some], about] = True
        questions[-1] = questions[:-1][self.counted].any(0)
        return questions

    @property
    def chance(self) -> Float[np.ndarray, " R"]:
        """The share of right answers if every other word of the sentence were as likely."""
        some, about = self._pairs
        one = 1 / np.maximum(1, self.data.length[about] - 1)
        hits = np.bincount(self.code[some], one, minlength=len(self.names) - 1)
        hits = np.append(hits, hits[self.counted].sum())
        return np.asarray(hits / np.maximum(1, self.asked.sum(1)))

    @property
    def counted(self) -> Bool[np.ndarray, " r"]:
        """Which of the relations count as any."""
        return np.array([name != MARKS for name in self.names[:-1]], dtype=bool)

    @property
    def _pairs(self) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " n"]]:
        """The dependents that are asked for or about, and the word that is asked about for each."""
        some = np.flatnonzero(self.code >= 0)
        return some, self.governor[some] if self.backwards else some

    def control(self, fraction: Float[np.ndarray, " N"]) -> Quiz:
        """The same with other governors: the word at this fraction of the other words of the sentence."""
        place = np.floor(fraction * (self.data.length - 1)).astype(np.int64)
        place = np.where(self.data.length > 1, place + (place >= self.data.place), 0)
        return replace(self, governor=self.data.first + place)
