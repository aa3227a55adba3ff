"""The word-level tokeniser with character spans, and sentence segmentation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import tokenizers
from tokenizers import Regex, models, normalizers, pre_tokenizers, trainers

from assay.data.examples import ENTITY, Span

# Sentence segmentation

ENDS, CLOSERS = set(".!?…"), set("”’»)]")
BEHIND = CLOSERS | set("\"'")
BREAK = re.compile(r"[.!?…\n]")  # without one there is one sentence
TITLES = {"mr", "mrs", "ms", "dr", "prof", "st", "capt", "sgt", "lt", "rev", "vs"}


def sentence_numbers(text: str, spans: Sequence[Span]) -> list[int]:
    """The number of each word's sentence, from 0.

    A sentence ends after one of `ENDS` and what closes behind it, if white space follows, and at every end of a line.
    Texts that are cut into words already have white space before an end or a closing mark: it starts no sentence. A
    straight quotation mark closes only what it touches. The full stop of a title ends nothing: a name follows.
    """
    if not spans or not BREAK.search(text, 0, spans[-1][0]):
        return [0] * len(spans)
    numbers: list[int] = []
    number, ended = 0, False
    before = (0, 0)
    for start, end in spans:
        word, between = text[start:end], text[before[1] : start]
        if numbers and ("\n" in between or (ended and between and word not in ENDS and word not in CLOSERS)):
            number, ended = number + 1, False
        title = word == "." and text[before[0] : start].rstrip().lower() in TITLES
        ended = (word in ENDS and not title) or (ended and word in BEHIND)
        numbers.append(number)
        before = (start, end)
    return numbers


# The word-level tokeniser, with character spans

PAD, UNKNOWN, START, END = "<pad>", "<unk>", "<start>", "<end>"
SPECIAL = (PAD, UNKNOWN, START, END)  # ids 0 to 3, in this order
FOLDED = "qqq"

# Contractions split as in the Penn Treebank, which is how pretrained vectors were made: do|n't, it|'s.
# What stands for a name in a cloze question is one word.
STAND_IN = rf"{ENTITY}\b|@placeholder\b"
WORD = rf"{STAND_IN}|\w+?(?=n['’]t\b)|n['’]t\b|['’](?:s|m|d|ll|re|ve)\b|\w+|[^\w\s]"
WITH_DIGIT = re.compile(rf"({STAND_IN})|\w*\d\w*")


@dataclass(frozen=True)
class TextOptions:
    """Tokenisation options; texts of more than `longest` words are left out."""

    lowercase: bool = True
    fold_digits: bool = False
    min_count: int = 2
    longest: int = 1000


@dataclass(frozen=True)
class Words:
    """The word ids of one text, their character spans, and their subwords where there are any."""

    ids: list[int]
    spans: list[Span]
    subwords: list[list[int]] | None = None

    @property
    def length(self) -> int:
        """The number of model inputs: words, or subwords."""
        return len(self.ids) if self.subwords is None else sum(map(len, self.subwords))


@runtime_checkable
class Reading(Protocol):
    """The tokeniser protocol: assay's own, or that of a pretrained model."""

    def __call__(self, texts: Sequence[str]) -> list[Words]: ...
    def query(self, texts: Sequence[str]) -> list[Words]:
        """Tokenises questions, which are read but not explained."""

    def fitted(self, words: Words, query: Words, longest: int) -> Words | None:
        """The text if it fits beside its question, possibly truncated, or None."""

    @property
    def unit(self) -> str:
        """The unit of text length, for messages."""


class Tokeniser:
    """A word-level tokeniser with a fixed vocabulary and character spans."""

    def __init__(self, inner: tokenizers.Tokenizer, options: TextOptions) -> None:
        self.inner = inner
        self.options = options
        self.folded: int | None = inner.token_to_id(FOLDED) if options.fold_digits else None

    @classmethod
    def fit(cls, texts: Iterable[str], options: TextOptions) -> Tokeniser:
        """A tokeniser whose vocabulary is the words that occur at least `min_count` times in `texts`."""
        inner = tokenizers.Tokenizer(models.WordLevel(vocab={}, unk_token=UNKNOWN))
        if options.lowercase:
            inner.normalizer = normalizers.Lowercase()
        inner.pre_tokenizer = pre_tokenizers.Split(Regex(WORD), behavior="removed", invert=True)
        trainer = trainers.WordLevelTrainer(
            vocab_size=10_000_000,
            min_frequency=options.min_count,
            special_tokens=list(SPECIAL),
            show_progress=False,
        )
        if options.fold_digits:
            texts = (WITH_DIGIT.sub(lambda found: found[1] or FOLDED, text) for text in texts)
        inner.train_from_iterator(texts, trainer)
        return cls(inner, options)

    @classmethod
    def from_json(cls, text: str, options: TextOptions) -> Tokeniser:
        return cls(tokenizers.Tokenizer.from_str(text), options)

    def to_json(self) -> str:
        return str(self.inner.to_str(pretty=True))

    def __call__(self, texts: Sequence[str]) -> list[Words]:
        """The words of each text, with their character spans."""
        encodings = self.inner.encode_batch(list(texts), add_special_tokens=False)
        words = [Words(encoding.ids, encoding.offsets) for encoding in encodings]
        if self.folded is None:
            return words
        return [self._fold(text, found, self.folded) for text, found in zip(texts, words, strict=True)]

    query = __call__
    unit = "words"

    def fitted(self, words: Words, query: Words, longest: int) -> Words | None:
        return words if words.length <= longest else None

    def _fold(self, text: str, words: Words, folded: int) -> Words:
        # Folding while reading would lose the offsets; no word with a digit is in the vocabulary but for entities, so
        # all others are unknown.
        unknown = SPECIAL.index(UNKNOWN)
        ids = [
            folded if word == unknown and text[start] != "@" and any(map(str.isdigit, text[start:end])) else word
            for word, (start, end) in zip(words.ids, words.spans, strict=True)
        ]
        return Words(ids, words.spans)

    @property
    def vocabulary(self) -> list[str]:
        """All words, in the order of their ids."""
        ids: dict[str, int] = self.inner.get_vocab()
        return sorted(ids, key=ids.__getitem__)
