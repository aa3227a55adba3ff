"""Part-of-speech probe: the share of every head's attention that goes to each part of speech."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float, Int

from assay.probes.scoring import grid
from assay.probes.treebank_view import TreebankView

SHUFFLES = 20
NEIGHBOURS = 16  # word types, alike in frequency, that exchange their tags


def speech(test: TreebankView, seed: int = 0) -> dict[str, Any]:
    """The share of attention between words that each head gives to each universal tag.

    Vig and Belinkov (2019), equation 2. Uniform attention would give each tag the share of words that have it. In
    the control, types of words that are about as frequent have exchanged their tags: what is left is what a head
    gives to frequent or to rare words of any kind.
    """
    tags, tag = np.unique(test.tag[test.there].astype(str), return_inverse=True)
    received = test.seen.received[test.there].astype(np.float64)
    types, word = np.unique(test.word[test.there].astype(str), return_inverse=True)
    random = np.random.default_rng([seed, 3])
    usual = _table(word, tag, np.ones((len(word), 1)), len(types), len(tags))[..., 0].argmax(1)
    shuffled = [_share(_exchanged(usual, word, random)[word], received, len(tags)) for _ in range(SHUFFLES)]
    return {
        "n": len(word),
        "tags": tags.tolist(),
        "share": _heads(_share(tag, received, len(tags)), test.seen.layers),
        "uniform": (np.bincount(tag, minlength=len(tags)) / max(1, len(tag))).tolist(),
        "control": _heads(np.mean(shuffled, axis=0), test.seen.layers),
    }


def _share(tag: Int[np.ndarray, " N"], received: Float[np.ndarray, "N K"], kinds: int) -> Float[np.ndarray, "G K"]:
    """The share of each head's attention that goes to each tag."""
    member = (tag == np.arange(kinds)[:, None]).astype(np.float64)
    return np.asarray(member @ received / np.maximum(received.sum(0), np.finfo(np.float64).tiny))


def _table(
    word: Int[np.ndarray, " N"], tag: Int[np.ndarray, " N"], values: Float[np.ndarray, "N K"], types: int, kinds: int
) -> Float[np.ndarray, "V G K"]:
    """Sums of the values for each word type and tag."""
    sums = np.zeros((types * kinds, values.shape[1]))
    np.add.at(sums, word * kinds + tag, values)
    return sums.reshape(types, kinds, -1)


def _exchanged(
    usual: Int[np.ndarray, " V"], word: Int[np.ndarray, " N"], random: np.random.Generator
) -> Int[np.ndarray, " V"]:
    """The most frequent tags of all types, shuffled among neighbours in frequency."""
    order = np.argsort(-np.bincount(word, minlength=len(usual)), kind="stable")
    block = np.arange(len(usual)) // NEIGHBOURS
    moved = order[np.lexsort((random.random(len(usual)), block))]
    tags = np.empty_like(usual)
    tags[order] = usual[moved]
    return tags


def _heads(shares: Float[np.ndarray, "G K"], layers: int) -> list[list[list[float]]]:
    """The shares of all tags, layer by layer and head by head."""
    return [
        [list(head) for head in zip(*rows, strict=True)]
        for rows in zip(*(grid(each, layers) for each in shares), strict=True)
    ]
