"""shap's partition explainer and lime's explainer of texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import shap
import torch
from torch import Tensor

from benchmarks.beside.plainly import AT_ONCE, Plain, counted
from benchmarks.beside.turns import Scores, Text, Way

__all__ = ["WAYS", "counted", "shap_partition"]

READS = 500  # shap's own number for texts


def shap_partition(probability: Callable[[Tensor], Tensor], x: Tensor, at_once: int, most: int = 10_000) -> Tensor:
    """shap's PartitionExplainer over our tree, with as many reads as it takes, or at `most` so many."""

    class Blanks:
        clustering = tree(x.shape[1])
        shape = (None, x.shape[1])

        def __call__(self, kept: np.ndarray, row: np.ndarray) -> np.ndarray:
            return (kept * row)[None]

    def answers(rows: np.ndarray) -> np.ndarray:
        return probability(x * torch.from_numpy(rows).float()[..., None]).numpy()

    explainer = shap.PartitionExplainer(answers, Blanks())
    found = explainer(np.ones((1, x.shape[1])), max_evals=most, batch_size=at_once, silent=True)
    return torch.from_numpy(found.values[0])


def tree(tokens: int) -> np.ndarray:
    """The text halved again and again, in scipy's form: two nodes, a distance and a size in each row."""
    rows: list[list[int]] = []

    def joined(start: int, stop: int) -> int:
        if stop - start == 1:
            return start
        middle = (start + stop + 1) // 2
        rows.append([joined(start, middle), joined(middle, stop), stop - start, stop - start])
        return tokens + len(rows) - 1

    joined(0, tokens)
    return np.array(rows, dtype=float)


def partition(folder: Path) -> Way:
    """Over the same tree and the same blanks as ours."""
    plain = Plain(folder)

    def run(texts: Sequence[Text]) -> Scores:
        return [shap_partition(plain.of(text.label), plain.words([text]), AT_ONCE).tolist() for text in texts]

    return run


def usual(folder: Path) -> Way:
    """As it comes: strings, its own tree, and its own number of reads."""
    plain = Plain(folder)
    explainer = shap.Explainer(lambda texts: plain.read(list(texts)).numpy(), shap.maskers.Text(plain.tokenizer))

    def run(texts: Sequence[Text]) -> Scores:
        found = explainer([text.words for text in texts], max_evals=READS, batch_size=AT_ONCE, silent=True)
        both = zip(texts, found.values, strict=True)
        return [values[1:-1, text.label].tolist() for text, values in both]  # without the special tokens

    return run


WAYS = {"partition": partition, "usual": usual}
