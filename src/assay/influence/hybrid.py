"""Hybrid influence: which training examples, and which of their tokens, made the model attend to a token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from assay import progress
from assay.errors import AssayError, unknown
from assay.influence.hybrid_result import HybridResult, SalientToken, TrainingEvidence
from assay.influence.inverses import Inverse, affordable
from assay.influence.products import Vectors, train_products
from assay.influence.salience import SALIENCES, Pair, salience_gradients, saliences
from assay.influence.setting import Influence, Setting
from assay.influence.tokens import OF_TOKENS


@dataclass(frozen=True)
class Hybrid:
    """∇_θ s · H⁻¹ ∇_θ loss(z), s the salience of a token (Meng et al., 2020, "Pair the dots"; survey eqs. 28 to 31).

    Salience is `norm`, `input_x_gradient` or `integrated_gradient`. A token of z is taken away (`deletion`), or its
    embedding is followed towards 0 (`gradient`).
    """

    # differs from Meng et al. (2020), eq. 29: the influence on the vector ∂S/∂x_t depends on how the space of
    # embeddings is turned, which the loss leaves open; that on its norm does not, and takes one solution a token.
    inverse: Inverse = affordable
    salience: str = "norm"
    perturbation: str = "deletion"

    def __post_init__(self) -> None:
        if self.salience not in SALIENCES:
            raise unknown("salience", self.salience, SALIENCES)
        if self.perturbation not in OF_TOKENS:
            raise unknown("perturbation", self.perturbation, OF_TOKENS)

    def unfit(self, setting: Setting) -> str | None:
        return None

    def __call__(self, setting: Setting) -> Influence:
        """The change of the salience of each query's most salient token by the removal of each training example."""
        positions = [int(np.abs(each).argmax()) for each in saliences(setting, self.salience)]
        solved = self.solved(setting, list(enumerate(positions)))
        return Influence(self.scores(setting, solved), notes={"tokens": positions})

    def solved(self, setting: Setting, pairs: Sequence[Pair]) -> Vectors:
        """H⁻¹ ∇_θ s for the salience s of each of these tokens."""
        return self.inverse(setting, salience_gradients(setting, pairs, self.salience))

    def scores(self, setting: Setting, solved: Vectors) -> Float[np.ndarray, "Q N"]:
        """The change of each of these saliences by the removal of each training example."""
        return np.asarray(train_products(setting, solved) * setting.weights / len(setting.train))

    def explain(
        self, setting: Setting, query: int = 0, tokens: Sequence[int] | None = None, top: int = 5, most: int = 1
    ) -> HybridResult:
        """The `top` training examples behind each of these tokens of a query, or behind its `most` salient ones."""
        one = replace(setting, queries=[setting.queries[query]], classes=setting.classes[[query]])
        (found,) = saliences(one, self.salience)
        chosen = np.argsort(-np.abs(found), kind="stable")[:most].tolist() if tokens is None else list(tokens)
        if not chosen or not all(0 <= position < len(found) for position in chosen):
            raise AssayError(f"Token positions must be from 0 to {len(found) - 1}, got {chosen}.")
        with progress.bar() as shown:
            task = shown.add_task("why the model looks there", total=3)
            solved = self.solved(one, [(0, position) for position in chosen])
            shown.advance(task)
            scores = self.scores(one, solved)
            shown.advance(task)
            # without what made the model look, it looks less; where salience has a sign, that is nearer to 0
            lost = -scores * np.where(found[chosen] < 0, -1, 1)[:, None]
            best = [[int(row) for row in np.argsort(-each, kind="stable")[:top] if each[row] > 0] for each in lost]
            rows = sorted({row for each in best for row in each})
            parts = dict(zip(rows, OF_TOKENS[self.perturbation](one, solved, rows) if rows else [], strict=True))
            shown.advance(task)
        looked = tuple(
            SalientToken(
                position,
                float(found[position]),
                tuple(
                    TrainingEvidence(row, setting.train[row], float(scores[number, row]), parts[row][number])
                    for row in best[number]
                ),
            )
            for number, position in enumerate(chosen)
        )
        asked = int(setting.classes[query])
        return HybridResult(
            setting.queries[query], asked, setting.target, self.salience, len(setting.train), found, looked
        )
