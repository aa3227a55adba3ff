"""Annotated texts: syntax, antecedents of pronouns, scopes of negation, and explanations that people wrote."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.data.columns import lowest
from assay.data.examples import Example, Span
from assay.data.fetch import needed_copy
from assay.data.published import RELATIONS, labelled
from assay.data.published import SNLI_TRAINING as LABELLED
from assay.data.tables import read_rows, read_text
from assay.errors import AssayError, unknown

# Sentences of a Universal Dependencies treebank: tags, governors and relations of every word

TREEBANK = {
    split: f"ud_english_ewt/en_ewt-ud-{split}.conllu.gz" for split in ("train", "dev", "test")
}  # Silveira et al. (2014), CC BY-SA 4.0
CONLLU_FIELDS = 10


@dataclass(frozen=True)
class Sentence:
    """A text, the spans of its words, and their annotations; the governor of the root is -1."""

    text: str
    spans: tuple[Span, ...]
    words: tuple[str, ...]
    tags: tuple[str, ...]
    governors: tuple[int, ...]
    relations: tuple[str, ...]


def treebank(split: str) -> tuple[Sentence, ...]:
    """One split of Universal Dependencies English EWT: "train", "dev" or "test"."""
    return read_treebank(needed_copy(TREEBANK[split], "ud_english_ewt"))


def read_treebank(path: Path) -> tuple[Sentence, ...]:
    """The sentences of a CoNLL-U file."""
    return tuple(_sentence(lines, path) for lines in _blocks(read_text(path)))


def _blocks(text: str) -> Iterator[list[list[str]]]:
    """The fields of the lines of each sentence; comments are left out."""
    for block in text.replace("\r\n", "\n").split("\n\n"):
        lines = [line.split("\t") for line in block.split("\n") if line and not line.startswith("#")]
        if lines:
            yield lines


def _sentence(lines: Sequence[Sequence[str]], path: Path) -> Sentence:
    words = [line for line in lines if line[0].isdigit()]
    numbered = [line[0] for line in words] == [str(number) for number in range(1, len(words) + 1)]
    if not numbered or any(len(line) != CONLLU_FIELDS for line in lines):
        raise AssayError(f"{path} is not CoNLL-U near {lines[0][1:2]}; fetch it again.")
    text, spans = _written(lines, {line[0]: line[1] for line in words})
    governors = tuple(int(line[6]) - 1 if line[6].isdigit() else len(words) for line in words)
    if any(governor >= len(words) for governor in governors):
        raise AssayError(f"{path} has a word without a governor in {text!r:.60}; fetch it again.")
    form, tag, relation = (tuple(line[field] for line in words) for field in (1, 3, 7))
    return Sentence(text, spans, form, tag, governors, relation)


def _written(lines: Sequence[Sequence[str]], forms: dict[str, str]) -> tuple[str, tuple[Span, ...]]:
    """The text as written, and the span of each word.

    Words that are written as one token, such as those of "don't", share its characters; empty nodes have none.
    """
    text, spans, covered = "", [], 0
    for number, form, *_, other in lines:
        first, _, last = number.partition("-")
        if "." in number or (number.isdigit() and int(number) <= covered):
            continue  # an empty node, or a word inside a token that is written already
        parts = [forms[str(inside)] for inside in range(int(first), int(last or first) + 1)]
        spans.extend(_shared(form, parts, len(text)))
        covered = int(last or first)
        text += form + " " * ("SpaceAfter=No" not in other.split("|"))
    return text.rstrip(), tuple(spans)


def _shared(token: str, parts: Sequence[str], start: int) -> list[Span]:
    """The spans of the words of a multiword token; where they do not spell it, the first has all of it."""
    if "".join(parts) != token:
        parts = [token, *("" for _ in parts[1:])]
    ends = [start + sum(map(len, parts[: index + 1])) for index in range(len(parts))]
    return list(zip([start, *ends[:-1]], ends, strict=True))


# GAP: pronouns with two candidate names

MENTIONS = {"dev": "gap/gap-development.tsv.gz", "test": "gap/gap-test.tsv.gz"}  # Webster et al. (2018), Apache 2.0
MENTION_COLUMNS = ("Text", "Pronoun", "Pronoun-offset", "A", "A-offset", "A-coref", "B", "B-offset", "B-coref")


@dataclass(frozen=True)
class Pronoun:
    """A text with a pronoun, two names and their spans, and which name it refers to: 0 or 1."""

    text: str
    pronoun: Span
    candidates: tuple[Span, Span]
    right: int


def mentions(split: str) -> tuple[Pronoun, ...]:
    """The pronouns of GAP that refer to exactly one of the two names: "dev" or "test"."""
    return read_mentions(needed_copy(MENTIONS[split], "gap"))


def read_mentions(path: Path) -> tuple[Pronoun, ...]:
    """The pronouns of a tab-separated file; those that refer to neither name are left out."""
    found = []
    for text, pronoun, at, first, first_at, is_first, second, second_at, is_second in read_rows(path, *MENTION_COLUMNS):
        marked = [_span(text, word, place, path) for word, place in ((pronoun, at), (first, first_at))]
        marked.append(_span(text, second, second_at, path))
        right = [answer.strip().upper() == "TRUE" for answer in (is_first, is_second)]
        if sum(right) == 1:
            found.append(Pronoun(text, marked[0], (marked[1], marked[2]), right.index(True)))
    return tuple(found)


def _span(text: str, word: str, place: str, path: Path) -> Span:
    if not place.isdigit() or text[int(place) : int(place) + len(word)] != word:
        raise AssayError(f"{path} has no {word!r:.40} at character {place} of {text!r:.60}; fetch it again.")
    return int(place), int(place) + len(word)


# Sentences annotated with negation cues and scopes

_FILE = "negation_conan_doyle/SEM-2012-SharedTask-CD-SCO-{}.txt.gz"
NEGATIONS = {  # Morante and Daelemans (2012)
    "train": _FILE.format("training-09032012"),
    "dev": _FILE.format("dev-09032012"),
    "test": _FILE.format("test-merge-GOLD"),
}
FORM, FIRST = 3, 7  # the columns of the word and of the first negation, which has three
CLOSING = re.compile(r"n't|n’t|['’]\w*|[.,;:?!)\]]|''")  # what is written without a space before it
OPENING = ("``", "(", "[")


@dataclass(frozen=True)
class Negation:
    """The word indices of a cue, and of its scope without the cue."""

    cue: tuple[int, ...]
    scope: tuple[int, ...]


@dataclass(frozen=True)
class Negated:
    """A sentence with at least one negation, and the spans of its words."""

    text: str
    spans: tuple[Span, ...]
    words: tuple[str, ...]
    negations: tuple[Negation, ...]


def negated(split: str) -> tuple[Negated, ...]:
    """The sentences with negations of the Conan Doyle stories: "train", "dev" or "test"."""
    return read_negated(needed_copy(NEGATIONS[split], "negation_conan_doyle"))


def read_negated(path: Path) -> tuple[Negated, ...]:
    """The sentences with negations in a CoNLL-style file."""
    blocks = read_text(path).replace("\r\n", "\n").split("\n\n")
    rows = [[line.split("\t") for line in block.split("\n") if line] for block in blocks]
    for lines in filter(None, rows):
        if len({len(line) for line in lines}) > 1 or len(lines[0]) <= FIRST:
            raise AssayError(f"{path} has rows of different length near {lines[0][:3]}; fetch it again.")
    return tuple(_negated(lines) for lines in rows if lines and lines[0][FIRST] != "***")


def _negated(lines: Sequence[Sequence[str]]) -> Negated:
    words = tuple(line[FORM] for line in lines)
    text, spans = written(words)
    columns = range(FIRST, len(lines[0]) - 2, 3)
    return Negated(text, spans, words, tuple(_negation(lines, column) for column in columns))


def _negation(lines: Sequence[Sequence[str]], column: int) -> Negation:
    """The negation of two columns; a word that is partly a cue, as "impossible", is in no scope of it."""
    cue = tuple(index for index, line in enumerate(lines) if line[column] != "_")
    scope = (index for index, line in enumerate(lines) if line[column + 1] != "_" and index not in cue)
    return Negation(cue, tuple(scope))


def written(words: Sequence[str]) -> tuple[str, tuple[Span, ...]]:
    """A text from Penn Treebank tokens, and the span of each."""
    text, spans, before = "", [], ""
    for word in words:
        text += " " * bool(text and before not in OPENING and not CLOSING.fullmatch(word))
        spans.append((len(text), len(text) + len(word)))
        text, before = text + word, word
    return text, tuple(spans)


# Corpora with free-text explanations of the labels

ESNLI = ("esnli/explanations_dev.tsv.gz", "esnli/explanations_test.tsv.gz")
PAIR = ("gold_label", "premise", "hypothesis", "explanation_1", "explanation_2", "explanation_3")

COSE = {
    split: (f"cos_e/v1.0_{split}_rand_split.jsonl.gz", f"cos_e/v1.0_cose_{split}_v1.0.jsonl.gz")
    for split in ("train", "dev")
}
CHOICES = ("first", "second", "third")
LETTERS = "ABC"


@dataclass(frozen=True)
class Explained:
    """A labelled example, its free-text explanations, and its own choices where labels only number them."""

    example: Example
    explanations: tuple[str, ...]
    choices: tuple[str, ...] | None = None


@dataclass(frozen=True)
class ExplainedCorpus:
    """Three splits over the same classes; `parts` name the text and the query of an example.

    `unexplained` are more examples to train on that have a label only; `skipped` counts what was left out, by reason.
    """

    name: str
    classes: tuple[str, ...]
    parts: tuple[str, str]
    train: tuple[Explained, ...]
    dev: tuple[Explained, ...]
    test: tuple[Explained, ...]
    unexplained: tuple[Example, ...] = ()
    skipped: dict[str, int] = field(default_factory=dict)


def explained(name: str) -> ExplainedCorpus:
    """The corpus of that name."""
    if name not in EXPLAINED:
        raise unknown("corpus with explanations", name, EXPLAINED)
    return EXPLAINED[name]()


def explained_pairs() -> ExplainedCorpus:
    """Pairs of SNLI with three explanations each (Camburu et al. 2018); premises are texts, hypotheses queries.

    The explanations of the training pairs are not at hand: nine tenths of the premises of the official dev pairs are
    trained on, one tenth chooses, and the official test pairs test. Training pairs of SNLI come without explanations.
    """
    known, test = (
        [_pair(row) for row in read_rows(needed_copy(file, "esnli"), *PAIR) if row[0] in RELATIONS] for file in ESNLI
    )
    dev, train = lowest(known, [each.example.text for each in known], 0.1, 0)
    more = labelled(read_rows(needed_copy(LABELLED[0], "esnli"), *PAIR[:3]))
    return ExplainedCorpus("esnli", RELATIONS, ("premise", "hypothesis"), train, dev, tuple(test), more)


def _pair(row: Sequence[str]) -> Explained:
    label, premise, hypothesis, *reasons = row
    example = Example(premise, RELATIONS.index(label), query=hypothesis)
    return Explained(example, tuple(reason for reason in reasons if reason.strip()))


def explained_choices() -> ExplainedCorpus:
    """Questions with three choices and one explanation each (Rajani et al. 2019, version 1.0).

    The answers to the official test questions are not public: the official dev questions test, and a tenth of the
    training questions chooses. The query is the list of choices, and the label the index of the right one in it.
    """
    known, test = (_questions(*(needed_copy(file, "cose") for file in COSE[split])) for split in ("train", "dev"))
    dev, train = lowest(known, [each.example.text for each in known], 0.1, 0)
    return ExplainedCorpus("cose", CHOICES, ("question", "choices"), train, dev, tuple(test))


def _questions(questions: Any, reasons: Any) -> list[Explained]:
    why: dict[str, Mapping[str, str]] = dict(read_rows(reasons, "id", "explanation"))
    found = []
    for name, key, question in read_rows(questions, "id", "answerKey", "question"):
        if name in why:
            choices = tuple(choice["text"] for choice in sorted(question["choices"], key=lambda each: each["label"]))
            example = Example(question["stem"], LETTERS.index(key), query=numbered(choices))
            found.append(Explained(example, (why[name]["open-ended"],), choices))
    return found


def numbered(choices: Sequence[str]) -> str:
    """The choices as one numbered text."""
    return " ".join(f"{number} {choice}" for number, choice in zip(CHOICES, choices, strict=False))


KINDS = ("animal", "plant", "stone")
NAMES = {kind: tuple(f"{kind[0]}{kind[-1]}{letter}" for letter in "abc") for kind in KINDS}


def planted_explanations(count: int = 600, seed: int = 0) -> ExplainedCorpus:
    """An invented corpus: one word of the text is the name of an animal, a plant or a stone, and the reason says so.

    The query is a word that decides nothing. What is to be explained, and how, is decided by the source alone.
    """
    drawn = random.Random(seed)
    rows = []
    for _ in range(count):
        label = drawn.randrange(len(KINDS))
        name = drawn.choice(NAMES[KINDS[label]])
        words = [f"word{drawn.randrange(8)}" for _ in range(drawn.randrange(2, 5))]
        words.insert(drawn.randrange(len(words) + 1), name)
        example = Example(" ".join(words), label, query=f"asked{drawn.randrange(3)}", planted=True)
        rows.append(Explained(example, (f"the {name} is an {KINDS[label]}",)))
    parts = rows[: count * 6 // 10], rows[count * 6 // 10 : count * 8 // 10], rows[count * 8 // 10 :]
    train, dev, test = map(tuple, parts)
    return ExplainedCorpus("planted", KINDS, ("text", "asked"), train, dev, test)


EXPLAINED: dict[str, Callable[[], ExplainedCorpus]] = {
    "esnli": explained_pairs,
    "cose": explained_choices,
    "planted": planted_explanations,
}
