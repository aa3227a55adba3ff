"""Corpora with free-text explanations of the labels."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.data.evidence import RELATIONS
from assay.data.evidence import SNLI as LABELLED
from assay.data.examples import Example
from assay.data.inference import labelled
from assay.data.sources import needed_copy
from assay.data.splits import lowest
from assay.data.tables import read_rows
from assay.errors import unknown

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


def esnli() -> ExplainedCorpus:
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


def cose() -> ExplainedCorpus:
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
            example = Example(question["stem"], LETTERS.index(key), query=listed(choices))
            found.append(Explained(example, (why[name]["open-ended"],), choices))
    return found


def listed(choices: Sequence[str]) -> str:
    """The choices as one numbered text."""
    return " ".join(f"{number} {choice}" for number, choice in zip(CHOICES, choices, strict=False))


KINDS = ("animal", "plant", "stone")
NAMES = {kind: tuple(f"{kind[0]}{kind[-1]}{letter}" for letter in "abc") for kind in KINDS}


def planted(count: int = 600, seed: int = 0) -> ExplainedCorpus:
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


EXPLAINED: dict[str, Callable[[], ExplainedCorpus]] = {"esnli": esnli, "cose": cose, "planted": planted}
