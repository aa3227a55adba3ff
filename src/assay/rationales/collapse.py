"""Detects collapsed selections, which say nothing about the text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from assay.rationales.measuring import Selected

MOST, LEAST = 0.95, 0.01
"""Shares of words from which on nearly all, or nearly none, are selected."""

ALIKE = 0.9  # of selected words stand at positions that are selected in as large a share of texts


def collapse(found: Sequence[Selected], shares: Sequence[float], majority: float) -> list[str]:
    """A sentence for each symptom of collapse in the selections of some texts.

    `shares` are those of words that were drawn in each epoch, and `majority` is how often the most frequent class is
    right.
    """
    told = []
    if shares and shares[-1] > MOST:
        told.append(f"Training collapsed: in its last epoch {shares[-1]:.0%} of all words were drawn.")
    if shares and shares[-1] < LEAST:
        told.append(f"Training collapsed: in its last epoch hardly any word was drawn ({shares[-1]:.1%}).")
    size = float(np.mean([each.kept.mean() for each in found]))
    if size > MOST:
        told.append(f"Nearly every word is selected ({size:.0%}), so the selection explains nothing.")
    if size < LEAST:
        told.append("Nearly no word is selected, so the decision rests on something else.")
    if LEAST <= size <= MOST:
        told += _repeated(found)
    right = np.array([each.predicted == each.row.label for each in found], dtype=float)
    if right.mean() <= majority + 2 * right.std() / np.sqrt(len(right)):
        told.append(f"The selected words decide no better than always guessing one class ({majority:.0%} right).")
    return told


def _repeated(found: Sequence[Selected]) -> list[str]:
    """Selections that are the same whatever the words."""
    for end, turn in (("start", slice(None)), ("end", slice(None, None, -1))):
        if _alike([each.kept[turn] for each in found]) > ALIKE:
            return [
                f"The same positions, counted from the {end}, are selected in nearly every text, whatever the words."
            ]
    words = Counter(word for each in found for word in each.row.ids.numpy()[each.kept].tolist())
    most = max(words.values(), default=0) / max(1, words.total())
    return [f"One word makes up {most:.0%} of all that is selected."] if most > ALIKE else []


def _alike(kept: Sequence[np.ndarray]) -> float:
    """The mean over selected words of the share of texts, as long or longer, that select the same position."""
    width = max(len(each) for each in kept)
    there, chosen = np.zeros(width), np.zeros(width)
    for each in kept:
        there[: len(each)] += 1
        chosen[: len(each)] += each
    shares = chosen / np.maximum(there, 1)
    return float((shares * chosen).sum() / max(1.0, chosen.sum())) if len(kept) > 1 else 0.0
