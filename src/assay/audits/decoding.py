"""Decoders of words from hidden states: how much information each state has of its word, in bits."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.audits.cases import numpy
from assay.audits.resources import Resources
from assay.audits.twins import mean_defined
from assay.data.batches import Tokenised, tokenise
from assay.metrics.information import Decoder, Words
from assay.models.network import Network
from assay.models.textmodel import groups
from assay.types import Batch

Numbers = Float[np.ndarray, " B"]


@dataclass(frozen=True)
class Decoded:
    """A network with a decoder of words from hidden states, and a control fitted to shuffled words."""

    network: Network
    decoder: Decoder
    shuffled: Decoder

    def bits(self, batch: Batch) -> tuple[Numbers, Numbers]:
        """The mean information of each text's hidden states about their words, in bits, by both decoders."""
        states, mask = numpy(word_states(self.network, batch)), batch.mask.cpu().numpy()
        words = batch.ids.cpu().numpy()[mask]
        told = []
        for decoder in (self.decoder, self.shuffled):
            found = np.full(mask.shape, np.nan)
            found[mask] = decoder.pointwise(states[mask], words)
            told.append(mean_defined(list(found.T)))
        return told[0], told[1]


@torch.no_grad()
def word_states(network: Network, batch: Batch) -> Float[Tensor, "B T M"]:
    """Hidden state per word, as input to the attention layer."""
    x = network.embed(batch)
    encodings = network.encodings(x, batch, network.states(x, batch))
    return network.beside(encodings, x, batch.mask)


@dataclass(frozen=True)
class Decoding:
    """Fits decoders on training texts, for the audited texts."""

    texts: Sequence[Tokenised]
    audited: Sequence[Tokenised]
    words: Words
    seed: int

    @classmethod
    def of(cls, resources: Resources, words: Words, tokens: int, seed: int) -> Decoding:
        """With about so many tokens of random training texts."""
        assert resources.corpus is not None
        train, tokeniser = resources.corpus.train, resources.model.tokeniser
        length = sum(len(row.ids) for row in resources.rows) / len(resources.rows)
        drawn = random.Random(seed).sample(range(len(train)), min(len(train), math.ceil(tokens / length)))
        texts, _ = tokenise([train[place] for place in drawn], tokeniser, tokeniser.options.longest)
        return cls(texts, resources.rows, words, seed)

    def __call__(self, network: Network) -> Decoded:
        """The network with its decoders."""
        network.eval()
        found = [(numpy(word_states(network, batch)[batch.mask]), batch) for _, batch in groups(network, self.texts)]
        states = np.concatenate([part for part, _ in found])
        words = np.concatenate([batch.ids[batch.mask].cpu().numpy() for _, batch in found])
        states, words = states[words >= network.ordinary], words[words >= network.ordinary]
        mixed = np.random.default_rng(self.seed).permutation(words)
        return Decoded(network, *(self._rated(self.words.fit(states, each)) for each in (words, mixed)))

    def _rated(self, decoder: Decoder) -> Decoder:
        """The decoder with the word frequencies of the audited texts, each text weighted equally.

        So the mean over texts is a bound on the information of a word drawn from a text drawn.
        """
        rows = [row.ids.cpu().numpy() for row in self.audited]
        counts = [decoder.known(words).sum() for words in rows]
        weights = [np.full(len(words), 1 / max(count, 1)) for words, count in zip(rows, counts, strict=True)]
        return decoder.rated(np.concatenate(rows), np.concatenate(weights))
