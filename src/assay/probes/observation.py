"""Attention maps of a transformer between the words of annotated texts."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from assay.data.annotated import Sentence
from assay.data.batches import Tokenised, by_tokens, collate
from assay.data.examples import Span
from assay.models import budget
from assay.models.hf_body import Body
from assay.models.hf_subwords import SubwordTokeniser
from assay.progress import bar

PerWord = Int[np.ndarray, " N"]
WordHeads = Int[np.ndarray, "N K"]
Pairs = Int[np.ndarray, "M 3"]
Maps = Float[Tensor, "B L H T T"]

# Aligns externally annotated words with the subwords that a transformer reads


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


def head_count(network: Body) -> int:
    """The number of heads of each layer."""
    return int(network.inner.config.num_attention_heads)


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


# Attention statistics of every head over many sentences, reduced to what the probes need


@dataclass(frozen=True)
class Observed:
    """The words of all sentences one after another: N of them, seen by K = L × H heads, the lowest layer first.

    `most` is the position in the sentence of the other word that a word attends to most, -1 where it attends to none;
    `received` is what a word is given by all words of the sentence; `between` is what the words of each of M pairs
    give each other, the first direction of all heads and then the second.
    """

    most: WordHeads
    received: Float[np.ndarray, "N K"]
    between: Float[np.ndarray, "M F"]
    layers: int


def maps(network: Body, rows: Sequence[Tokenised], title: str) -> Iterator[tuple[np.ndarray, Maps]]:
    """The positions of some rows and their attention between words, batch by batch, with a progress bar."""
    device = next(network.inner.parameters()).device
    cells = budget.room(device, "attention maps", network.layers * head_count(network))
    lengths = np.array([_length(row) ** 2 for row in rows], dtype=np.int64)
    with bar() as shown:
        task = shown.add_task(title, total=len(rows))
        for group in by_tokens(lengths, cells):
            yield group, network.maps(collate([rows[index] for index in group]).to(device))
            shown.advance(task, len(group))


def _length(row: Tokenised) -> int:
    return len(row.ids) if row.subwords is None else int((row.subwords >= 0).sum())


def observe(network: Body, rows: Sequence[Tokenised], pairs: Pairs | None = None, title: str = "Sentences") -> Observed:
    """Attention statistics of the rows; a pair is a row's number and the positions of two of its words."""
    heads = network.layers * head_count(network)
    asked = np.zeros((0, 3), dtype=np.int64) if pairs is None else pairs
    first = starts(rows)
    total = sum(len(row.ids) for row in rows)
    most = np.full((total, heads), -1, dtype=np.int16)
    received = np.zeros((total, heads), dtype=np.float32)
    between = np.zeros((len(asked), 2 * heads), dtype=np.float32)
    for group, seen in maps(network, rows, title):
        positions = np.concatenate([first[row] + np.arange(len(rows[row].ids)) for row in group])
        real = torch.cat([torch.arange(len(rows[row].ids)) + seen.shape[-1] * at for at, row in enumerate(group)])
        most[positions] = _by_word(attended_most(seen), real)
        received[positions] = _by_word(seen.sum(-2), real)
        wanted = np.isin(asked[:, 0], group)
        between[wanted] = _between(seen, group, asked[wanted])
    return Observed(most, received, between, network.layers)


def starts(rows: Sequence[Tokenised]) -> Int[np.ndarray, " R"]:
    """The index of each row's first word in the concatenation of all rows."""
    lengths = np.array([0, *(len(row.ids) for row in rows)], dtype=np.int64)
    return lengths.cumsum()[:-1]


def attended_most(seen: Maps) -> Int[Tensor, "B L H T"]:
    """The position of the other word that each word attends to most, -1 where it attends to no other."""
    itself = torch.eye(seen.shape[-1], dtype=torch.bool, device=seen.device)
    weight, position = seen.masked_fill(itself, 0).max(-1)
    return position.where(weight > 0, -1)


def _by_word(values: Tensor, real: Int[Tensor, " n"]) -> np.ndarray:
    """The values [B, L, H, T] of real words as [N, K], all heads side by side."""
    flat = values.permute(0, 3, 1, 2).flatten(0, 1).flatten(1)
    return flat.cpu()[real].numpy()


def _between(seen: Maps, group: np.ndarray, pairs: Int[np.ndarray, "m 3"]) -> Float[np.ndarray, "m F"]:
    where = {int(row): at for at, row in enumerate(group)}
    row = torch.tensor([where[int(each)] for each in pairs[:, 0]], dtype=torch.long, device=seen.device)
    one, other = (torch.from_numpy(pairs[:, side]).to(seen.device) for side in (1, 2))
    there, back = (seen[row, :, :, a, b].flatten(1) for a, b in ((one, other), (other, one)))
    return torch.cat([there, back], dim=1).cpu().numpy()


# A treebank as a transformer reads it: all words concatenated, with statistics of the attention between them

SPARE = 4  # pairs drawn for each that is needed
NONE = ""  # the relation of a word that no question is asked about


@dataclass(frozen=True)
class TreebankView:
    """N words of a treebank; positions are within the sentence, governors are word indices, -1 for none.

    The relation is empty for the root, and where a word or its governor has no subword of its own.
    """

    sentences: tuple[Sentence, ...]
    sentence: PerWord
    position: PerWord
    length: PerWord  # of the word's sentence
    there: Bool[np.ndarray, " N"]  # the word has a subword
    word: np.ndarray  # in small letters: the type of the word
    tag: np.ndarray
    governor: PerWord
    relation: np.ndarray
    pairs: Pairs  # a word, its governor, or a word that has nothing to do with it, and which
    seen: Observed
    left_out: int  # sentences with more subwords than the model reads

    @property
    def first(self) -> PerWord:
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
    sentence: PerWord,
    position: PerWord,
    lengths: Int[np.ndarray, " S"],
    governor: PerWord,
    relation: np.ndarray,
    seed: int,
) -> Pairs:
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


# Example sentences with the attention of the heads that lead the table of relations

SENTENCES, HEADS = 4, 6
WORDS = (6, 14)  # as many as can be read in a drawing


def examples(
    network: Body, tokeniser: SubwordTokeniser, sentences: Sequence[Sentence], table: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """A few sentences with the first relations of the table, and the attention of the heads named there."""
    first: dict[tuple[int, int], dict[str, Any]] = {}
    for row in table:
        first.setdefault((row["layer"], row["head"]), row)
    shown = list(first.values())[:HEADS]
    wanted = {row["relation"] for row in shown}
    fit = [each for each in sentences if WORDS[0] <= len(each.words) <= WORDS[1]]
    chosen = sorted(fit, key=lambda each: -len(wanted & set(each.relations)))[:SENTENCES] if shown else []
    found = aligned([each.text for each in chosen], [each.spans for each in chosen], tokeniser)
    kept = [(each, row) for each, row in zip(chosen, found, strict=True) if row is not None]
    drawn: dict[int, dict[str, Any]] = {}
    for group, seen in maps(network, [row for _, row in kept], "Examples"):
        for index, weights in zip(group, seen.cpu().numpy(), strict=True):
            drawn[int(index)] = _drawn(kept[index][0], weights, shown)
    return [drawn[index] for index in sorted(drawn)]


def _drawn(sentence: Sentence, weights: np.ndarray, shown: Sequence[dict[str, Any]]) -> dict[str, Any]:
    count = len(sentence.words)
    heads = [
        {
            "layer": row["layer"],
            "head": row["head"],
            "title": f"{row['relation']}, {row['direction']}",
            "weights": np.round(weights[row["layer"], row["head"], :count, :count].astype(np.float64), 4).tolist(),
        }
        for row in shown
    ]
    return {
        "words": list(sentence.words),
        "governors": list(sentence.governors),
        "relations": list(sentence.relations),
        "heads": heads,
    }


# Accuracies with confidence intervals, and the choice of a head on other data than it is scored on

QUANTILE = 1.959963984540054  # of the normal distribution, for 95 %
DRAWS = 40  # random labellings of a control task


@dataclass(frozen=True)
class Share:
    """A proportion with its 95 % interval."""

    share: float
    low: float
    high: float


def wilson(right: Bool[np.ndarray, " n"], group: Int[np.ndarray, " n"]) -> Share:
    """The proportion of correct answers; answers within a group, such as a sentence, may be correlated.

    Wilson's (1927) interval for as many independent answers as have the same variance as these; none of 0.
    """
    count = len(right)
    if not count:
        return Share(np.nan, np.nan, np.nan)
    share = float(right.mean())
    _, numbers = np.unique(group, return_inverse=True)
    variance = float((np.bincount(numbers, right - share) ** 2).sum()) / count**2
    alone = min(count, share * (1 - share) / variance) if variance > 0 else count
    weight = QUANTILE**2 / alone
    middle = (share + weight / 2) / (1 + weight)
    half = QUANTILE * np.sqrt(share * (1 - share) / alone + weight / (4 * alone)) / (1 + weight)
    low, high = max(0.0, float(middle - half)), min(1.0, float(middle + half))
    return Share(share, min(low, share), max(high, share))  # whatever the rounding


def spread(shares: Sequence[float] | Float[np.ndarray, " n"]) -> Share:
    """The mean over the random labellings of a control task, with the range of 95 % of them."""
    low, high = np.quantile(shares, [0.025, 0.975])
    return Share(float(np.mean(shares)), float(low), float(high))


def grid(values: np.ndarray, layers: int) -> list[list[float]]:
    """The numbers of all heads, layer by layer."""
    rows: list[list[float]] = np.round(values.astype(np.float64), 6).reshape(layers, -1).tolist()
    return rows


def scored(right: Bool[np.ndarray, " n"], group: Int[np.ndarray, " n"]) -> dict[str, float]:
    """The accuracy with its interval, by name."""
    found = wilson(right, group)
    return {"accuracy": found.share, "low": found.low, "high": found.high}


def best_head(
    dev: Bool[np.ndarray, "N K"], test: Bool[np.ndarray, "M K"], group: Int[np.ndarray, " M"], layers: int
) -> dict[str, Any]:
    """The head that is right most often on dev, scored on test, beside all others."""
    head = int(dev.mean(0).argmax())
    return {
        "n": len(test),
        **named(head, test.shape[1], layers),
        **scored(test[:, head], group),
        "every": grid(test.mean(0), layers),
    }


def named(head: int, heads: int, layers: int) -> dict[str, int]:
    """The layer and the head within it, both counted from 0."""
    return {"layer": head // (heads // layers), "head": head % (heads // layers)}
