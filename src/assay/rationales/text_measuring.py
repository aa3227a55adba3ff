"""Measures of generated explanations: exchange among examples, simulation, erasure of their words, and overlap."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from assay.data.annotated import Explained
from assay.data.text import Tokeniser
from assay.errors import AssayError
from assay.metrics.performance import Simulatability, simulatability
from assay.rationales.sequences import Pair
from assay.rationales.text_explanations import EXPLANATION, Answers, School, Task, TextExplainer, deranged
from assay.rationales.writers import Writer, WriterRecipe

Flags = Bool[np.ndarray, " N"]  # of each item


@dataclass(frozen=True)
class Exchanged:
    """Where the decider is right with each example's own explanation, and with that of another."""

    own: Flags
    others: Flags


def exchanged(
    explainer: TextExplainer, answers: Answers, items: Sequence[Explained], reader: Writer, seed: int = 0
) -> Exchanged:
    """Exchanges explanations among examples; Kumar and Talukdar (2020), section 5.

    Where nothing decides by the explanation, a reader of explanations alone does.
    """
    decided = explainer if explainer.decider is not None else replace(explainer, decider=reader)
    found = answers.candidates or [(why,) for why in answers.explanations]
    moved = [found[index] for index in deranged(len(items), seed)]
    labels = np.array([item.example.label for item in items])
    return Exchanged(*(decided.decided(items, each) == labels for each in (found, moved)))


def simulator_source(task: Task, item: Explained, explanation: str, seen: Collection[str]) -> str:
    """The input of a simulator: the example, the explanation, or both."""
    parts = [task.asked(item)] if "example" in seen else []
    if "explanation" in seen:
        parts.append(f"{EXPLANATION} {explanation}" if "example" in seen else task.read(item, explanation))
    return " ".join(parts)


FORMS = (("example", "explanation"), ("example",), ("explanation",))


def simulated(
    school: School,
    name: str,
    taught: tuple[Sequence[Explained], Answers],
    tested: tuple[Sequence[Explained], Answers],
    recipe: WriterRecipe,
) -> Simulatability:
    """LAS (leakage-adjusted simulatability), by a simulator trained on other answers; Hase et al. (2020).

    One simulator sees each training item three times: whole, without its explanation, and with nothing else.
    """
    items, answers = taught
    edge = max(1, len(items) // 10)
    pairs = simulator_pairs(school.task, items, answers)
    dev, train = pairs[: edge * len(FORMS)], pairs[edge * len(FORMS) :]
    simulator = school.taught(f"simulator-{name}", recipe, train, dev)
    both, example, explanation = (foreseen(simulator, school.task, *tested, seen) for seen in FORMS)
    return simulatability(both, example, explanation)


def simulator_pairs(task: Task, items: Sequence[Explained], answers: Answers) -> list[Pair]:
    """Training pairs of a simulator: each form to the model's answer."""
    rows = zip(items, answers.labels, answers.explanations, strict=True)
    return [
        Pair(simulator_source(task, item, why, seen), task.words[label] if label >= 0 else "", whole=bool(label < 0))
        for item, label, why in rows
        for seen in FORMS
    ]


def foreseen(
    simulator: Writer, task: Task, items: Sequence[Explained], answers: Answers, seen: Collection[str]
) -> Flags:
    """Where the simulator predicts the model's label."""
    pairs = zip(items, answers.explanations, strict=True)
    sources = [simulator_source(task, item, why, seen) for item, why in pairs]
    same: Flags = simulator.chosen(sources, task.words) == answers.labels
    return same


@dataclass(frozen=True)
class Consistency:
    """Where the label changes without the words that the explanation mentions, and without as many others."""

    mentioned: Flags
    others: Flags


def consistency(
    explainer: TextExplainer, answers: Answers, items: Sequence[Explained], seed: int = 0, beams: int = 1
) -> Consistency:
    """Deletes the words of the example that the explanation repeats, and as many random others.

    Labels are compared with those of the answers, so beams are as many as these were searched with. An explanation
    that names what decides makes the first number the larger one; after Wiegreffe et al. (2021).
    """
    random = np.random.default_rng(seed)
    cut = [without(item, why, random) for item, why in zip(items, answers.explanations, strict=True)]
    return Consistency(
        *(explainer([each[which] for each in cut], beams).labels != answers.labels for which in range(2))
    )


def without(item: Explained, explanation: str, random: np.random.Generator) -> tuple[Explained, Explained]:
    """The item without the words that the explanation repeats, and without as many random others.

    Only the text and the query are cut; at least one word of each is left.
    """
    sides = [item.example.text.split(), (item.example.query or "").split()]
    said = set(explanation.lower().split())
    marks = np.array([word.lower() in said for side in sides for word in side], dtype=bool)
    rest = np.flatnonzero(~marks)
    drawn = np.zeros_like(marks)
    drawn[random.permutation(rest)[: marks.sum()]] = True
    return _cut(item, sides, marks), _cut(item, sides, drawn)


def _cut(item: Explained, sides: Sequence[Sequence[str]], gone: Bool[np.ndarray, " T"]) -> Explained:
    edge = len(sides[0])
    parts: list[Int[np.ndarray, " t"]] = [np.flatnonzero(~gone[:edge]), np.flatnonzero(~gone[edge:])]
    text, query = (
        " ".join(side[index] for index in kept) or side[0] if side else ""
        for side, kept in zip(sides, parts, strict=True)
    )
    return replace(item, example=replace(item.example, text=text, query=query, evidence=None))


def overlap(
    written: Sequence[str], references: Sequence[Sequence[str]], tokeniser: Tokeniser | None = None
) -> dict[str, float]:
    """Corpus BLEU (Papineni et al., 2002) and chrF (Popović, 2015) against all references, 0 to 100.

    With a tokeniser, references are cut into its words, as what it wrote is; case does not count. An item may have
    fewer references than others.
    """
    try:
        from sacrebleu.metrics.bleu import BLEU
        from sacrebleu.metrics.chrf import CHRF
    except ImportError as fault:
        raise AssayError("BLEU and chrF need sacrebleu; install assay[text].") from fault
    if not written or len(written) != len(references):
        raise AssayError("Each explanation needs references, and there must be one at least.")
    known = [[_spaced(text, tokeniser) for text in each] for each in references]
    most = max(map(len, known))
    columns: list[list[Any]] = [[each[index] if index < len(each) else None for each in known] for index in range(most)]
    found = {"bleu": BLEU(lowercase=True, force=True), "chrf": CHRF(lowercase=True)}
    return {name: float(metric.corpus_score(list(written), columns).score) for name, metric in found.items()}


def _spaced(text: str, tokeniser: Tokeniser | None) -> str:
    """The text with one space between its words."""
    return text if tokeniser is None else " ".join(text[start:end] for start, end in tokeniser([text])[0].spans)
