"""Coreference probe: whether a pronoun attends to its antecedent rather than to another name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.data.batches import Tokenised
from assay.data.examples import Span
from assay.data.mentions import Pronoun
from assay.errors import AssayError
from assay.models.hf_body import Body
from assay.models.hf_subwords import SubwordTokeniser
from assay.probes.alignment import aligned
from assay.probes.observation import maps
from assay.probes.scoring import DRAWS, grid, named, spread, wilson

SMALLEST = 1e-9  # of the attention given to a name, so that its logarithm is finite


@dataclass(frozen=True)
class NameAttention:
    """N pronouns: the attention of each head to the two names, which one is right, and which is nearer."""

    weights: Float[np.ndarray, "N K 2"]
    right: Int[np.ndarray, " N"]
    nearer: Int[np.ndarray, " N"]
    layers: int

    def hits(self, right: Int[np.ndarray, " N"]) -> Bool[np.ndarray, "N K"]:
        """Whether more attention goes to the right name; ties count as wrong."""
        first, second = self.weights[..., 0], self.weights[..., 1]
        return np.where(right[:, None] == 0, first > second, second > first)

    @property
    def confusion(self) -> Float[np.ndarray, " K"]:
        """The binary cross-entropy of the attention normalised over both names; Lin, Tan and Frank (2019)."""
        both = self.weights.astype(np.float64) + SMALLEST
        share = np.take_along_axis(both, self.right[:, None, None], axis=2)[..., 0] / both.sum(-1)
        return np.asarray(-np.log(share).mean(0))


def coreference(
    network: Body, tokeniser: SubwordTokeniser, dev: Sequence[Pronoun], test: Sequence[Pronoun], seed: int = 0
) -> dict[str, Any]:
    """The accuracy of the head that is best on dev at attending to the right name, on test.

    After Clark et al. (2019), section 4.3, with names to choose from. In the control the right name is drawn.
    """
    first, second = (
        choices(network, tokeniser, each, f"Pronouns, {name}") for each, name in ((dev, "dev"), (test, "test"))
    )
    head = int(first.hits(first.right).mean(0).argmax())
    hits = second.hits(second.right)
    score = wilson(hits[:, head], np.arange(len(hits)))
    random = np.random.default_rng([seed, 6])
    controls = []
    for _ in range(DRAWS):
        drawn = [part.hits(random.integers(0, 2, len(part.right))).mean(0) for part in (first, second)]
        controls.append(float(drawn[1][drawn[0].argmax()]))
    return {
        "n": len(hits),
        **named(head, hits.shape[1], second.layers),
        "accuracy": score.share,
        "low": score.low,
        "high": score.high,
        "nearest_accuracy": float((second.nearer == second.right).mean()),
        "control_accuracy": spread(controls).share,
        "confusion": grid(second.confusion, second.layers),
        "best_confusion": float(second.confusion[first.confusion.argmin()]),
        "every": grid(hits.mean(0), second.layers),
    }


def choices(network: Body, tokeniser: SubwordTokeniser, texts: Sequence[Pronoun], title: str) -> NameAttention:
    """The attention from pronouns to names; texts are skipped where these do not fit into the model together."""
    shown = [each for each in (_cut(text, tokeniser) for text in texts) if each is not None]
    words = [[(start, end) for start, end in _words(each.text, tokeniser)] for each in shown]
    found = aligned([each.text for each in shown], words, tokeniser)
    kept = [(each, spans, row) for each, spans, row in zip(shown, words, found, strict=True) if row is not None]
    if not kept:
        raise AssayError("The model can read no text with its pronoun and both names; probe more of them.")
    rows: list[Tokenised] = [row for _, _, row in kept]
    marks = [[_marked(spans, span) for span in (each.pronoun, *each.candidates)] for each, spans, _ in kept]
    heads = network.layers * int(network.inner.config.num_attention_heads)
    weights = np.zeros((len(kept), heads, 2), dtype=np.float32)
    for group, seen in maps(network, rows, title):
        weights[group] = _given(seen, [marks[index] for index in group])
    distance = np.array([[_gap(each.pronoun, span) for span in each.candidates] for each, _, _ in kept])
    right = np.array([each.right for each, _, _ in kept], dtype=np.int64)
    return NameAttention(weights, right, distance.reshape(-1, 2).argmin(1), network.layers)


def _given(seen: Float[Tensor, "B L H T T"], marks: list[list[list[int]]]) -> Float[np.ndarray, "B K 2"]:
    """The mean over the pronoun's words of the attention to each name's words."""
    masks = torch.zeros(len(marks), 3, seen.shape[-1])
    for row, each in enumerate(marks):
        for kind, positions in enumerate(each):
            masks[row, kind, positions] = 1.0
    masks = masks.to(seen)
    pronoun = masks[:, 0] / masks[:, 0].sum(-1, keepdim=True)
    given = torch.einsum("bi,blhij,bcj->blhc", pronoun, seen, masks[:, 1:])
    return given.flatten(1, 2).cpu().numpy()


def _marked(words: Sequence[Span], span: Span) -> list[int]:
    """The words that a span overlaps."""
    return [position for position, (start, end) in enumerate(words) if start < span[1] and span[0] < end]


def _gap(one: Span, other: Span) -> int:
    """Characters between two spans."""
    return max(other[0] - one[1], one[0] - other[1])


def _words(text: str, tokeniser: SubwordTokeniser) -> list[Span]:
    return tokeniser.with_options(words=True, truncate=False)([text])[0].spans


def _cut(given: Pronoun, tokeniser: SubwordTokeniser) -> Pronoun | None:
    """The text, cut around pronoun and names to what the model can read; None where that is impossible."""
    spans = tokeniser.with_options(words=False, truncate=False)([given.text])[0].spans
    room = tokeniser.options.longest
    if len(spans) <= room:
        return given
    marked = [position for span in (given.pronoun, *given.candidates) for position in _marked(spans, span)]
    if not marked or max(marked) - min(marked) >= room:
        return None
    centre = _marked(spans, given.pronoun)[0] - room // 2
    first = min(max(centre, max(marked) + 1 - room, 0), min(marked), len(spans) - room)
    start, end = spans[first][0], spans[first + room - 1][1]
    moved = [(span[0] - start, span[1] - start) for span in (given.pronoun, *given.candidates)]
    return Pronoun(given.text[start:end], moved[0], (moved[1], moved[2]), given.right)
