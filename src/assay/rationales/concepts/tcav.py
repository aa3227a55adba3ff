"""TCAV: whether a class depends on a concept that is given by examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy import stats

from assay.data.batches import Tokenised, tokenise
from assay.data.examples import Example
from assay.errors import AssayError
from assay.models.steering import STATES
from assay.models.store import Opened
from assay.models.textmodel import TextModel
from assay.rationales.concepts.directions import Direction, direction, score, sensitivities, vectors

Vectors = Float[np.ndarray, "N M"]


@dataclass(frozen=True)
class TcavResult:
    """TCAV scores of a class and a concept in each run, beside those of random directions.

    `p` is that of Welch's two-sided t-test between both; `significant` says whether it stays below the level after
    Bonferroni's correction for all pairs of concepts and classes that were asked about. `accuracy` is how often the
    directions tell held-out examples from random texts, on average: near one half, they stand for nothing.
    """

    concept: str
    target: int
    scores: Float[np.ndarray, " R"]
    random: Float[np.ndarray, " R"]
    p: float
    significant: bool
    accuracy: float

    @property
    def score(self) -> float:
        return float(self.scores.mean())


@dataclass(frozen=True)
class Tcav:
    """TCAV (Kim et al., 2018): the share of texts whose logit rises when a layer moves along the concept's direction.

    The direction of a concept is that of a logistic regression between its examples and as many random texts, which
    are drawn anew for each of the `runs`. A level stands for a text by the mean over its words, and moves by the same
    vector at each word.
    """

    # differs from Kim et al. (2018): a level of a text has no fixed size, so its mean over words takes its index

    level: str = STATES
    runs: int = 20
    strength: float = 1.0  # of the regression's L2 penalty
    significance: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        if self.runs < 2:
            raise AssayError(f"A test between directions needs at least two runs, got {self.runs}.")

    def fit(
        self,
        network: TextModel,
        concepts: Mapping[str, Sequence[Tokenised]],
        others: Sequence[Tokenised],
        texts: Mapping[int, Sequence[Tokenised]],
    ) -> tuple[TcavResult, ...]:
        """Tests each class against each concept; `texts` are examples of each class.

        The `others` are random texts: they are what concepts are told from, and what random concepts are made of.
        """
        smallest = min((len(rows) for rows in concepts.values()), default=0)
        if smallest < 2 or len(others) < 4 or not texts or not all(texts.values()):
            raise AssayError(
                "TCAV needs two examples of each concept, four random texts, and one text of each class asked about."
            )
        gradients = {target: sensitivities(network, rows, self.level, target) for target, rows in texts.items()}
        drawn = vectors(network, others, self.level)
        asked = len(concepts) * len(gradients)
        found = []
        for index, (concept, rows) in enumerate(concepts.items()):
            shown = vectors(network, rows, self.level)
            known = [self._told(shown, drawn, self._chance(2 * index, run)) for run in range(self.runs)]
            size = min(len(shown), len(drawn) // 2)
            random = [self._made_up(drawn, size, self._chance(2 * index + 1, run)) for run in range(self.runs)]
            for target, gradient in gradients.items():
                found.append(self._compared(concept, target, gradient, known, random, asked))
        return tuple(found)

    def _told(self, shown: Vectors, drawn: Float[np.ndarray, "O M"], chance: np.random.Generator) -> Direction:
        """The direction between random texts and the examples of a concept."""
        chosen = chance.choice(len(drawn), min(len(shown), len(drawn)), replace=False)
        return direction(shown, drawn[chosen], self.level, self.strength, chance)

    def _made_up(self, drawn: Vectors, size: int, chance: np.random.Generator) -> Direction:
        """A random direction: between two disjoint sets of random texts."""
        order = chance.permutation(len(drawn))
        return direction(drawn[order[:size]], drawn[order[size : 2 * size]], self.level, self.strength, chance)

    def _compared(
        self,
        concept: str,
        target: int,
        gradients: Vectors,
        known: Sequence[Direction],
        random: Sequence[Direction],
        asked: int,
    ) -> TcavResult:
        scores, chance = (np.array([score(gradients, each) for each in some]) for some in (known, random))
        p = unlike(scores, chance)
        accuracy = float(np.mean([each.accuracy for each in known]))
        return TcavResult(concept, target, scores, chance, p, p * asked < self.significance, accuracy)

    def _chance(self, kind: int, run: int) -> np.random.Generator:
        return np.random.default_rng((self.seed, kind, run))


def tcav(
    model: Opened,
    concepts: Mapping[str, Sequence[Example]],
    others: Sequence[Example],
    texts: Sequence[Example],
    options: Tcav | None = None,
) -> tuple[TcavResult, ...]:
    """TCAV of concepts given by examples, for the classes of some texts."""

    def read(examples: Sequence[Example]) -> list[Tokenised]:
        return tokenise(examples, model.tokeniser, model.tokeniser.options.longest)[0]

    labels = sorted({each.label for each in texts})
    by_class = {label: read([each for each in texts if each.label == label]) for label in labels}
    given = {name: read(examples) for name, examples in concepts.items()}
    return (options or Tcav()).fit(model.network, given, read(others), by_class)


def unlike(first: Float[np.ndarray, " R"], second: Float[np.ndarray, " Q"]) -> float:
    """The p-value of Welch's two-sided t-test; 0 or 1 for samples without variance."""
    spreads = np.array([each.var(ddof=1) / len(each) for each in (first, second)])
    if not spreads.any():
        return float(first[0] == second[0])
    t = (first.mean() - second.mean()) / np.sqrt(spreads.sum())
    freedom = spreads.sum() ** 2 / (spreads**2 / [len(first) - 1, len(second) - 1]).sum()
    return float(2 * stats.t.sf(abs(t), freedom))
