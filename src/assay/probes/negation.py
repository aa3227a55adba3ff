"""Negation probe: whether the words in the scope of a negation attend to its cue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from assay.data.negation import Negated
from assay.errors import AssayError
from assay.models.hf_body import Body
from assay.models.hf_subwords import SubwordTokeniser
from assay.probes.alignment import aligned, read_words
from assay.probes.observation import observe
from assay.probes.relations import OFFSETS
from assay.probes.scoring import DRAWS, grid, named, spread, wilson


@dataclass(frozen=True)
class ScopeWords:
    """Q words in scopes: sentence, position, the word that each head attends to most, and the cues of the negation."""

    sentence: Int[np.ndarray, " Q"]
    position: Int[np.ndarray, " Q"]
    most: Int[np.ndarray, "Q K"]
    cue: Bool[np.ndarray, "Q T"]
    real: Bool[np.ndarray, "Q T"]  # the words of the sentence
    case: Int[np.ndarray, " Q"]  # the number of the negation
    layers: int

    def right(self, most: Int[np.ndarray, "Q K"], cue: Bool[np.ndarray, "Q T"]) -> Bool[np.ndarray, "Q K"]:
        """Whether the most attended word is a cue."""
        hit = np.take_along_axis(cue, np.maximum(most, 0).astype(np.int64), axis=1)
        return np.asarray(hit & (most >= 0))

    @property
    def offsets(self) -> Int[np.ndarray, "Q O"]:
        position = self.position[:, None] + np.array(OFFSETS)
        return np.where((position >= 0) & (position < self.real.sum(1)[:, None]), position, -1)

    def other_cue(self, random: np.random.Generator) -> Bool[np.ndarray, "Q T"]:
        """A random word of the sentence in place of the cue, the same for the whole scope."""
        _, first, number = np.unique(self.case, return_index=True, return_inverse=True)
        free = (self.real & ~self.cue)[first]
        chosen = np.where(free, random.random(free.shape), -1).argmax(1)[number]
        return np.asarray(chosen[:, None] == np.arange(self.real.shape[1]))


def negation(
    network: Body, tokeniser: SubwordTokeniser, dev: Sequence[Negated], test: Sequence[Negated], seed: int = 0
) -> dict[str, Any]:
    """The share of words in scope that attend to the cue most, of the head that is best on dev, scored on test.

    Zhao and Bethard (2020). In the control a random word of the sentence stands for the cue.
    """
    parts = [scopes(network, tokeniser, each, f"Negations, {name}") for each, name in ((dev, "dev"), (test, "test"))]
    first, second = (part.right(part.most, part.cue) for part in parts)
    head = int(first.mean(0).argmax())
    score = wilson(second[:, head], parts[1].sentence)
    near, far = (part.right(part.offsets, part.cue) for part in parts)
    offset = int(near.mean(0).argmax())
    random = np.random.default_rng([seed, 5])
    controls = [_control(parts, random) for _ in range(DRAWS)]
    return {
        "n": len(second),
        "sentences": len(np.unique(parts[1].sentence)),
        **named(head, second.shape[1], parts[1].layers),
        "accuracy": score.share,
        "low": score.low,
        "high": score.high,
        "offset": OFFSETS[offset],
        "offset_accuracy": float(far[:, offset].mean()),
        "control_accuracy": spread(controls).share,
        "every": grid(second.mean(0), parts[1].layers),
    }


def _control(parts: list[ScopeWords], random: np.random.Generator) -> float:
    """The dev score of the head that is best at random cues; a word is never its own cue."""
    shares: list[np.ndarray] = []
    for part in parts:
        cue = part.other_cue(random)
        asked = ~cue[np.arange(len(cue)), part.position]
        shares.append(part.right(part.most, cue)[asked].mean(0))
    return float(shares[1][shares[0].argmax()])


def scopes(network: Body, tokeniser: SubwordTokeniser, sentences: Sequence[Negated], title: str) -> ScopeWords:
    """All words in scopes; words and cues without a subword of their own are left out."""
    found = aligned([each.text for each in sentences], [each.spans for each in sentences], tokeniser)
    rows = [row for row in found if row is not None]
    kept = [sentence for sentence, row in zip(sentences, found, strict=True) if row is not None]
    seen = observe(network, rows, title=title)
    there = [read_words(row) for row in rows]
    starts = np.cumsum([0, *(len(each.words) for each in kept)])
    width = max((len(each.words) for each in kept), default=1)
    asked = [
        (number, position, case, negation.cue)
        for number, sentence in enumerate(kept)
        for case, negation in enumerate(sentence.negations)
        for position in negation.scope
        if there[number][position] and any(there[number][cue] for cue in negation.cue)
    ]
    if not asked:
        raise AssayError("None of the sentences has a word in the scope of a negation; probe more of them.")
    number, position, case = (np.array([each[part] for each in asked], dtype=np.int64) for part in range(3))
    cue = np.zeros((len(asked), width), dtype=bool)
    for question, (_, _, _, positions) in enumerate(asked):
        cue[question, list(positions)] = True
    lengths = np.array([len(each.words) for each in kept], dtype=np.int64)
    real = np.arange(width) < lengths[number][:, None]
    return ScopeWords(
        number, position, seen.most[starts[number] + position], cue, real, number * 100 + case, seen.layers
    )
