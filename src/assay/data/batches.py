"""Tokenises examples, and collates them into padded batches of like length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from assay.data.examples import Example, Span
from assay.data.text import Reading, Words, sentence_numbers
from assay.types import Batch, Query

AT_ONCE = 1000  # texts tokenised together


@dataclass(frozen=True)
class Tokenised:
    """One tokenised example; `index` is its index in its split, `spans` the character spans of its words."""

    index: int
    ids: Int[Tensor, " T"]
    spans: Int[Tensor, "T 2"]
    sentences: Int[Tensor, " T"]
    label: int
    truth: Bool[Tensor, " T"] | None = None
    query: Int[Tensor, " S"] | None = None
    candidates: tuple[int, ...] | None = None
    subwords: Int[Tensor, "T P"] | None = None
    query_truth: Bool[Tensor, " S"] | None = None  # its deciding words, where they are known


_Read = tuple[int, Example, Words, Words]  # its index, the example, what is read of its text and of its question


def tokenise(examples: Sequence[Example], tokeniser: Reading, longest: int) -> tuple[list[Tokenised], dict[str, int]]:
    """The tokenised examples, and how many were left out, by reason."""
    kept: list[Tokenised] = []
    skipped: Counter[str] = Counter()
    for start in range(0, len(examples), AT_ONCE):
        part = examples[start : start + AT_ONCE]
        words = tokeniser([example.text for example in part])
        queries = _queries(part, tokeniser)
        chosen: list[_Read] = []
        for index, (example, text, query) in enumerate(zip(part, words, queries, strict=True), start):
            read = tokeniser.fitted(text, query, longest)
            if not text.ids:
                skipped["no words"] += 1
            elif read is None:
                skipped[f"more than {longest:,} {tokeniser.unit}"] += 1
            else:
                chosen.append((index, example, read, query))
        kept += _tokenised(chosen)
    return kept, dict(skipped)


def _queries(examples: Sequence[Example], tokeniser: Reading) -> list[Words]:
    if all(example.query is None for example in examples):
        return [Words([], [])] * len(examples)
    return tokeniser.query([example.query or "" for example in examples])


def _tokenised(read: Sequence[_Read]) -> list[Tokenised]:
    """Rows from encoded texts; one tensor for all texts is split, which is faster than one each."""
    texts = [text for _, _, text, _ in read]
    sentences = [sentence_numbers(example.text, text.spans) for _, example, text, _ in read]
    numbers = zip(
        _rows([text.ids for text in texts]),
        _rows([[*chain.from_iterable(text.spans)] for text in texts], np.int32),
        _rows(sentences),
        _rows([_squared(text.subwords or []) for text in texts]),
        strict=True,
    )
    return [
        _row(
            given,
            ids,
            spans.reshape(-1, 2),
            numbered,
            None if text.subwords is None else subwords.reshape(len(ids), -1),
        )
        for given, text, (ids, spans, numbered, subwords) in zip(read, texts, numbers, strict=True)
    ]


def _row(given: _Read, ids: Tensor, spans: Tensor, sentences: Tensor, subwords: Tensor | None) -> Tokenised:
    index, example, _, query = given
    truth = None if example.evidence is None else _marked(spans, example.evidence)
    asked_truth = None
    if example.query_evidence:
        asked_truth = _marked(torch.tensor(query.spans, dtype=torch.int32).reshape(-1, 2), example.query_evidence)
    asked = None if example.query is None else torch.tensor(query.ids, dtype=torch.long)
    allowed = example.candidates
    return Tokenised(index, ids, spans, sentences, example.label, truth, asked, allowed, subwords, asked_truth)


def _rows(rows: Sequence[Sequence[int]], dtype: type[np.signedinteger] = np.int64) -> Sequence[Tensor]:
    """Each row as a tensor."""
    sizes = [len(row) for row in rows]
    return torch.split(torch.from_numpy(np.fromiter(chain.from_iterable(rows), dtype, sum(sizes))), sizes)


def _squared(subwords: Sequence[list[int]]) -> list[int]:
    """The subwords of all words in one list, each word padded with -1 to the most subwords of any."""
    widest = max(map(len, subwords), default=0)
    if widest == 1:
        return [subword for (subword,) in subwords]
    return [*chain.from_iterable(each + [-1] * (widest - len(each)) for each in subwords)]


def _marked(spans: Int[Tensor, "T 2"], evidence: Sequence[Span]) -> Bool[Tensor, " T"]:
    """The mask of words that overlap the evidence."""
    starts, ends = torch.tensor(evidence, dtype=torch.int32).reshape(-1, 2).unbind(-1)
    return ((spans[:, :1] < ends) & (starts < spans[:, 1:])).any(-1)


def collate(rows: Sequence[Tokenised], classes: int = 0) -> Batch:
    """Collates rows into a batch padded to the longest; the number of classes is that of the candidates."""
    ids, mask = _padded([row.ids for row in rows])
    queries = [row.query for row in rows if row.query is not None]
    truth = None
    if any(row.truth is not None for row in rows):  # a row without evidence has no deciding word
        marks = [torch.zeros_like(row.ids, dtype=torch.bool) if row.truth is None else row.truth for row in rows]
        truth = pad_sequence(marks, batch_first=True)
    return Batch(
        ids=ids,
        mask=mask,
        labels=torch.tensor([row.label for row in rows]),
        query=Query(*_padded(queries)) if len(queries) == len(rows) else None,
        truth=truth,
        sentences=pad_sequence([row.sentences for row in rows], batch_first=True),
        candidates=_candidates(rows, classes),
        subwords=_subwords(rows, ids.shape[1]),
    )


def _subwords(rows: Sequence[Tokenised], width: int) -> Int[Tensor, "B T P"] | None:
    """The subwords of every word, padded with -1 to the most subwords of any."""
    given = [row.subwords for row in rows if row.subwords is not None]
    if len(given) < len(rows):
        return None
    subwords = torch.full((len(rows), width, max(each.shape[1] for each in given)), -1)
    for index, each in enumerate(given):
        subwords[index, : each.shape[0], : each.shape[1]] = each
    return subwords


def _candidates(rows: Sequence[Tokenised], classes: int) -> Bool[Tensor, "B C"] | None:
    """The mask of candidate classes; all classes for a row without candidates."""
    if all(row.candidates is None for row in rows):
        return None
    allowed = torch.zeros(len(rows), classes, dtype=torch.bool)
    for index, row in enumerate(rows):
        allowed[index, slice(None) if row.candidates is None else list(row.candidates)] = True
    return allowed


def _padded(rows: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    ids = pad_sequence(list(rows), batch_first=True)
    lengths = torch.tensor([len(row) for row in rows])
    return ids, torch.arange(ids.shape[1]) < lengths[:, None]


def by_tokens(lengths: Int[np.ndarray, " N"], tokens: int) -> list[Int[np.ndarray, " n"]]:
    """Groups of indices by ascending length, each of at most `tokens` tokens with padding, or of one text."""
    order = np.argsort(lengths, kind="stable")
    groups: list[Int[np.ndarray, " n"]] = []
    start = 0
    for stop in range(1, len(order) + 1):
        full = stop == len(order) or (stop + 1 - start) * lengths[order[stop]] > tokens
        if full:
            groups.append(order[start:stop])
            start = stop
    return groups


def shuffled(lengths: Int[np.ndarray, " N"], size: int, seed: Sequence[int]) -> list[Int[np.ndarray, " n"]]:
    """Random mini-batches of indices, at most `size` each, of like length: one training epoch."""
    random = np.random.default_rng(seed)
    order = random.permutation(len(lengths))
    stretch = 50 * size  # sorted by length within a stretch: little padding, still random
    stretches = [order[start : start + stretch] for start in range(0, len(order), stretch)]
    ordered = np.concatenate([part[np.argsort(lengths[part], kind="stable")] for part in stretches])
    groups = [ordered[start : start + size] for start in range(0, len(ordered), size)]
    return [groups[index] for index in random.permutation(len(groups))]
