"""Results of hybrid influence: salient tokens with the training examples, and their tokens, that cause the salience."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from assay.data.batches import Tokenised


@dataclass(frozen=True)
class TrainingEvidence:
    """A training example: the change of the salience without it, and without each of its tokens.

    The scores of its tokens need not add up to its own.
    """

    row: int  # its index among the training rows
    example: Tokenised
    score: float
    tokens: Float[np.ndarray, " T"]


@dataclass(frozen=True)
class SalientToken:
    """A salient token with its training evidence, strongest first."""

    position: int
    salience: float
    evidence: tuple[TrainingEvidence, ...]


@dataclass(frozen=True)
class HybridResult:
    """The salience of every token of a text, and the training evidence of some of them."""

    query: Tokenised
    asked: int  # the class
    target: str
    salience: str
    trained: int  # training examples in all
    saliences: Float[np.ndarray, " T"]  # of all tokens of the text
    tokens: tuple[SalientToken, ...]

    def json(self, trained: Callable[[int], str], text: str, classes: Sequence[str]) -> dict[str, Any]:
        """As JSON values; `trained` gives the text of a training row, `text` is that of the query."""
        return {
            "asked": str(classes[self.asked]),
            "target": self.target,
            "salience": self.salience,
            "trained": self.trained,
            **_written(self.query, text, self.saliences),
            "tokens": [
                {
                    "place": token.position,
                    "salience": token.salience,
                    "behind": [_evidence(each, trained(each.row), classes) for each in token.evidence],
                }
                for token in self.tokens
            ],
        }


def _evidence(each: TrainingEvidence, text: str, classes: Sequence[str]) -> dict[str, Any]:
    about = {"row": each.example.index, "label": str(classes[each.example.label]), "score": each.score}
    return about | _written(each.example, text, each.tokens)


def _written(row: Tokenised, text: str, scores: Float[np.ndarray, " T"]) -> dict[str, Any]:
    """A text, the character offsets of its tokens, and a number for each."""
    starts, ends = (part.tolist() for part in row.spans.unbind(-1))
    return {"text": text, "starts": starts, "ends": ends, "scores": scores.tolist()}
