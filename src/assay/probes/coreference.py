"""Whether a pronoun attends to the name that it stands for, rather than to another."""

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
from assay.models.huggingface.body import Body
from assay.models.huggingface.subwords import SubwordTokeniser
from assay.probes.alignment import aligned
from assay.probes.observation import maps
from assay.probes.scoring import DRAWS, grid, named, spread, wilson

SMALLEST = 1e-9  # of the attention given to a name, so that its logarithm is finite


@dataclass(frozen=True)
class Choices:
    """N pronouns: the attention that each head gives to the two names, the right one, and the nearer one."""

    weights: Float[np.ndarray, "N K 2"]
    right: Int[np.ndarray, " N"]
    nearer: Int[np.ndarray, " N"]
    layers: int

    def hits(self, right: Int[np.ndarray, " N"]) -> Bool[np.ndarray, "N K"]:
        """Whether more attention goes to the right name; the same to both counts as wrong."""
        first, second = self.weights[..., 0], self.weights[..., 1]
        return np.where(right[:, None] == 0, first > second, second > first)

    @property
    def confusion(self) -> Float[np.ndarray, " K"]:
        """The binary cross-entropy of the attention shared out between the names; Lin, Tan and Frank (2019)."""
        both = self.weights.astype(np.float64) + SMALLEST
        share = np.take_along_axis(both, self.right[:, None, None], axis=2)[..., 0] / both.sum(-1)
        return np.asarray(-np.log(share).mean(0))


def coreference(
    network: Body, tokeniser: SubwordTokeniser, dev: Sequence[Pronoun], test: Sequence[Pronoun], seed: int = 0
) -> dict[str, Any]:
    """How often the head that is best on dev gives more attention to the right name, scored on test.

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


def choices(network: Body, tokeniser: SubwordTokeniser, texts: Sequence[Pronoun], title: str) -> Choices:
    """The attention from pronouns to names; a text is left out where they do not fit into the model together."""
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
        weights[group] = _given(seen, [marks[place] for place in group])
    distance = np.array([[_gap(each.pronoun, span) for span in each.candidates] for each, _, _ in kept])
    right = np.array([each.right for each, _, _ in kept], dtype=np.int64)
    return Choices(weights, right, distance.reshape(-1, 2).argmin(1), network.layers)


def _given(seen: Float[Tensor, "B L H T T"], marks: list[list[list[int]]]) -> Float[np.ndarray, "B K 2"]:
    """The mean over the words of the pronoun of what goes to the words of each name."""
    masks = torch.zeros(len(marks), 3, seen.shape[-1])
    for row, each in enumerate(marks):
        for kind, places in enumerate(each):
            masks[row, kind, places] = 1.0
    masks = masks.to(seen)
    pronoun = masks[:, 0] / masks[:, 0].sum(-1, keepdim=True)
    given = torch.einsum("bi,blhij,bcj->blhc", pronoun, seen, masks[:, 1:])
    return given.flatten(1, 2).cpu().numpy()


def _marked(words: Sequence[Span], span: Span) -> list[int]:
    """The words that a span touches."""
    return [place for place, (start, end) in enumerate(words) if start < span[1] and span[0] < end]


def _gap(one: Span, other: Span) -> int:
    """The number of characters between two spans."""
    return max(other[0] - one[1], one[0] - other[1])


def _words(text: str, tokeniser: SubwordTokeniser) -> list[Span]:
    return tokeniser.with_options(words=True, truncate=False)([text])[0].spans


def _cut(given: Pronoun, tokeniser: SubwordTokeniser) -> Pronoun | None:
    """The text, or the part of it around pronoun and names that the model can read; None where there is none."""
    places = tokeniser.with_options(words=False, truncate=False)([given.text])[0].spans
    room = tokeniser.options.longest
    if len(places) <= room:
        return given
    marked = [place for span in (given.pronoun, *given.candidates) for place in _marked(places, span)]
    if not marked or max(marked) - min(marked) >= room:
        return None
    centre = _marked(places, given.pronoun)[0] - room // 2
    first = min(max(centre, max(marked) + 1 - room, 0), min(marked), len(places) - room)
    start, end = places[first][0], places[first + room - 1][1]
    moved = [(span[0] - start, span[1] - start) for span in (given.pronoun, *given.candidates)]
    return Pronoun(given.text[start:end], moved[0], (moved[1], moved[2]), given.right)
