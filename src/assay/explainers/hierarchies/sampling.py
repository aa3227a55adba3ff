"""Samples contexts around a phrase from a language model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn import functional as F

from assay.data.batches import Tokenised
from assay.errors import AssayError
from assay.explainers.hierarchies.language import Language, LanguageOptions
from assay.explainers.needs import no_table
from assay.types import Batch, Model, TokenModel

AnySampler = TypeVar("AnySampler", bound="Sampler")

TOKENS = 65_536  # written at once


@dataclass(frozen=True)
class Sampler:
    """Draws `samples` contexts per phrase, with `window` words on either side resampled.

    The numbers that decide which words come are the same for all phrases and texts: they depend on position, sample and
    seed alone. Where the window holds all of a text but the phrase, only the phrase is known, its position and the
    length of the text.
    """

    window: int = 10
    samples: int = 20
    seed: int = 0
    language: Language | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.window < 0 or self.samples < 1:
            raise AssayError("window must be at least 0, and samples at least 1.")

    def fit(
        self: AnySampler, rows: Sequence[Tokenised], words: int, options: LanguageOptions | None = None
    ) -> AnySampler:
        """A sampler with a language model fitted to these texts, over a vocabulary of size `words`."""
        return replace(self, language=Language.fit(rows, words, options, self.seed))

    def unfit(self, model: Model) -> str | None:
        """What the model lacks, or the sampler."""
        if self.window == 0:
            return None
        if not isinstance(model, TokenModel):
            return no_table(model)
        if self.language is None:
            return "there is no language model that could write other words; call fit with training texts first"
        same = self.language.words == len(model.vectors)
        return None if same else "the language model has other words than the model"

    def around(self, batch: Batch, chosen: Bool[Tensor, "B S T"]) -> Bool[Tensor, "B S T"]:
        """The mask of words around each phrase to be resampled."""
        if self.window == 0:
            return torch.zeros_like(chosen)
        wide = F.max_pool1d(chosen.float(), 2 * self.window + 1, 1, self.window) > 0
        return wide & ~chosen & batch.mask[:, None]

    def versions(self, batch: Batch, chosen: Bool[Tensor, "B S T"]) -> Int[Tensor, "B S K T"]:
        """The ids of each text with resampled contexts for each phrase; without a window, the text itself."""
        rows, sets, tokens = chosen.shape
        if self.window == 0:
            return batch.ids[:, None, None].expand(rows, sets, 1, tokens)
        assert self.language is not None
        language = self.language.to(batch.ids.device)
        drawn = np.random.default_rng(self.seed).random((tokens, self.samples)).T  # wider texts begin with the same
        noise = torch.from_numpy(np.ascontiguousarray(drawn)).to(batch.ids.device)
        ids, mask, hidden, noise = (
            each.expand(rows, sets, self.samples, tokens).reshape(-1, tokens)
            for each in (
                batch.ids[:, None, None],
                batch.mask[:, None, None],
                self.around(batch, chosen)[:, :, None],
                noise[None, None],
            )
        )
        step = max(1, TOKENS // max(1, tokens))
        parts = zip(*(torch.split(each, step) for each in (ids, mask, hidden, noise)), strict=True)
        return torch.cat([language.write(*part) for part in parts]).reshape(rows, sets, self.samples, tokens)
