"""Aligns externally annotated words with the subwords that a transformer reads."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import torch
from torch.nn.utils.rnn import pad_sequence

from assay.data.batches import Tokenised
from assay.data.examples import Span
from assay.models.hf_subwords import SubwordTokeniser


def aligned(
    texts: Sequence[str], words: Sequence[Sequence[Span]], tokeniser: SubwordTokeniser
) -> list[Tokenised | None]:
    """Each text tokenised in the given words; None where it has more subwords than the model reads.

    A subword belongs to the word that it begins in. A word in which none begins, as "not" where "cannot" is one
    subword, has none: it neither attends nor is attended to.
    """
    read = tokeniser.with_options(words=False, truncate=False)(texts)
    longest = tokeniser.options.longest
    return [
        _row(index, spans, text.ids, text.spans) if 0 < len(text.ids) <= longest else None
        for index, (spans, text) in enumerate(zip(words, read, strict=True))
    ]


def _row(index: int, words: Sequence[Span], ids: Sequence[int], spans: Sequence[Span]) -> Tokenised:
    starts = [start for start, _ in words]
    subwords: list[list[int]] = [[] for _ in words]
    for number, (start, _) in zip(ids, spans, strict=True):
        subwords[max(0, bisect_right(starts, start) - 1)].append(number)
    return Tokenised(
        index=index,
        ids=torch.arange(len(words)),
        spans=torch.tensor(words, dtype=torch.int32),
        sentences=torch.zeros(len(words), dtype=torch.long),
        label=0,
        subwords=pad_sequence([torch.tensor(each, dtype=torch.long) for each in subwords], True, -1),
    )


def read_words(row: Tokenised) -> list[bool]:
    """Which words of a row have a subword."""
    assert row.subwords is not None
    found: list[bool] = (row.subwords >= 0).any(-1).tolist()
    return found
