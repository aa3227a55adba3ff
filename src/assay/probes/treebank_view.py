"""A treebank as a transformer reads it: all words concatenated, with statistics of the attention between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from assay.data.treebank import Sentence
from assay.models.hf_body import Body
from assay.models.hf_subwords import SubwordTokeniser
from assay.probes.alignment import aligned, read_words
from assay.probes.observation import Observed, observe

SPARE = 4  # pairs drawn for each that is needed
NONE = ""  # the relation of a word that no question is asked about


@dataclass(frozen=True)
class TreebankView:
    """N words of a treebank; positions are within the sentence, governors are word indices, -1 for none.

    The relation is empty for the root, and where a word or its governor has no subword of its own.
    """

    sentences: tuple[Sentence, ...]
    sentence: Int[np.ndarray, " N"]
    position: Int[np.ndarray, " N"]
    length: Int[np.ndarray, " N"]  # of the word's sentence
    there: Bool[np.ndarray, " N"]  # the word has a subword
    word: np.ndarray  # in small letters: the type of the word
    tag: np.ndarray
    governor: Int[np.ndarray, " N"]
    relation: np.ndarray
    pairs: Int[np.ndarray, "M 3"]  # a word, its governor, or a word that has nothing to do with it, and which
    seen: Observed
    left_out: int  # sentences with more subwords than the model reads

    @property
    def first(self) -> Int[np.ndarray, " N"]:
        """The index of the first word of each word's sentence."""
        return np.asarray(np.arange(len(self.position)) - self.position)


def view_treebank(
    network: Body, tokeniser: SubwordTokeniser, sentences: Sequence[Sentence], seed: int = 0, title: str = "Sentences"
) -> TreebankView:
    """Runs a transformer over the sentences and collects its attention."""
    found = aligned([each.text for each in sentences], [each.spans for each in sentences], tokeniser)
    rows = [row for row in found if row is not None]
    kept = tuple(sentence for sentence, row in zip(sentences, found, strict=True) if row is not None)
    lengths = np.array([len(each.words) for each in kept], dtype=np.int64)
    first = np.repeat(lengths.cumsum() - lengths, lengths)
    there = np.array([has for row in rows for has in read_words(row)], dtype=bool)
    inside = np.array([governor for each in kept for governor in each.governors], dtype=np.int64)
    governor = np.where(inside >= 0, inside + first, -1)
    relation = np.array([name for each in kept for name in each.relations], dtype=object)
    relation[(governor < 0) | ~there | ~there[governor]] = NONE
    position = np.arange(len(first)) - first
    sentence = np.repeat(np.arange(len(kept)), lengths)
    pairs = _pairs(sentence, position, lengths, governor, relation, seed)
    asked = np.stack([sentence[pairs[:, 0]], position[pairs[:, 0]], position[pairs[:, 1]]], axis=1)
    return TreebankView(
        sentences=kept,
        sentence=sentence,
        position=position,
        length=np.repeat(lengths, lengths),
        there=there,
        word=np.array([word.lower() for each in kept for word in each.words], dtype=object),
        tag=np.array([tag for each in kept for tag in each.tags], dtype=object),
        governor=governor,
        relation=relation,
        pairs=pairs,
        seen=observe(network, rows, asked, title),
        left_out=len(sentences) - len(kept),
    )


def _pairs(
    sentence: Int[np.ndarray, " N"],
    position: Int[np.ndarray, " N"],
    lengths: Int[np.ndarray, " S"],
    governor: Int[np.ndarray, " N"],
    relation: np.ndarray,
    seed: int,
) -> Int[np.ndarray, "M 3"]:
    """Each word with its governor (1), and as many random word pairs without a dependency (0)."""
    word = np.flatnonzero(relation != NONE)
    true = np.stack([word, governor[word], np.ones_like(word)], axis=1)
    random = np.random.default_rng([seed, 1])
    # more are drawn than needed, in the sentences of the true pairs, and those that govern each other are left out
    drawn = np.repeat(word, SPARE)
    size, first = lengths[sentence[drawn]], drawn - position[drawn]
    one, other = (first + random.integers(0, size) for _ in range(2))
    apart = (one != other) & (governor[one] != other) & (governor[other] != one)
    false = np.unique(np.stack([one, other, np.zeros_like(one)], axis=1)[apart], axis=0)
    return np.concatenate([true, random.permutation(false)[: len(true)]])
