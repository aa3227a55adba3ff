"""Trained encoder–decoder with its tokeniser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int

from assay import progress
from assay.data.text import Tokeniser
from assay.errors import AssayError
from assay.models.config import Training
from assay.rationales.text.fitting import batches, precision
from assay.rationales.text.network import FIRST, EncoderDecoder, Sizes
from assay.rationales.text.pairs import END_ID, LONGEST_TARGET, Pair, encoded
from assay.rationales.text.search import search


@dataclass(frozen=True)
class WriterRecipe:
    """All options that decide the weights, besides pairs, vocabulary and initial weights."""

    sizes: Sizes = field(default_factory=Sizes)
    training: Training = field(
        default_factory=lambda: Training(epochs=12, patience=3, batch_size=64, decay=0.0, clip=1.0)
    )


@dataclass(frozen=True)
class Writer:
    """Generates sentences from source texts."""

    network: EncoderDecoder
    tokeniser: Tokeniser
    history: dict[str, Any] = field(default_factory=dict)

    def __call__(
        self, sources: Sequence[str], beams: int = 1, longest: int = LONGEST_TARGET
    ) -> tuple[list[str], Float[np.ndarray, " N"]]:
        """The sentence generated for each source, with its log-probability; a beam of 1 is greedy."""
        rows = encoded([Pair(source, "") for source in sources], self.tokeniser)
        words, texts, scores = self.tokeniser.vocabulary, [""] * len(rows), np.zeros(len(rows))
        self.network.eval()
        with progress.bar() as shown:
            task = shown.add_task("writing", total=len(rows))
            for group, batch in batches(self.network, rows):
                with precision(self.network.device):
                    ids, found = search(self.network, batch, beams, longest)
                scores[group] = found.double().cpu().numpy()
                for index, line in zip(group, ids.cpu().tolist(), strict=True):
                    texts[index] = " ".join(_named(line, words, rows[index].oov))
                shown.advance(task, len(group))
        return texts, scores

    @torch.no_grad()
    def first(self, sources: Sequence[str], words: Sequence[str]) -> Float[np.ndarray, "N C"]:
        """The log-probability of each word as the first, normalised over these words."""
        rows = encoded([Pair(source, "") for source in sources], self.tokeniser)
        ids = torch.tensor([self.tokeniser.inner.token_to_id(word) or -1 for word in words])
        if (ids < 0).any():
            raise AssayError(f"The vocabulary lacks one of the words {', '.join(words)}; train with all classes.")
        scores = np.zeros((len(rows), len(words)))
        self.network.eval()
        for group, batch in batches(self.network, rows):
            with precision(self.network.device):
                memory = self.network.encode(batch)
                start = torch.full_like(batch.source[:, 0], FIRST)
                following, _ = self.network.following(memory, start, memory.begin)
            scores[group] = following[:, ids.to(following.device)].double().log_softmax(-1).cpu().numpy()
        return scores

    def chosen(self, sources: Sequence[str], words: Sequence[str]) -> Int[np.ndarray, " N"]:
        """The index of the likeliest of the words."""
        indices: Int[np.ndarray, " N"] = self.first(sources, words).argmax(-1)
        return indices


def _named(ids: Sequence[int], words: Sequence[str], oov: Sequence[str]) -> list[str]:
    ended = ids.index(END_ID) if END_ID in ids else len(ids)
    return [words[word] if word < len(words) else oov[word - len(words)] for word in ids[:ended]]
