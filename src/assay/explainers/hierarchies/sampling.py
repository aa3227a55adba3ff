"""Texts in which other words stand around a phrase."""

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
    """What samples `samples` contexts for each phrase: `window` words on either side are written anew.

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
            raise AssayError("A window has at least 0 words, and there is at least 1 sample.")

    def fit(
        self: AnySampler, rows: Sequence[Tokenised], words: int, options: LanguageOptions | None = None
    ) -> AnySampler:
        """The same with a language model of these texts in the model's words, of which there are so many."""
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
        """The words around each phrase that are written anew."""
        if self.window == 0:
            return torch.zeros_like(chosen)
        wide = F.max_pool1d(chosen.float(), 2 * self.window + 1, 1, self.window) > 0
        return wide & ~chosen & batch.mask[:, None]

    def versions(self, batch: Batch, chosen: Bool[Tensor, "B S T"]) -> Int[Tensor, "B S K T"]:
        """The ids of each text with other words around each phrase; without a window, the text's own once."""
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
